"""A partition on this node: its log, its high watermark, and who waits for it.

High watermark. A record may be read and an acks=all answer may leave only when the record is as
safe as its topic promises: with flush `sync` when it is on the disk, with `os` and `interval` when
it is in the file (the kernel keeps it over a crash of the process). L11: log start ≤ high watermark
≤ log end, and it never falls.

A sync that fails leaves it where it is, and those who wait hear an error that means "unknown": the next
opening can't tell their records from others that were synced just before a crash, and keeps what is whole.

Waiting. `producers` wait for an offset to be committed, in the order of their appends; `readers`
are long polls that any new committed record wakes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from postroad.broker.commit_waiters import NEVER, Committed, CommitWaiters
from postroad.broker.flusher import Flusher
from postroad.broker.outage import Outage
from postroad.broker.turn import Turn
from postroad.errors import FencedLeaderEpoch, StorageFailed, UnknownLeaderEpoch
from postroad.log.partition_log import Appended, PartitionLog, Slice
from postroad.wire.batch import Fields

REPLICAS: Final = 1  # of every partition, for as long as a cluster is one node

FLUSH_SYNC = "sync"
FLUSH_INTERVAL = "interval"

log = logging.getLogger(__name__)


class Reader(Protocol):
    def wake(self) -> None: ...
    def expire(self) -> None: ...


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
        "flush",
        "flush_interval_ms",
        "high_watermark",
        "index",
        "inspect",
        "internal",
        "leader_epoch",
        "ledger",
        "log",
        "min_insync_replicas",
        "opened_at",
        "producers",
        "readers",
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
        leader_epoch: int,
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
        self.lead(leader_epoch)
        self.flush = flush
        self.flush_interval_ms = flush_interval_ms
        self.min_insync_replicas = min_insync_replicas  # acks=all needs so many; there is one so far
        self.ledger: Partition | None = None  # what subscriptions are done with, where any ever was
        self.internal = internal  # of a topic that the nodes keep for themselves
        self.inspect = inspect  # only where the topic's configs ask to look inside batches
        self.opened_at = log.end_offset  # what lies before was here before this process was
        self.high_watermark = log.end_offset  # what recovery kept is committed: there is one copy
        self.producers = CommitWaiters()
        self.readers: dict[Reader, None] = {}
        self.write_error: StorageFailed | None = None  # of this turn
        self.syncing = False
        self.busy = False  # housekeeping has a job on the log's files in a thread
        self.sync_timer: asyncio.TimerHandle | None = None
        self.closed = False
        self._staged = False
        self._quiet: asyncio.Future[None] | None = None
        self._turn = turn
        self._flusher = flusher
        self._outage = Outage(logging.getLogger(__name__), f"partition {topic}-{index}")

    # --- in

    def lead(self, leader_epoch: int) -> None:
        """This node leads the partition in this epoch from here on."""
        self.leader_epoch = leader_epoch
        self.log.begin_epoch(leader_epoch)

    def append(self, batch: memoryview, header: Fields, now_ms: int, *, any_size: bool = False) -> Appended:
        """Stage a checked batch; it is in the file when this turn has ended (or `write_error` is set).

        `any_size`: the topic's limits are not for this one."""
        if self.closed:
            raise StorageFailed("The partition is closing.")
        appended = self.log.append(batch, header, self.leader_epoch, now_ms, any_size=any_size)
        if not self._staged:
            self._staged = True
            self._turn.stage(self)
        return appended

    def write(self) -> None:
        """Called by the turn: staged batches reach the file, then the watermark or a sync moves on."""
        self._staged = False
        self.write_error = None
        try:
            self.log.write()
        except StorageFailed as refused:
            self._outage.failed(refused)
            self.write_error = refused
        except Exception:
            log.exception("partition %s-%d stops: its log is not what it should be", self.topic, self.index)
            self.write_error = self.log.failed = StorageFailed("A defect stopped this partition.")
        else:
            self._outage.worked()
        if self.flush == FLUSH_SYNC:
            self._flusher.request(self)
            return
        self._commit(self.log.written_offset)
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
            self._commit(self.log.synced_offset)
        if self.log.failed is not None:
            log.error("partition %s-%d refuses appends: %s", self.topic, self.index, self.log.failed)
            self.producers.fail(_unknown(self.log.failed))
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
        else:
            self.producers.add(offset, call, deadline_ms)

    def change_flush(self, flush: str, interval_ms: int) -> None:
        """A config was altered; what waits under the old promise is still kept to it."""
        self.flush, self.flush_interval_ms = flush, interval_ms
        self._flusher.request(self)
        if flush != FLUSH_SYNC and self.log.failed is None:
            self._commit(self.log.written_offset)

    # --- out

    def read(self, offset: int, max_bytes: int) -> Slice | None:
        """Committed batches from `offset` on. Raises OffsetOutOfRange."""
        return self.log.read(offset, max_bytes, self.high_watermark)

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
        if self.sync_timer is not None:
            self.sync_timer.cancel()
        self.producers.fail(StorageFailed("The partition was closed."))
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

    def _commit(self, offset: int) -> None:
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self.producers:
            self.producers.commit(offset)
        self._wake_readers()

    def _wake_readers(self) -> None:
        if self.readers:
            for reader in list(self.readers):
                self._call(reader.wake)

    def _call(self, wake: Callable[[], None]) -> None:
        try:
            wake()
        except Exception:  # other readers, and the producers of this turn, go on
            log.exception("a reader of %s-%d could not be woken", self.topic, self.index)


def _unknown(failed: StorageFailed) -> StorageFailed:
    """For what is in the file though its sync failed: recovery keeps it if it is whole, or cuts it."""
    return StorageFailed(f"{failed} Whether this was kept shows when the node has been restarted.")
