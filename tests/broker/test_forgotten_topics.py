"""A subscription that forgets a topic forgets it whole, whoever asks for its messages meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from postroad.queues.update import Key
from postroad.wire.messages import (
    alter_share_group_offsets,
    delete_groups,
    delete_share_group_offsets,
    share_fetch,
)
from tests.broker.failing_disk import FailingDisk
from tests.broker.harness import Running, running_node
from tests.broker.test_queues import GROUP, Owned, configure, refuse_writes_of_state, settle_as
from tests.clients.share import member, take
from tests.clients.share_session import Error
from tests.clients.wait import until

NOT_AVAILABLE = 15


def test_s4_accept_is_final_after_a_topic_was_forgotten_and_held_again(tmp_path: Path) -> None:
    with running_node(tmp_path) as running:
        key = subscribed(running)
        seek(running, 0)
        with forgetting(running, key):
            assert poll(running, key, "asks in between") == []
        configure(running, postroad_topics="jobs")
        running.publish("jobs", *[b"x"] * 5)
        assert poll_some(running, key, "gateway") == [0, 1, 2, 3, 4]
        assert [settle_as(running, key.topic_id, "gateway", n) for n in range(5)] == [Error.NONE] * 5
        assert running.node.subscriptions.ledgers(GROUP)[0].start == 5
    with running_node(tmp_path) as running:
        assert poll(running, key, "another gateway") == []


def test_nothing_of_a_topic_is_settled_or_begun_while_it_is_being_forgotten(
    start: Callable[..., Running],
) -> None:
    running = start()
    key = subscribed(running)
    running.publish("jobs", b"x", b"y")
    assert poll_some(running, key, "gateway") == [0, 1]
    with forgetting(running, key):
        assert settle_as(running, key.topic_id, "gateway", 0) != Error.NONE
        assert seek(running, 1) == NOT_AVAILABLE
    assert running.node.subscriptions.ledgers(GROUP) == []
    assert settle_as(running, key.topic_id, "gateway", 1) != Error.NONE


def test_topic_that_could_not_be_forgotten_is_held_as_before(start: Callable[..., Running]) -> None:
    running = start()
    key = subscribed(running)
    running.publish("jobs", b"x", b"y")
    assert poll_some(running, key, "gateway") == [0, 1]
    assert settle_as(running, key.topic_id, "gateway", 0) == Error.NONE
    disk = refuse_writes_of_state(running)
    disk.fail("append", "", 28)
    assert forget(running) == NOT_AVAILABLE
    disk.heal()
    assert poll_some(running, key, "another gateway") == [1]


def test_consumer_that_joins_while_its_subscription_is_deleted_begins_a_new_one(
    start: Callable[..., Running],
) -> None:
    running = start()
    key = subscribed(running, partitions=3)
    with (
        removing(running, key, lambda: delete(running)) as (disk, deleted),
        member(running.bootstrap, GROUP, "jobs") as worker,
    ):
        until(lambda: running.node.subscriptions.members.has_members(GROUP), "it has joined")
        disk.gate.set()
        assert deleted.result(20) == 0
        until(lambda: len(running.node.subscriptions.ledgers(GROUP)) == 3, "its topic is held")
        running.publish("jobs", b"x")
        assert [message.value() for message in take(worker, 1)] == [b"x"]


def subscribed(running: Running, partitions: int = 1) -> Key:
    topic_id = running.create("jobs", partitions)
    configure(running, postroad_topics="jobs")
    return Key(GROUP, topic_id, 0)


def poll(running: Running, key: Key, owner: str) -> list[int]:
    """One fetch in an owner's name, as gateways make them: without a member."""
    topics = [share_fetch.FetchTopic(key.topic_id, [share_fetch.FetchPartition(0, [])])]
    request = share_fetch.ShareFetchRequest(GROUP, str(uuid.uuid4()), 0, 300, 1, 1 << 20, 9, 9, topics=topics)
    answer = running.call(Owned(share_fetch, owner), 1, request)  # type: ignore[arg-type]
    runs = [run for topic in answer.responses for run in topic.partitions[0].acquired_records]
    return [offset for run in runs for offset in range(run.first_offset, run.last_offset + 1)]


def poll_some(running: Running, key: Key, owner: str) -> list[int]:
    """The first fetch that brings anything."""
    return until(lambda: poll(running, key, owner), "messages")


@contextmanager
def forgetting(running: Running, key: Key) -> Iterator[None]:
    """The removal waits for the disk until the block ends."""
    with removing(running, key, lambda: forget(running)) as (disk, forgotten):
        yield
        disk.gate.set()
        assert forgotten.result(20) == 0


@contextmanager
def removing(
    running: Running, key: Key, remove: Callable[[], int]
) -> Iterator[tuple[FailingDisk, Future[int]]]:
    """The answer comes when the disk's gate is opened."""
    poll(running, key, "nobody")  # there is a queue
    disk = refuse_writes_of_state(running)
    disk.gate.clear()
    with ThreadPoolExecutor() as threads:
        try:
            removed = threads.submit(remove)
            until(lambda: running.node.subscriptions.queue_in_use(key) is None, "its queue is closed")
            yield disk, removed
        finally:
            disk.gate.set()


def forget(running: Running) -> int:
    topic = delete_share_group_offsets.DeleteShareGroupOffsetsRequestTopic("jobs")
    request = delete_share_group_offsets.DeleteShareGroupOffsetsRequest(GROUP, [topic])
    answer: Any = running.call(delete_share_group_offsets, 0, request)
    return int(answer.error_code or answer.responses[0].error_code)


def delete(running: Running) -> int:
    answer = running.call(delete_groups, 2, delete_groups.DeleteGroupsRequest([GROUP]))
    return int(answer.results[0].error_code)


def seek(running: Running, offset: int) -> int:
    api = alter_share_group_offsets
    part = api.AlterShareGroupOffsetsRequestPartition(0, offset)
    topic = api.AlterShareGroupOffsetsRequestTopic("jobs", [part])
    answer = running.call(api, 0, api.AlterShareGroupOffsetsRequest(GROUP, [topic]))
    return int(answer.responses[0].partitions[0].error_code)
