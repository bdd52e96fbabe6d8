"""`Scanner`: reads a partition's log for a queue.

What the core does not know yet is read from the frontier on and told to it: bytes that this process wrote or
has checked at once, others when a thread has checked them. Where duplicates are left out, what tells them is
read before it (`lookback`). Where only what is committed counts, reading ends at the stable offset and passes
over what was aborted (`isolation`). What was acquired is found again, most often in what was read last.

A log that can't be read is a matter of its partition alone: nothing is raised and nothing skipped. `trouble`
says what is wrong with it, and it is tried again once a second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from postroad.broker.partition import Partition
from postroad.broker.subscriptions.duplicates import Duplicates
from postroad.broker.subscriptions.isolation import aborted_between
from postroad.broker.subscriptions.lookback import lookback
from postroad.broker.subscriptions.schedule_file import Identity, ScheduleFile
from postroad.broker.subscriptions.stretch import Stretch
from postroad.errors import ApiError, OffsetOutOfRange, StorageFailed
from postroad.log.partition_log import Slice
from postroad.now import Now
from postroad.queues.entry import QueueEntry
from postroad.queues.schedule_snapshot import Snapshot
from postroad.queues.settings import Order
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import SharePartition
from postroad.wire.scan import IsAborted, scan

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.subscriptions.subscription import Subscription

SCAN_BYTES: Final = 1 << 19  # read and told to the core at a time
RETRY_MS: Final = 1_000  # after the log could not be read

log = logging.getLogger(__name__)


class Scanner:
    def __init__(
        self,
        node: Node,
        subscription: Subscription,
        partition: Partition,
        core: SharePartition,
        commit: Callable[[Settlement], None],
        go_on: Callable[[], None],
    ) -> None:
        """`commit` takes what the core decides when it hears of messages. `go_on` is called when it is worth
        trying again, after `scan` or `stretch_at` had nothing to show."""
        self._node = node
        self._subscription = subscription
        self._partition = partition
        self._core = core
        self._commit = commit
        self._go_on = go_on
        self._stretch: Stretch | None = None  # what was scanned last: likely what is acquired next
        self._again: Stretch | None = None  # what was read again last, for what was known for longer
        self._checking = False  # a thread reads
        self.trouble: ApiError | None = None  # why the log could not be read when that was tried last
        self._rests = False  # it is not tried again just now
        self._duplicates: Duplicates | None = None
        self._schedule_file = ScheduleFile(node, subscription.group_id, partition, core)
        self._is_restored = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """The core's frontier moves back, or it must know something else of the messages."""
        window_ms = self._subscription.settings.deduplicate_ms
        self._duplicates = Duplicates(window_ms) if window_ms else None
        self._committed_only = self._subscription.settings.committed_only
        self._stretch = self._again = None

    def scan(self, now: Now, bytes_max: int) -> int:
        """Read on from the frontier; how many bytes. 0: there is nothing more, a thread reads it, or it can't
        be read now."""
        if self._checking or self._rests or self._restores():
            return 0
        frontier = self._core.frontier
        try:
            known_to = frontier if self._duplicates is None else self._duplicates_known_to(now)
            read = self._partition.read_stable if self._committed_only else self._partition.read
            found = read(known_to, min(SCAN_BYTES, max(bytes_max, 1)))
            if found is None:
                return 0
            if not found.verified:
                self._scan_cold(found)
                return 0
            data = found.file.read(found.position, found.length)
            stretch = Stretch(data)
            is_aborted = self._aborted_between(known_to, stretch.upto)
        except (ApiError, OSError) as error:
            self._unreadable(error)
            return 0
        self.trouble = None
        if known_to < frontier:
            self._remember(data, stretch, is_aborted, known_to)
        else:
            self._learn(data, stretch, is_aborted, now)
        return found.length

    def stretch_at(self, offset: int) -> Stretch | None:
        """Messages from this offset on, which the core knows; None if they can't be read now."""
        for stretch in (self._stretch, self._again):
            if stretch is not None and stretch.holds(offset):
                return stretch
        if self._rests:
            return None
        try:
            found = self._partition.read(offset, SCAN_BYTES)
            if found is None:
                return None
            if not found.verified:  # the core knows it, so it was checked once; compaction may have moved it
                self._partition.log.verify(found)
                self._partition.log.mark_verified(found)
            self._again = Stretch(found.file.read(found.position, found.length))
        except (ApiError, OSError) as error:
            self._unreadable(error)
            return None
        self.trouble = None
        return self._again

    def _duplicates_known_to(self, now: Now) -> int:
        """Up to where it is known which messages repeat which: the frontier, or what is read before it."""
        duplicates, frontier = self._duplicates, self._core.frontier
        assert duplicates is not None
        upto = duplicates.upto
        if upto is None or not self._partition.log.start_offset <= upto <= frontier:
            begin = lookback(self._partition, frontier, duplicates.window_ms, now.wall_ms)
            duplicates.begin(*begin)
            upto = begin.first
        return upto

    def _aborted_between(self, first: int, below: int) -> IsAborted | None:
        return aborted_between(self._partition, first, below) if self._committed_only else None

    def _remember(self, data: bytes, stretch: Stretch, is_aborted: IsAborted | None, first: int) -> None:
        """What lies before the frontier only tells what is repeated behind it."""
        duplicates, frontier = self._duplicates, self._core.frontier
        assert duplicates is not None

        def remember(identity: bytes, offset: int, timestamp: int) -> bool:
            if offset < frontier:
                duplicates.remember(identity, offset, timestamp)
            return False

        name = self._subscription.group_id.encode()
        scan(data, first, is_duplicate=remember, is_aborted=is_aborted, subscription=name)
        duplicates.upto = min(stretch.upto, frontier)

    def _learn(self, data: bytes, stretch: Stretch, is_aborted: IsAborted | None, now: Now) -> None:
        self._stretch = stretch
        entries = self._entries(data, is_aborted)
        for settlement in (self._core.extend(stretch.upto, entries, now), self._core.pass_gaps()):
            if settlement is not None:
                self._commit(settlement)
        if self._duplicates is not None:
            self._duplicates.upto = stretch.upto
        elif not self._committed_only:
            self._schedule_file.save_if_worth(now)

    def _entries(self, data: bytes, is_aborted: IsAborted | None) -> list[QueueEntry]:
        found = scan(
            data,
            self._core.frontier,
            keys=self._core.settings.order is Order.KEY,
            tenant_header=self._subscription.settings.fair_by.encode() or None,
            is_duplicate=None if self._duplicates is None else self._duplicates.is_duplicate,
            is_aborted=is_aborted,
            subscription=self._subscription.group_id.encode(),
        )
        return cast("list[QueueEntry]", found)  # the same fields; there may be too many to build each anew

    def _restores(self) -> bool:
        """Whether what was known before a start is being read; it is looked for once."""
        if self._is_restored:
            return False
        self._is_restored = True
        if self._committed_only or self._duplicates is not None or not self._schedule_file.exists():
            return False
        self._checking = True

        def done(found: tuple[Identity, Snapshot] | None, error: BaseException | None) -> None:
            self._checking = False
            if self._partition.closed:
                return
            if error is not None:
                log.warning(
                    "the saved schedule of delayed messages can't be read; reading the log instead: %s", error
                )
            elif found is not None and self._duplicates is None and not self._committed_only:
                self._schedule_file.restore(*found, self._node.clock.now())
            self._go_on()

        self._node.cold_workers.run(self._schedule_file.read, done)
        return True

    def _scan_cold(self, found: Slice) -> None:
        """What lay on the disk is checked in a thread first; then it is worth trying again."""
        self._checking = True
        partition = self._partition

        def read() -> bytes:
            partition.log.verify(found)
            return found.file.read(found.position, found.length)

        def done(data: bytes, error: BaseException | None) -> None:
            self._checking = False
            if partition.closed:
                return
            if error is not None:
                self._unreadable(error)
                return
            partition.log.mark_verified(found)
            self._go_on()

        self._node.cold_workers.run(read, done)

    def _unreadable(self, error: BaseException) -> None:
        """It is tried again, and operators are told."""
        if isinstance(error, OffsetOutOfRange):
            return  # retention was faster; the core hears of it with the next request
        log.error("%s-%d can't be read: %s", self._partition.topic, self._partition.index, error)
        if not isinstance(error, (ApiError, OSError)):
            raise error
        told = f"{self._partition.topic}-{self._partition.index} can't be read: {error}"
        self.trouble = error if isinstance(error, ApiError) else StorageFailed(told)
        self._rests = True
        self._node.loop.call_later(RETRY_MS / 1000, self._try_again)

    def _try_again(self) -> None:
        self._rests = False
        self._go_on()
