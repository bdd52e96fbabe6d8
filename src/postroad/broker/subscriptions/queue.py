"""A subscription's queue on one partition: the room's `SharePartition`, bound to the log.

*Out.* `deliver` asks the core for messages. What it does not know yet is read from the log and told to it
(`Scanner`). What was acquired is cut out of the log's batches. An offset that was acquired and is not in the
answer would be taken for a gap by the client and be archived, so whatever can't be read or does not fit is
given back before the answer is made. What compaction took out of the log since it was read is done.

*Back.* An acknowledgement is decided by the core, written by `states`, and answered when it is applied.

*Waiting.* Members that found nothing wait in `waiters`, first come, first served; a commit of the log, a
release, or the end of a lock or a delay wakes them. One timer stands for all deadlines of the core. A scan of
the log is short, however much lies before what is available: the next one follows when others had their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from postroad.broker.partition import Partition
from postroad.broker.replies import Reply
from postroad.broker.subscriptions.asked_pledge import AskedPledge
from postroad.broker.subscriptions.isolation import readable_end
from postroad.broker.subscriptions.scanner import SCAN_BYTES, Scanner
from postroad.broker.subscriptions.states import QueueStates
from postroad.broker.subscriptions.stretch import Range, Stretch
from postroad.errors import ApiError
from postroad.now import Now
from postroad.queues.ranges import RangeSet
from postroad.queues.settings import QueueSettings
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import AckBatch, Acquired, SharePartition
from postroad.queues.transactions import is_under_way
from postroad.queues.update import Update

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.subscriptions.subscription import Subscription
    from postroad.transactions.transaction import Producer

SCANS_MAX: Final = 4  # in one go; then others have their turn
SCAN_MS: Final = 5  # also then: where each message asks for something a scan takes long
RETRY_MS: Final = 1_000  # after the state could not be written
TIMER_MS_MAX: Final = 60_000  # a timer wakes after this, however far away the deadline is
STEP_MS: Final = 1_000  # by less the wall clock may gain or lose against the monotonic one


class Waiter(Protocol):
    def wake(self) -> None: ...
    def expire(self) -> None: ...


class Wanted(NamedTuple):
    """What a member asks a queue for."""

    member: str
    records_max: int
    bytes_max: int
    lock_ms: int | None  # None: as the subscription says
    run_max: int = 1  # messages of one key, where their order counts
    one_at_least: bool = True  # one batch, though it passes `bytes_max`


class Delivery(NamedTuple):
    parts: list[memoryview | bytes]
    size: int  # bytes that it takes in an answer
    acquired: list[Acquired]
    settlement: Settlement | None  # at most once: to be committed before it is sent


class Queue:
    def __init__(
        self,
        node: Node,
        subscription: Subscription,
        partition: Partition,
        core: SharePartition,
        states: QueueStates,
    ) -> None:
        self.subscription = subscription
        self.partition = partition
        self.core = core
        self.waiters: dict[Waiter, None] = {}
        self.asked_pledges: dict[AskedPledge, None] = {}
        self.closed = False
        self._node = node
        self._states = states
        self._scanner = Scanner(node, subscription, partition, core, self._commit_unasked, self._resume_scan)
        self._scan_scheduled = False  # the last scan did not come to the end: the next is due
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._quiet_until = 0  # the state can't be written: until then nothing is settled unasked
        now = self.now()
        self._wall_ahead = now.wall_ms - now.ms
        self._unknown_below = states.led_from  # of messages here it is not known who held them before

    # --- out

    def deliver(self, wanted: Wanted) -> Delivery | None:
        """Messages for the member, locked; None if there are none now."""
        core, now = self.core, self.now()
        self._notice_step(now)
        at = core.next_deadline()
        if at is not None and at <= now.ms:
            self._expire_locks(now)
        elif not core.ready and core.frontier >= self.end:
            return None  # what nearly all find who wait
        acquired = self._acquire(wanted, now)
        self._settle_expired(now)
        delivery = self._read(acquired, wanted) if acquired else None
        self._arm(now)
        return delivery

    def _acquire(self, wanted: Wanted, now: Now) -> list[Acquired]:
        core, partition = self.core, self.partition
        if partition.log.start_offset > core.start:
            core.log_starts_at(partition.log.start_offset)
        if core.settings.fair and not self._scan_scheduled:
            self._prefetch(now)
        member, records_max, bytes_max, lock_ms, run_max, _ = wanted
        acquired = core.acquire(member, records_max, now, lock_ms, None, run_max) if core.ready else []
        left = records_max - _count(acquired) if acquired else records_max
        if left > 0 and bytes_max > 0 and not self._scan_scheduled:
            acquired += self._scan_and_acquire(wanted, left, now)
        return acquired if len(acquired) < 2 else sorted(acquired)

    def _scan_and_acquire(self, wanted: Wanted, left: int, now: Now) -> list[Acquired]:
        """Acquire what lies behind the frontier, `left` at most, as far as a few scans go."""
        core, clock, end = self.core, self._node.clock, now.ms + SCAN_MS
        bytes_max = wanted.bytes_max
        acquired: list[Acquired] = []
        for _ in range(SCANS_MAX):
            if core.frontier >= self.end or not core.wants_more(now):
                return acquired
            scanned = self._scanner.scan(now, bytes_max)
            if not scanned:
                return acquired
            more = core.acquire(wanted.member, left, now, wanted.lock_ms, None, wanted.run_max)
            acquired += more
            left -= _count(more)
            if more:
                bytes_max -= scanned
            if left <= 0 or bytes_max <= 0 or clock.monotonic_ms() >= end:
                break
        if not acquired:
            self._schedule_scan()
        return acquired

    def _prefetch(self, now: Now) -> None:
        """Scan before anyone is served: to be fair one must know which tenants wait. A long log is scanned
        over many turns, also while nobody asks."""
        core, clock, end = self.core, self._node.clock, now.ms + SCAN_MS
        for _ in range(SCANS_MAX):
            if core.frontier >= self.end or not core.wants_more(now):
                return
            if not self._scanner.scan(now, SCAN_BYTES):
                return
            if clock.monotonic_ms() >= end:
                break
        self._schedule_scan()

    def _schedule_scan(self) -> None:
        self._scan_scheduled = True
        self._node.loop.call_soon(self._continue_scan)

    def _continue_scan(self) -> None:
        self._scan_scheduled = False
        if self.closed:
            return
        if self.core.settings.fair:
            now = self.now()
            self._prefetch(now)
            self._arm(now)
        self.wake()

    def _resume_scan(self) -> None:
        """The log can be read now."""
        if not self._scan_scheduled:
            self._continue_scan()

    def scan_to(self, upto: int) -> None:
        """Know what lies below this offset, as far as a few reads tell."""
        now = self.now()
        for _ in range(SCANS_MAX):
            if self.core.frontier >= upto or not self._scanner.scan(now, SCAN_BYTES):
                break
        self._arm(now)

    def _read(self, acquired: list[Acquired], wanted: Wanted) -> Delivery | None:
        """Cut what was acquired out of the log; what does not fit or can't be read is given back."""
        bytes_max = wanted.bytes_max
        parts: list[memoryview | bytes] = []
        size, reached, current = 0, acquired[0].first, 0
        ranges = [(first, last) for first, last, _ in acquired]
        stretch: Stretch | None = None
        while current < len(ranges) and (size < bytes_max or not parts):
            reached = max(reached, ranges[current][0])
            stretch = self._scanner.stretch_at(reached)
            if stretch is None:
                break
            left = [(reached, ranges[current][1]), *ranges[current + 1 :]]
            more, more_bytes, until = stretch.cut(left, bytes_max - size, wanted.one_at_least and not parts)
            if not more:
                break
            parts += more
            size += more_bytes
            reached = until
            while current < len(ranges) and ranges[current][1] < reached:
                current += 1
        kept = acquired
        if current < len(ranges):
            kept, back = _split(acquired, reached)
            if not kept and stretch is not None:
                back = self._pass_over(stretch.holes(back), back)
            self.core.give_back(back, wanted.member)
        if not kept:
            return None
        messages, done = _count(kept), None
        self.subscription.tally.delivered += messages
        if self.core.settings.at_most_once:
            done = self.core.finish(map(_range, kept))
            done.accepted = messages
        return Delivery(parts, size, kept, done)

    def _pass_over(self, holes: list[Range], acquired: list[Range]) -> list[Range]:
        """Compaction took these since they were read: they are done. The rest comes when that is settled."""
        if not holes:
            return acquired
        self._commit_unasked(self.core.finish(holes))
        left = RangeSet()
        for each in acquired:
            left.add(*each)
        for hole in holes:
            left.carve(*hole)
        return list(left)

    # --- back

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AckBatch],
        reply: Reply,
        lock_ms: int | None,
        delay_ms: int | None,
        late: frozenset[int],
        reason: str = "",
    ) -> None:
        """All of it or nothing; `reply` hears when it is durable, or what is wrong with it.

        `late`: what counts as long as nobody else has the messages (`queues.late_accepts`)."""
        now = self.now()
        below = self._unknown_below if late else None
        try:
            settlement = self.core.acknowledge(member, batches, now, lock_ms, delay_ms, below, reason, late)
        except ApiError as error:
            reply(error)
            return
        self.commit(settlement, reply)

    def pledge(self, member: str, batches: Sequence[AckBatch], who: Producer, reply: Reply) -> None:
        """The member accepts these if the producer's transaction commits: all of it or nothing."""
        self._decide(lambda now: self.core.pledge(member, batches, *who, now), reply)

    def end_transactions(self, who: Producer, commit: bool, reply: Reply) -> None:
        """The producer's transactions below this epoch have ended, the last of them so."""
        self._decide(lambda now: self.core.end_transactions(*who, commit, now), reply)

    def note_end(self, who: Producer) -> None:
        """The same, for pledges that are not decided about yet."""
        for asked in self.asked_pledges:
            asked.note_end(who)

    def is_pledging(self, producer_id: int) -> bool:
        """Whether pledges of this producer, or ends of its transactions, are on their way to the disk."""
        return is_under_way(self.core, producer_id)

    def _decide(self, decide: Callable[[Now], Settlement], reply: Reply) -> None:
        try:
            settlement = decide(self.now())
        except ApiError as error:
            reply(error)
            return
        self.commit(settlement, reply)

    def release_member(self, member: str) -> None:
        """It has left: what it holds is there for others."""
        settlement = self.core.release_member(member, self.now())
        if settlement is not None:
            self._commit_unasked(settlement)

    def commit(self, settlement: Settlement, reply: Reply) -> None:
        """Make a decision of the core durable, then let it take effect."""
        if settlement.update is None:
            self.subscription.tally.add(settlement)
            reply(None)
            self.subscription.something_settled(self)  # a return is there for others at once
            self._arm(self.now())  # a renewed lock may end sooner than before
            return
        self._states.write(self.core.ledger, settlement.update, partial(self._written, settlement, reply))

    def _commit_unasked(self, settlement: Settlement) -> None:
        """What fails is tried again when its time comes."""
        self.commit(settlement, lambda error: None)

    def _written(self, settlement: Settlement, reply: Reply, error: ApiError | None) -> None:
        now = self.now()
        if error is None:
            self.subscription.tally.add(settlement)
            self.core.settled(settlement, now)
            self.pass_gaps(now)
        else:
            self.core.unsettle(settlement, now)
            self._quiet_until = now.ms + RETRY_MS
        reply(error)
        if self.core.ledger.dying:
            self._node.subscriptions.dead_letters.take(self)
        self.subscription.something_settled(self)
        self._arm(now)

    def pass_gaps(self, now: Now) -> None:
        """The ledger's start has moved: gaps that were met meanwhile may be all that follows it. Where a
        settlement is on its way, its end is the time to look."""
        if self.closed or self.core.is_settling or self._quiet_until > now.ms:
            return
        settlement = self.core.pass_gaps()
        if settlement is not None:
            self._commit_unasked(settlement)

    def reset(self, start: int, reply: Reply) -> None:
        """Go on from this offset, whatever was settled or is held."""

        def done(error: ApiError | None) -> None:
            if error is None:
                self._unknown_below = 0
                self._scanner.begin_anew()
                self.core.after_reset(self.now())
            reply(error)
            self.wake()

        self.write(self.core.reset(start), done)

    def configure(self, settings: QueueSettings, now: Now, learn_anew: bool) -> None:
        """`learn_anew`: what is known of the messages no longer tells what must be known."""
        if learn_anew:
            self._scanner.begin_anew()
        self.core.change_settings(settings, learn_anew)
        self._arm(now)
        self.wake()

    def write(self, update: Update, reply: Reply) -> None:
        """A change of the hard state that the core has no part in but its ledger."""
        self._states.write(self.core.ledger, update, reply)

    @property
    def end(self) -> int:
        """Messages below it may be delivered, unless their transaction was aborted."""
        return readable_end(self.partition, self.subscription.settings.committed_only)

    @property
    def available(self) -> int:
        """How many messages could go out; those that have not been read count, whatever they ask for."""
        return self.core.ready + max(self.end - self.core.frontier, 0)

    @property
    def trouble(self) -> ApiError | None:
        """Why its messages can't be read at the moment; None also where none are left to be read."""
        return self._scanner.trouble if self.available else None

    # --- time

    def now(self) -> Now:
        return self._node.clock.now()

    def _expire_locks(self, now: Now) -> None:
        """Locks that have ended and delays that are over take effect."""
        at = self.core.next_deadline()
        if at is not None and max(at, self._quiet_until) <= now.ms:
            settlement = self.core.expire(now)
            if settlement is not None:
                self._commit_unasked(settlement)

    def _notice_step(self, now: Now) -> None:
        """The wall clock was set, or the machine slept: noticed when somebody asks, or by the timer."""
        gained = now.wall_ms - now.ms - self._wall_ahead
        if not -STEP_MS < gained < STEP_MS:
            self._wall_ahead += gained
            self.core.clock_stepped(gained, now)

    def _settle_expired(self, now: Now) -> None:
        settlement = self.core.take_expired(now) if self._quiet_until <= now.ms else None
        if settlement is not None:
            self._commit_unasked(settlement)

    def _arm(self, now: Now) -> None:
        """One timer, for the next deadline; a later one finds its own when this one has come."""
        at = self._quiet_until if self._quiet_until > now.ms else self.core.next_deadline()
        if at is None:
            return
        at = min(max(at, now.ms + 1), now.ms + TIMER_MS_MAX)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = self._node.loop.call_later((at - now.ms) / 1000, self._due)

    def _due(self) -> None:
        self._timer = None
        if self.closed:
            return
        now = self.now()
        self._notice_step(now)
        self._expire_locks(now)
        self._settle_expired(now)
        self.pass_gaps(now)
        self.wake()
        self._arm(now)

    # --- waiting

    def park(self, waiter: Waiter) -> None:
        if not self.waiters:
            self.partition.readers[self] = None
            self.subscription.waiting[self] = None
        self.waiters[waiter] = None

    def unpark(self, waiter: Waiter) -> None:
        self.waiters.pop(waiter, None)
        if not self.waiters:
            self.partition.readers.pop(self, None)
            self.subscription.waiting.pop(self, None)

    def wake(self) -> None:
        """There may be something: those that have waited longest ask first."""
        for waiter in list(self.waiters):
            if not self.core.ready and (self._scan_scheduled or self.core.frontier >= self.end):
                return
            waiter.wake()

    def expire(self) -> None:
        """The node stops: whoever waits is answered."""
        for waiter in list(self.waiters):
            waiter.expire()

    # --- its end

    def close(self) -> None:
        """The topic, the group or the node goes; whoever waits is answered."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.expire()
        self.partition.readers.pop(self, None)
        self.core.close()


def _range(acquired: Acquired) -> Range:
    return acquired.first, acquired.last


def _count(acquired: Sequence[Acquired]) -> int:
    count = 0
    for first, last, _ in acquired:
        count += last - first + 1
    return count


def _split(acquired: list[Acquired], at: int) -> tuple[list[Acquired], list[Range]]:
    """(what lies below the offset, the ranges from it on)."""
    kept: list[Acquired] = []
    back: list[Range] = []
    for first, last, deliveries in acquired:
        if last < at:
            kept.append(Acquired(first, last, deliveries))
        elif first >= at:
            back.append((first, last))
        else:
            kept.append(Acquired(first, at - 1, deliveries))
            back.append((at, last))
    return kept, back
