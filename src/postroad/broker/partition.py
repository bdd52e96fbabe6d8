"""A partition on this node: its log, its role, its high watermark, and who waits for it.

Role. A partition leads or follows, as the coordination store says (`roles`); a change is synchronous, so no
request ever meets half of one. Who leads takes appends. Who follows copies what its leader has
(`replica_fetcher`). Where there is one replica its leader is alone, and `leadership` is None.

High watermark. A record may be read and an acks=all answer may leave only when the record is as safe as its
topic promises. On one replica it is safe when it is on the disk (flush `sync`) or in the file (`os` and
`interval`: the kernel keeps it over a crash of the process); with several replicas, when it is so on all
that are in sync (`replication.leader`). L11: log start ≤ high watermark ≤ log end; while a node leads it
never falls. The stable offset follows it as far as transactions have ended (`log.producers`).

A sync that fails leaves it where it is, and those who wait hear an error that means "unknown": the next
opening can't tell their records from others that were synced just before a crash, and keeps what is whole.

Waiting. `producers` wait for an offset to be committed; `readers` are long polls that any new committed
record wakes; `replica_reads` are followers' fetches, which see what is written before it is committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from postroad.broker.commit_waiters import NEVER, Committed, CommitWaiters
from postroad.broker.flusher import Flusher
from postroad.broker.outage import Outage
from postroad.broker.turn import Turn
from postroad.errors import (
    ApiError,
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    StorageFailed,
    UnknownLeaderEpoch,
)
from postroad.log.partition_log import Appended, PartitionLog, Slice
from postroad.replication.follower import Follower
from postroad.replication.leader import ANYWHERE, MESSAGES, Leader
from postroad.wire.batch import Fields

if TYPE_CHECKING:
    from postroad.broker.transactions.gates import Gate

FLUSH_SYNC, FLUSH_INTERVAL = "sync", "interval"

log = logging.getLogger(__name__)


class Reader(Protocol):
    def wake(self) -> None: ...
    def expire(self) -> None: ...


class ReplicaRead(Protocol):
    """A follower that copies the log."""

    def written(self) -> None:
        """There is more to fetch, or the partition is not led any more."""

    def committed(self) -> None:
        """The high watermark has moved."""

    def deleted(self) -> None:
        """The log's start has moved, and somebody waits for the follower to follow it."""


class Copying(Protocol):
    """What fetches for a partition that follows."""

    @property
    def is_current(self) -> bool:
        """Whether the leader answered a moment ago: what is committed there is soon known here."""

    def read_here(self) -> None:
        """A consumer reads what is followed: it should hear soon of what is committed."""

    def safe(self, partition: Partition) -> None:
        """More of what was appended is safe, as far as the follower's safe offset says."""

    def failed(self, partition: Partition) -> None:
        """What was appended can't be made safe: the log refuses to go on."""


Inspect = Callable[[memoryview, Fields], tuple[memoryview, Fields]]


