"""Followers' fetches as a leader answers them: what comes at once, what waits, and for how long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from postroad.replication.leader import Leader
from postroad.replication.progress import LogStart
from postroad.wire.fetch import FetchRequest, PartitionFetch
from postroad.wire.messages import fetch
from postroad.wire.replica_fetch import encode_frame
from tests.broker.fetching import fetch_request, offsets_of, only, receive, send, wanted
from tests.broker.harness import Running
from tests.faults.raw import RawConnection, batch_of, send_batch

VERSION = 17


class Following:
    """One follower with a session of its own over one topic."""

    def __init__(self, connection: RawConnection, topic_id: bytes, node_id: int) -> None:
        self._connection = connection
        self._topic_id = topic_id
        self._state = fetch.ReplicaState(replica_id=node_id, replica_epoch=1)
        self._session = self._epoch = 0

    def ask(self, offset: int | None, wait_ms: int) -> None:
        """Name the log at the offset, or nothing that is new."""
        named = [] if offset is None else [wanted(offset=offset)]
        request = fetch_request(
            self._topic_id, *named, wait_ms=wait_ms, session=self._session, epoch=self._epoch
        )
        request.replica_state = self._state
        self._epoch += 1
        send(self._connection, request, VERSION)

    def ask_ahead(self, promised: int, offset: int) -> None:
        """Want what follows the offset, with a promise of less; the answer comes at once."""
        log = PartitionFetch(self._topic_id, 0, -1, promised, 1 << 20, -1, 0, ahead=offset)
        node = self._state.replica_id
        request = FetchRequest(node, 0, 1, 1 << 24, 0, self._session, self._epoch, [log], [], 0, 1)
        self._epoch += 1
        self._connection.send(encode_frame(request, 1, b"replica"))

    def answer(self) -> Any:
        answer = receive(self._connection, VERSION)
        assert answer.error_code == 0
        self._session = answer.session_id
        return answer


def share(node: Running, topic: str, replicas: list[int], in_sync: tuple[int, ...] = ()) -> None:
    """The partition has these replicas besides; only its leader and these are in sync."""
    partition = node.partition(topic)
    me, now_ms = node.node.settings.node.id, node.node.clock.monotonic_ms()
    leadership = Leader(
        me,
        partition.leader_epoch,
        [LogStart(partition.log.end_offset, partition.log.end_offset, partition.high_watermark)],
        replicas=[me, *replicas],
        isr=[me, *in_sync],
        elr=[],
        revision=1,
        min_insync=1,
        lag_ms=60_000,
        now_ms=now_ms,
    )
    partition.share_leadership(leadership)


@contextmanager
def followers(node: Running, topic: str, topic_id: bytes, count: int) -> Iterator[list[Following]]:
    node.on_loop(lambda: share(node, topic, list(range(100, 100 + count))))
    with ExitStack() as stack:
        connections = [stack.enter_context(node.connect()) for _ in range(count)]
        yield [Following(connection, topic_id, 100 + n) for n, connection in enumerate(connections)]


def test_all_followers_that_wait_get_what_is_appended(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    with followers(shared, topic, topic_id, 2) as waiting:
        for end in range(3):
            for follower in waiting:
                follower.ask(end, wait_ms=60_000)
            shared.publish(topic, b"message %d" % end)
            copies = [only(follower.answer()) for follower in waiting]
            assert [offsets_of(copy) for copy in copies] == [[end], [end]]
            assert bytes(copies[0].records) == bytes(copies[1].records)


def test_followers_at_different_offsets_get_their_own(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    for value in (b"one", b"two", b"three"):
        shared.publish(topic, value)
    with followers(shared, topic, topic_id, 3) as behind:
        for offset, follower in enumerate(behind):
            follower.ask(offset, wait_ms=60_000)
            assert offsets_of(only(follower.answer())) == list(range(offset, 3))


def test_each_poll_without_news_ends_when_it_has_waited_long_enough(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    with followers(shared, topic, topic_id, 1) as [follower]:
        for offset in (0, None, None):
            began = time.monotonic()
            follower.ask(offset, wait_ms=150)
            follower.answer()
            assert time.monotonic() - began >= 0.145


def test_a_follower_that_reads_ahead_promises_only_what_is_safe(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    with followers(shared, topic, topic_id, 1) as [follower]:
        shared.on_loop(lambda: share(shared, topic, [100], in_sync=(100,)))
        with shared.connect() as client:
            for value in (b"one", b"two", b"three"):
                send_batch(client, topic, batch_of(value), acks=1)
        follower.ask(0, wait_ms=0)
        assert offsets_of(only(follower.answer())) == [0, 1, 2]
        follower.ask_ahead(1, 2)
        ahead = only(follower.answer())
        assert (offsets_of(ahead), ahead.high_watermark) == ([2], 1)
        follower.ask_ahead(2, 3)
        ahead = only(follower.answer())
        assert (offsets_of(ahead), ahead.high_watermark) == ([], 2)
        follower.ask(3, wait_ms=0)
        assert only(follower.answer()).high_watermark == 3


def test_short_poll_does_not_wait_for_the_time_of_a_long_one(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    with followers(shared, topic, topic_id, 1) as [follower]:
        follower.ask(0, wait_ms=200_000)
        shared.publish(topic, b"one")
        follower.answer()
        began = time.monotonic()
        follower.ask(1, wait_ms=50)
        follower.answer()
        assert time.monotonic() - began < 60
