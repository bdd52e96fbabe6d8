"""Followers' fetches on this node: what they are sent, and what their fetches promise.

A follower fetches by Kafka's Fetch with its node id and broker epoch, in an incremental session (KIP-227)
that holds all logs which it follows here. It names a log whenever its offset there has changed; a fetch at
an offset promises that everything below is safe there, so it moves the high watermark. One that reads ahead
wants what lies above its promise. Only logs with news
are looked at: an append marks its log in the sessions that read it, and the answer leaves in the turn of the
append.

The high watermark alone wakes nobody: it rides on the next answer, at the latest when the poll ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from postroad.broker.connection import Answer, Connection, Part
from postroad.broker.dispatch import Call, Result
from postroad.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from postroad.broker.partition import Partition
from postroad.broker.tail_fetch import COPY_BYTES_MAX, WAIT_MS_MAX
from postroad.errors import (
    ApiError,
    FetchSessionIdNotFound,
    InvalidFetchSessionEpoch,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    StorageFailed,
)
from postroad.log.partition_log import EpochEnd, Slice
from postroad.wire import fetch as codec
from postroad.wire.fetch import FetchRequest, PartitionAnswer, PartitionFetch

if TYPE_CHECKING:
    from postroad.broker.node import Node

TIMER_S: Final = 0.001  # what the loop's timers can tell apart
SESSIONS_MAX: Final = 1000  # two for each follower: far more than a cluster has nodes

LogKey = tuple[bytes, int]

UNTOLD: Final = (-1, -1)

log = logging.getLogger(__name__)


class LogRead:
    """Where a follower is in one log. Registered with the partition for as long as it is led here."""

    __slots__ = ("diverging", "error", "fetch", "offset", "partition", "session", "told")

    def __init__(self, session: ReplicaSession) -> None:
        self.session = session
        self.partition: Partition | None = None
        self.fetch: PartitionFetch | None = None
        self.offset = -1  # where to read
        self.error: ApiError | None = None
        self.diverging: EpochEnd | None = None
        self.told = UNTOLD  # high watermark and log start of the last answer

    def written(self) -> None:
        self.session.has_news(self)

    def committed(self) -> None:
        self.session.has_numbers(self)

    def deleted(self) -> None:
        self.session.has_numbers(self)
        self.session.answer_now()

    def read_from(self, partition: Partition | None) -> None:
        if self.partition is not partition:
            self.leave()
            self.partition = partition
            if partition is not None:
                partition.replica_reads[self] = None

    def leave(self) -> None:
        if self.partition is not None:
            self.partition.replica_reads.pop(self, None)
            self.partition = None


class ReplicaSession:
    """All logs that one follower reads over one connection."""

    def __init__(self, node: Node, number: int, connection: Connection, last_read: LastRead) -> None:
        self.number = number
        self.epoch = 1
        self.connection = connection
        self._node = node
        self._last_read = last_read
        self._reads: dict[LogKey, LogRead] = {}
        self._news: dict[LogRead, None] = {}  # something to read, or an error
        self._numbers: dict[LogRead, None] = {}  # another high watermark or start
        self._poll: ReplicaPoll | None = None
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = self._expires_s = 0.0  # when the timer is due, and when the poll is

    # --- the follower's side

    def fetch(self, poll: ReplicaPoll, request: FetchRequest) -> None:
        """Take what the request says, and answer it as soon as there is something to send."""
        if self._poll is not None:  # the follower is in a hurry: it has a new log to follow
            self._answer()
        now_ms = self._node.clock.monotonic_ms()
        for topic, index in request.forgotten:
            self._forget((cast(bytes, topic), index))
        for wanted in request.partitions:
            self._take(wanted, request, now_ms)
        self._poll = poll
        if self._news:
            self._answer()
        else:
            self._wait(min(request.max_wait_ms, WAIT_MS_MAX) / 1000)

    def _take(self, wanted: PartitionFetch, request: FetchRequest, now_ms: int) -> None:
        key = cast(bytes, wanted.topic), wanted.index
        read = self._reads.get(key)
        if read is None:
            read = self._reads[key] = LogRead(self)
        read.fetch, read.error, read.diverging = wanted, None, None
        read.offset = max(wanted.offset, wanted.ahead)
        self._news.pop(read, None)
        read.told = UNTOLD  # an answer on its way may be to an earlier request, and is not looked at then
        self._numbers[read] = None
        try:
            partition = self._node.partitions.led_log(*key)
            partition.check_epoch(wanted.leader_epoch)
            read.read_from(partition)
            read.diverging = partition.log.diverging(wanted.last_epoch, read.offset)
            if read.diverging is None:
                self._promise(partition, wanted, request, now_ms)
        except ApiError as error:
            read.error = error
        except OSError as error:
            log.error("%s can't be read for a follower: %s", wanted.topic, error)
            read.error = StorageFailed(str(error))
        if (
            read.error is not None
            or read.diverging is not None
            or (read.partition is not None and read.partition.log.written_offset > read.offset)
        ):
            self._news[read] = None

    def _promise(
        self, partition: Partition, wanted: PartitionFetch, request: FetchRequest, now_ms: int
    ) -> None:
        """The follower has everything below its offset."""
        leadership, end = partition.leadership, partition.log.written_offset
        if max(wanted.offset, wanted.ahead) > end:
            raise OffsetOutOfRange(f"Offset {max(wanted.offset, wanted.ahead)} is above the end, {end}.")
        if leadership is None or request.replica_id not in leadership.replicas:
            # Its promise could not be kept, and a follower that has everything would not repeat it: it asks
            # again in a moment, when this node has read that it is a replica, or it that it is none.
            raise NotLeaderOrFollower(f"Node {request.replica_id} is no replica here.")
        if leadership.fetched(
            request.replica_id, request.replica_epoch, partition.log_number, wanted.offset, end, now_ms
        ):
            partition.commit(leadership.watermark(partition.log_number))
        leadership.starts_at(
            request.replica_id, request.replica_epoch, partition.log_number, wanted.start_offset
        )
        partition.tell_deletions()
        if leadership.wants_change:
            self._node.roles.isr_writer.request()

    def _forget(self, key: LogKey) -> None:
        read = self._reads.pop(key, None)
        if read is not None:
            read.leave()
            self._news.pop(read, None)
            self._numbers.pop(read, None)

    # --- this node's side

    def has_news(self, read: LogRead) -> None:
        """Called in a turn: the answer leaves at its end."""
        self._news[read] = None
        if self._poll is not None and not self._flushing:
            self._flushing = True
            self._node.turn.send(self)

    def has_numbers(self, read: LogRead) -> None:
        self._numbers[read] = None

    def answer_now(self) -> None:
        """Somebody waits for what the follower does with a number: its poll is answered at once."""
        if self._poll is not None:
            self._answer()

    def flush(self) -> None:
        """Called by the turn, when what it wrote can be read."""
        self._flushing = False
        if self._poll is not None and self._news:
            self._answer()

    def _wait(self, wait_s: float) -> None:
        """One timer serves all polls, since nearly all of them are answered long before it is due."""
        loop = self._node.loop
        self._expires_s = loop.time() + wait_s
        if self._timer is not None and self._timer_s <= self._expires_s:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_s = self._expires_s
        self._timer = loop.call_later(wait_s, self._due)

    def _due(self) -> None:
        """The poll has waited long enough, or came after the timer was set and waits for the rest."""
        self._timer = None
        if self._poll is None:
            return
        left_s = self._expires_s - self._node.loop.time()
        if left_s < TIMER_S:
            self._answer()
        else:
            self._wait(left_s)

    def _answer(self) -> None:
        poll, self._poll = self._poll, None
        assert poll is not None
        reads = self._news | self._numbers if self._numbers else self._news
        self._news, self._numbers = {}, {}
        left = poll.bytes_max
        answers = []
        for read in reads:
            if left <= 0:
                self._news[read] = None
                continue
            answer = self._look(read, left)
            if answer is not None:
                answers.append(answer)
                left -= _size(answer)
        if len(answers) > 1:
            answers.sort(key=_topic)
        poll.answer(codec.encode(answers, poll.version, 0, self.number))

    def _look(self, read: LogRead, left: int) -> PartitionAnswer | None:
        wanted = read.fetch
        assert wanted is not None
        partition = read.partition
        try:
            if read.error is not None:
                raise read.error
            if partition is None or partition.refusal is not None:
                self._node.partitions.led_log(cast(bytes, wanted.topic), wanted.index)
                return None
            partition.check_epoch(wanted.leader_epoch)
            records = None if read.diverging is not None else self._last_read.read(partition, read, left)
        except ApiError as error:
            read.leave()
            start = -1 if partition is None else partition.log.start_offset
            return PartitionAnswer(wanted.topic, wanted.index, error.code, -1, -1, start, None)
        except OSError as error:
            log.error("%s can't be read for a follower: %s", wanted.topic, error)
            return PartitionAnswer(wanted.topic, wanted.index, StorageFailed.code, -1, -1, -1, None)
        numbers = partition.high_watermark, partition.log.start_offset
        if records is None and read.diverging is None and numbers == read.told:
            return None
        read.told = numbers
        diverging = None if read.diverging is None else codec.EpochEnd(*read.diverging)
        purged = partition.log.purged_offset
        return PartitionAnswer(
            wanted.topic,
            wanted.index,
            0,
            numbers[0],
            numbers[0],
            numbers[1],
            records,
            diverging,
            purged=purged if purged > read.offset else 0,
        )

    def close(self) -> None:
        self._poll = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for read in self._reads.values():
            read.leave()
        self._reads.clear()


class LastRead:
    """What followers copy: all that is written, committed or not. They check every batch themselves.

    The followers of a partition mostly wait at the same offset, and are answered one after the other: what
    was read for the first is sent to the others, too.
    """

    __slots__ = ("_key", "_records")

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._records = b""

    def read(self, partition: Partition, read: LogRead, left: int) -> bytes | Slice | None:
        assert read.fetch is not None
        log, offset, bytes_max = partition.log, read.offset, min(read.fetch.max_bytes, left)
        key = (log, partition.leader_epoch, offset, log.start_offset, log.written_offset)
        if key == self._key and len(self._records) <= bytes_max:
            return self._records
        found = log.read(log.copied_from(offset), bytes_max, log.written_offset)
        if found is None or (found.length > COPY_BYTES_MAX and found.file.fileno() >= 0):
            return found
        records = found.file.read(found.position, found.length)
        if found.length <= COPY_BYTES_MAX:
            self._key, self._records = key, records
        return records


def _size(answer: PartitionAnswer) -> int:
    records = answer.records
    if records is None:
        return 0
    return len(records) if isinstance(records, bytes) else records.length


def _topic(answer: PartitionAnswer) -> bytes:
    return cast(bytes, answer.topic)


class ReplicaPoll(Answer):
    """A follower's fetch while it waits for something to copy."""

    __slots__ = ("bytes_max", "version")

    def __init__(self, call: Call, bytes_max: int) -> None:
        Answer.__init__(self, call.connection, call.correlation, call.flexible)
        self.version = call.version
        self.bytes_max = bytes_max
        call.connection.park(self)

    def answer(self, parts: list[codec.Part]) -> None:
        first = parts[0]
        if len(parts) == 1 and isinstance(first, bytes):
            self.complete(first)
        else:
            self.complete(cast("list[Part]", parts))


