"""A member of a subscription by hand: each ShareFetch and ShareAcknowledge as the test likes it.

For what no client does or shows: renewed locks (librdkafka has none), wrong epochs, other people's locks.
It reads one partition of a topic, and keeps the session's epoch, unless a request is given one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple

from postroad.wire.batch import walk
from postroad.wire.messages import share_acknowledge, share_fetch, share_group_heartbeat
from postroad.wire.records import Record, decode_records
from tests.faults.raw import RawConnection, metadata_of

from .wait import until

RECORD_LIMIT = 1  # the acquire mode: not one record more than asked for
NEW_SESSION, LAST_EPOCH = 0, -1
WHOLE_BATCHES = 0


class Fate(IntEnum):
    """The wire's numbers."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Error(IntEnum):
    """Kafka's numbers of the errors that sessions and acknowledgements are answered with."""

    NONE = 0
    INVALID_REQUEST = 42
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123


class Word(NamedTuple):
    """What is said of the offsets `first` to `last`: one fate for all of them, or one for each."""

    first: int
    last: int
    fates: Sequence[int]


class Held(NamedTuple):
    offset: int
    delivery: int
    value: bytes | None


class Fetched(NamedTuple):
    """An answer to ShareFetch; `held` is what the member may work on now."""

    error: int
    acknowledge_error: int
    held: list[Held]
    lock_ms: int

    @property
    def offsets(self) -> list[int]:
        return [held.offset for held in self.held]


def one(offset: int, fate: int) -> Word:
    return Word(offset, offset, [fate])


class Session:
    def __init__(
        self, connection: RawConnection, group: str, topic: str, member_id: str | None, partition: int = 0
    ) -> None:
        self.connection, self.group = connection, group
        self.member_id = member_id or str(uuid.uuid4())
        self.topic, self.topic_id = topic, metadata_of(connection, topic).topics[0].topic_id
        self.partition = partition
        self.epoch = NEW_SESSION

    def join(self) -> None:
        """Until the member has its partition."""
        self._heartbeat(0, [self.topic])
        until(lambda: self._heartbeat(self._member_epoch), "the member is assigned its partition")

    def subscribe(self, *topics: str) -> None:
        """The member names these topics from now on, whether they exist or not."""
        self._heartbeat(self._member_epoch, list(topics))

    def leave(self) -> None:
        self._heartbeat(LAST_EPOCH)

    def _heartbeat(self, epoch: int, topics: list[str] | None = None) -> bool:
        answer = self.connection.call(
            share_group_heartbeat,
            1,
            share_group_heartbeat.ShareGroupHeartbeatRequest(
                group_id=self.group,
                member_id=self.member_id,
                member_epoch=epoch,
                subscribed_topic_names=topics,
            ),
        )
        assert answer.error_code == 0, answer.error_message
        self._member_epoch = answer.member_epoch
        self._assigned = self._assigned if answer.assignment is None else answer.assignment.topic_partitions
        return bool(self._assigned)

    _member_epoch = 0
    _assigned: list[Any] = []  # noqa: RUF012 - replaced, never changed

    def fetch(
        self,
        *words: Word,
        max_records: int = 500,
        wait_ms: int = 0,
        renew: bool = False,
        epoch: int | None = None,
        version: int = 2,
    ) -> Fetched:
        """`renew` asks for no records, as the protocol demands."""
        asked = self._fetch_request(words, max_records, wait_ms, renew, epoch)
        return self._fetched(self.connection.call(share_fetch, version, asked))

    def begin_fetch(self, wait_ms: int) -> Callable[[], Fetched]:
        """Ask without waiting for the answer: what is handed back waits for it."""
        answered = self.connection.begin(share_fetch, 2, self._fetch_request((), 500, wait_ms, False, None))
        return lambda: self._fetched(answered())

    def _fetch_request(
        self, words: Sequence[Word], max_records: int, wait_ms: int, renew: bool, epoch: int | None
    ) -> Any:
        partition = share_fetch.FetchPartition(self.partition, _batches(words))
        return share_fetch.ShareFetchRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            max_wait_ms=0 if renew else wait_ms,
            min_bytes=0 if renew else 1,
            max_bytes=0 if renew else 1 << 24,
            max_records=0 if renew else max_records,
            batch_size=max_records,
            share_acquire_mode=RECORD_LIMIT,
            is_renew_ack=renew,
            topics=[share_fetch.FetchTopic(self.topic_id, [partition])],
        )

    def _fetched(self, answer: Any) -> Fetched:
        self._count(answer.error_code)
        parts = [part for topic in answer.responses for part in topic.partitions]
        if not parts:
            return Fetched(answer.error_code, 0, [], answer.acquisition_lock_timeout_ms)
        (part,) = parts
        return Fetched(
            answer.error_code or part.error_code,
            part.acknowledge_error_code,
            list(_held(part)),
            answer.acquisition_lock_timeout_ms,
        )

    def fetch_some(self, max_records: int = 500) -> Fetched:
        """The first answer that brings anything."""

        def fetched() -> Fetched | None:
            answer = self.fetch(max_records=max_records, wait_ms=200)
            assert answer.error == Error.NONE, answer
            return answer if answer.held else None

        return until(fetched, "messages", pause_s=0)

    def acknowledge(
        self, *words: Word, renew: bool = False, epoch: int | None = None, version: int = 2
    ) -> int:
        """The error that this request, or its partition, is answered with."""
        partition = share_acknowledge.AcknowledgePartition(self.partition, _batches(words, share_acknowledge))
        asked = share_acknowledge.ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=renew,
            topics=[share_acknowledge.AcknowledgeTopic(self.topic_id, [partition])],
        )
        answer = self.connection.call(share_acknowledge, version, asked)
        self._count(answer.error_code)
        if answer.error_code:
            return int(answer.error_code)
        return int(answer.responses[0].partitions[0].error_code)

    def _count(self, error: int) -> None:
        if error == Error.NONE:
            self.epoch += 1


@contextmanager
def session(
    bootstrap: str, group: str, topic: str, member_id: str | None = None, partition: int = 0
) -> Iterator[Session]:
    """A member that has joined. It does not say goodbye: its connection just ends."""
    with RawConnection(bootstrap) as connection:
        opened = Session(connection, group, topic, member_id, partition)
        opened.join()
        yield opened


def _batches(words: Sequence[Word], api: Any = share_fetch) -> list[Any]:
    return [api.AcknowledgementBatch(word.first, word.last, list(word.fates)) for word in words]


def _held(part: Any) -> Iterator[Held]:
    """Records that were not acquired come along in their batches and are none of our business."""
    counts = {
        offset: run.delivery_count
        for run in part.acquired_records
        for offset in range(run.first_offset, run.last_offset + 1)
    }
    records = {record.offset: record for record in _records(part.records)}
    assert counts.keys() <= records.keys(), "an acquired message was not sent along"
    for offset in sorted(counts):
        yield Held(offset, counts[offset], records[offset].value)


def _records(data: bytes) -> Iterator[Record]:
    view = memoryview(data)
    for position, header in walk(view):
        yield from decode_records(view[position : position + header.size])