class Partition:
    __slots__ = (
        "_flusher",
        "_outage",
        "_quiet",
        "_staged",
        "_turn",
        "busy",
        "closed",
        "copying",
        "deletions",
        "flush",
        "flush_interval_ms",
        "follower",
        "gates",
        "high_watermark",
        "index",
        "inspect",
        "internal",
        "is_full",
        "is_leaving",
        "is_left",
        "lacks_replicas",
        "leader_epoch",
        "leadership",
        "ledger",
        "log",
        "log_number",
        "min_insync_replicas",
        "opened_at",
        "producers",
        "readers",
        "refusal",
        "replica_reads",
        "stable_offset",
        "sync_timer",
        "syncing",
        "topic",
        "topic_id",
        "write_error",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: PartitionLog,
        turn: Turn,
        flusher: Flusher,
        flush: str = FLUSH_SYNC,
        flush_interval_ms: int = 1000,
        inspect: Inspect | None = None,
        internal: bool = False,
        min_insync_replicas: int = 1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.leader_epoch = -1
        self.refusal: ApiError | None = NotLeaderOrFollower()  # what appends are told; None: it leads
        self.leadership: Leader | None = None  # where it leads and there are other replicas
        self.follower: Follower | None = None  # where it follows
        self.copying: Copying | None = None  # where it has a leader to follow
        self.log_number = MESSAGES  # which of the partition's logs this is, to `leadership`
        self.lacks_replicas = False  # acks=all is refused
        self.is_leaving = False  # it is handed over when everything is committed: clients send nothing more
        self.is_left = False  # another may lead by now, since nobody fetches: acks=all is sent there
        self.replica_reads: dict[ReplicaRead, None] = {}
        self.flush = flush
        self.flush_interval_ms = flush_interval_ms
        self.min_insync_replicas = min_insync_replicas  # acks=all needs so many
        self.ledger: Partition | None = None  # what subscriptions are done with, where any ever was
        self.internal = internal  # of a topic that the nodes keep for themselves
        self.inspect = inspect  # only where the topic's configs ask to look inside batches
        self.opened_at = log.end_offset  # what lies before was here before this process was
        self.high_watermark = min(max(log.watermark, log.start_offset), log.end_offset)
        self.stable_offset = log.stable_offset(self.high_watermark)
        self.producers = CommitWaiters()
        self.deletions = CommitWaiters()  # until everybody who may lead has deleted what lies below
        self.readers: dict[Reader, None] = {}
        self.write_error: StorageFailed | None = None  # of this turn
        self.is_full = False  # its disk refused the last write for want of room, and may take the next one
        self.syncing = self.busy = False  # busy: housekeeping has a job on the log's files in a thread
        self.sync_timer: asyncio.TimerHandle | None = None
        self.gates: dict[tuple[int, int], Gate] = {}  # by producer and epoch (`transactions.gates`)
        self.closed = self._staged = False
        self._quiet: asyncio.Future[None] | None = None
        self._turn = turn
        self._flusher = flusher
        self._outage = Outage(logging.getLogger(__name__), f"partition {topic}-{index}")

    # --- roles

    @property
    def leads(self) -> bool:
        return self.refusal is None

    def become_leader(self, leader_epoch: int, leadership: Leader | None, log_number: int = MESSAGES) -> None:
        """This node leads from here on, alone or with the other replicas that `leadership` counts."""
        self.follower = self.copying = None
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)
        self.log_number = log_number
        self.refusal = None
        self.is_full = self.is_leaving = False
        self.share_leadership(leadership)

    def share_leadership(self, leadership: Leader | None) -> None:
        """The replicas, or who of them is in sync, have changed while this node leads."""
        self.leadership = leadership
        if leadership is None:
            self.lacks_replicas, self.is_left = self.min_insync_replicas > 1, False
        else:
            self.lacks_replicas = self.is_left or not leadership.enough_replicas
        self._advance(self.safe_offset)
        self.tell_deletions()

    def note_left(self, is_left: bool) -> None:
        """Whether the followers seem to have gone to another leader. Producers are told to look for it: what
        they sent may be committed there all the same, or by this leader if it leads after all."""
        leadership = self.leadership
        if leadership is None:
            return
        self.is_left = is_left
        self.lacks_replicas = is_left or not leadership.enough_replicas
        if is_left:
            unknown = NotLeaderOrFollower("Another node may lead by now; the outcome is unknown.")
            self.producers.send_away(unknown)

    def become_follower(self, leader_epoch: int) -> None:
        """Another node leads, or nobody. Whoever waits is told, and asks there."""
        if self._staged:  # a follower knows what is in its file, and promises no more
            self.write()
        self.leadership = None
        self.is_left = self.is_leaving = False
        self.leader_epoch = leader_epoch
        self.log.end_epoch()
        self.log_number = MESSAGES
        self.refusal = NotLeaderOrFollower()
        if self.follower is None:
            self.follower = Follower(
                log_start=self.log.start_offset,
                end_offset=self.log.end_offset,
                last_epoch=self.log.last_epoch,
                safe_offset=self.safe_offset,
                watermark=self.high_watermark,
                purged=self.log.purged_offset,
            )
        for waiters in (self.producers, self.deletions):
            waiters.fail(NotLeaderOrFollower("Another node leads the partition; the outcome is unknown."))
        self.expire_readers()
        for read in list(self.replica_reads):
            read.written()

    @property
    def safe_offset(self) -> int:
        """Everything below is as safe on this node as the topic's flush mode promises."""
        return self.log.synced_offset if self.flush == FLUSH_SYNC else self.log.written_offset

    # --- in

    def append(
        self, batch: memoryview, header: Fields, now_ms: int, *, any_size: bool = False, may_open: bool = True
    ) -> Appended:
        """Stage a checked batch; it is in the file when this turn has ended (or `write_error` is set).

        `any_size`: the topic's limits are not for this one. `may_open`: it may open a transaction."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)
        appended = self.log.append(
            batch, header, self.leader_epoch, now_ms, any_size=any_size, may_open=may_open
        )
        if not self._staged:
            self._staged = True
            self._turn.stage(self)
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        *,
        strict: bool,
    ) -> bool:
        """Stage the end of a producer's transaction; False if it has ended so before."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)
        appended = self.log.append_marker(
            producer_id, producer_epoch, commit, coordinator_epoch, now_ms, strict=strict
        )
        if appended and not self._staged:
            self._staged = True
            self._turn.stage(self)
        return appended

    def append_copy(self, batches: memoryview, now_ms: int) -> None:
        """Stage what the leader has sent; it is in the file when this turn has ended.

        Raises ApiError if it can't be what the leader has; what came before may be staged.
        """
        try:
            self.log.append_copy(batches, self.leader_epoch, now_ms)
        finally:
            if not self._staged and self.log.end_offset > self.log.written_offset:
                self._staged = True
                self._turn.stage(self)

    def copied(self) -> None:
        """What was staged by `append_copy` is in the file, and the follower knows of it."""
        self._advance(self.safe_offset)

    def write(self) -> None:
        """Called by the turn: staged batches reach the file, then the watermark or a sync moves on."""
        self._staged = False
        self.write_error = None
        try:
            self.log.write()
        except StorageFailed as refused:
            self._outage.failed(refused)
            self.write_error = refused
            self.is_full = self.log.failed is None
        except Exception:
            log.exception("partition %s-%d stops: its log is not what it should be", self.topic, self.index)
            self.write_error = self.log.failed = StorageFailed("A defect stopped this partition.")
        else:
            self.is_full = False
            if self._outage.failures:
                self._outage.worked()
        if self.replica_reads:
            for read in self.replica_reads:
                read.written()
        if self.flush == FLUSH_SYNC:
            self._flusher.request(self)
            return
        if self.leadership is None and self.refusal is None:  # as `_advance`, where it leads alone
            self.commit(self.log.written_offset)
        else:
            self._advance(self.log.written_offset)
        if self.flush == FLUSH_INTERVAL:
            self._flusher.request_later(self, self.flush_interval_ms)
        elif self.log.has_rolled:  # a start after a crash reads and writes anew what was never synced
            self._flusher.request(self)

    def synced(self) -> None:
        """Called by the flusher on the loop, after `log.finish_sync`.

        What was synced is committed, also where a write has failed meanwhile; nothing else will be then.
        """
        self._turn.begin()
        if self.flush == FLUSH_SYNC:
            self._advance(self.log.synced_offset)
        if self.log.failed is not None:
            log.error("partition %s-%d refuses appends: %s", self.topic, self.index, self.log.failed)
            self.producers.fail(_unknown(self.log.failed))
            if self.copying is not None:
                self.copying.failed(self)
        elif self.flush == FLUSH_SYNC and self.log.synced_offset < self.log.written_offset:
            self._flusher.request(self)
        self._turn.end()

    def when_committed(self, offset: int, call: Committed, deadline_ms: int = NEVER) -> None:
        """Call when everything below `offset` is committed, at once if it is already, or when it can't be.

        After `deadline_ms`, on the monotonic clock, it is called with RequestTimedOut.
        """
        if offset <= self.high_watermark:
            call(None)
        elif self.log.failed is not None:
            call(_unknown(self.log.failed))
        elif self.refusal is not None:
            call(self.refusal)
        else:
            self.producers.add(offset, call, deadline_ms)

    def when_deleted(self, offset: int, call: Committed, deadline_ms: int) -> None:
        """Call when the logs of all who may lead start at the offset or behind it, as this one does; or when
        that can't be, or the deadline has passed."""
        if self.refusal is not None:
            call(self.refusal)
            return
        for read in list(self.replica_reads):  # one that asks for what is gone leaves
            read.deleted()
        self.deletions.add(offset, call, deadline_ms)
        self.tell_deletions()

    def tell_deletions(self) -> None:
        """Another replica may have followed the start, or may not be elected any more."""
        if self.deletions.waiting:
            leader = self.leadership
            self.deletions.commit(ANYWHERE if leader is None else leader.known_start(self.log_number))

    def change_flush(self, flush: str, interval_ms: int) -> None:
        """A config was altered; what waits under the old promise is still kept to it."""
        self.flush, self.flush_interval_ms = flush, interval_ms
        self._flusher.request(self)
        if flush != FLUSH_SYNC and self.log.failed is None:
            self._advance(self.log.written_offset)

    # --- out

    def read(self, offset: int, max_bytes: int) -> Slice | None:
        """Committed batches from `offset` on. Raises OffsetOutOfRange."""
        return self.log.read(offset, max_bytes, self.high_watermark)

    def read_stable(self, offset: int, max_bytes: int) -> Slice | None:
        """As `read`, and all transactions in them have ended: see `log.aborted` how."""
        return self.log.read(offset, max_bytes, self.stable_offset)

    def aborted(self, offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of transactions that were aborted and reach into what is stable from
        `offset` on. Raises OSError."""
        return [entry[:2] for entry in self.log.aborted(offset, self.stable_offset)]

    def check_epoch(self, leader_epoch: int) -> None:
        """Fence a request that speaks of another leadership (KIP-320); -1 does not care."""
        if leader_epoch in (-1, self.leader_epoch):
            return
        if leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch()
        raise UnknownLeaderEpoch()

    def close(self) -> None:
        """No appends from here on; everyone who waits is told. The log is closed by the caller."""
        self.closed = True
        self.log.watermark = self.high_watermark
        self.refusal = StorageFailed("The partition is closing.")
        if self.sync_timer is not None:
            self.sync_timer.cancel()
        for waiters in (self.producers, self.deletions):
            waiters.fail(StorageFailed("The partition was closed."))
        self._wake_readers()

    def with_ledger(self) -> tuple[Partition, ...]:
        """All logs of the partition: its messages' and, where there is one, its ledger."""
        return (self,) if self.ledger is None else (self, self.ledger)

    def expire_readers(self) -> None:
        """Long polls are answered with what there is: the node stops."""
        for reader in list(self.readers):
            self._call(reader.expire)

    async def quiet(self) -> None:
        """Wait until no job in a thread holds the log's files; only after `close`."""
        while self.syncing or self.busy:
            self._quiet = asyncio.get_running_loop().create_future()
            await self._quiet

    def note_quiet(self) -> None:
        """A job in a thread has returned."""
        if self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)

    # --- helpers

    def _advance(self, safe_offset: int) -> None:
        """Everything below the offset is safe on this node."""
        if self.leadership is not None:
            if self.leadership.own(self.log_number, safe_offset):
                self.commit(self.leadership.watermark(self.log_number))
        elif self.refusal is None:  # it leads alone
            self.commit(safe_offset)
        elif self.follower is not None:
            self._advance_copy(self.follower, safe_offset)

    def _advance_copy(self, follower: Follower, safe_offset: int) -> None:
        follower.safe(safe_offset)
        is_news = follower.watermark > self.high_watermark
        self.set_watermark(follower.watermark)
        if is_news and self.readers:
            self._wake_readers()
        if self.copying is not None:
            self.copying.safe(self)

    def commit(self, offset: int) -> None:
        """The high watermark moves to the offset, unless it is there already."""
        if offset <= self.high_watermark:
            return
        self.set_watermark(offset)
        if self.replica_reads:
            for read in self.replica_reads:
                read.committed()
        if self.producers.waiting:
            self.producers.commit(offset)
        if self.readers:
            self._wake_readers()

    def set_watermark(self, offset: int) -> None:
        """The stable offset moves with the watermark only: what opens or ends a transaction lies above it."""
        self.high_watermark = offset
        states = self.log.producer_states
        self.stable_offset = self.log.stable_offset(offset) if states.open or states.ended else offset

    def _wake_readers(self) -> None:
        for reader in list(self.readers):
            self._call(reader.wake)

    def _call(self, wake: Callable[[], None]) -> None:
        try:
            wake()
        except Exception:  # other readers, and the producers of this turn, go on
            log.exception("a reader of %s-%d could not be woken", self.topic, self.index)


def _unknown(failed: StorageFailed) -> StorageFailed:
    """For what is in the file though its sync failed: recovery keeps it if it is whole, or cuts it."""
    return StorageFailed(f"{failed} A restart of the node will show whether this was kept.")