class ReplicaSessions:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._next = 1
        self._sessions: dict[int, ReplicaSession] = {}
        self._last_read = LastRead()

    def fetch(self, call: Call, request: FetchRequest) -> Result:
        """A follower's request: its session begins, goes on or ends."""
        try:
            session = self._session(call, request)
        except ApiError as error:
            return b"".join(cast("list[bytes]", codec.encode([], call.version, error.code)))
        poll = ReplicaPoll(call, min(request.max_bytes, self._node.settings.limits.fetch_bytes_max))
        session.fetch(poll, request)
        return poll

    def _session(self, call: Call, request: FetchRequest) -> ReplicaSession:
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(request.session_id)
            return self._open(call.connection, request.replica_id)
        session = self._sessions.get(request.session_id)
        if session is None or session.connection is not call.connection:
            raise FetchSessionIdNotFound()
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch()
        session.epoch += 1
        return session

    def _open(self, connection: Connection, replica: int) -> ReplicaSession:
        connection.when_closed(lambda _: self._lost(replica))
        if len(self._sessions) >= SESSIONS_MAX:
            self._end(next(iter(self._sessions)))
        session = self._sessions[self._next] = ReplicaSession(
            self._node, self._next, connection, self._last_read
        )
        self._next += 1
        return session

    def _end(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            session.close()

    def _lost(self, replica: int) -> None:
        self._sweep()
        self._node.suspects.suspect(replica)

    def _sweep(self) -> None:
        """Sessions end with their connections."""
        for number in [n for n, session in self._sessions.items() if session.connection.closed]:
            self._end(number)
