"""`SharePartition`: the messages of one partition, as the members of one subscription share them (KIP-932).

    unknown ─extend→ waiting → delayed → ready ─acquire→ held ─acknowledge, expire→ settling ─settled→ done
                                  ↑        ↑                                           │               dying
                                  └────────┴─────────────── released ──────────────────┘

What is decided about a message is first a `Settlement`; the ledger is changed by its update alone, when that
is committed, and only then does the message move on. Everything else here is soft: after a crash a new
partition is built from the ledger, and the log is read again from its start on.

The numbers of the invariants that `check` asserts:

S1 each offset from the start to the frontier is in exactly one place, so no message is forgotten.
S2 one lock for each message at most; it ends when now.ms reaches `until`.
S3 a held message's deliveries are one more than the ledger knows of.
S4 what the ledger knows as done or dying is in no place from which it could be delivered.
S5 `acknowledge` changes all of what it names, or nothing, and only what its member holds (but for
`late_accepts`).
S6 the start never falls, and is not above the frontier.
Q1 what is held here is counted in the holdings. Q2 with an order, what is ready or delayed is at the head of
its lane, and one message of a key is in flight at most (but for runs, and those that were before the order
changed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from postroad.now import Now
from postroad.queues import candidates, failed_deliveries, late_accepts, transactions
from postroad.queues.acknowledgement import (
    ACCEPT,
    LATE_ACCEPTS,
    RELEASE,
    RENEW,
    RETURN,
    AckBatch,
    runs_of,
)
from postroad.queues.backlog import WORK_MAX, Backlog
from postroad.queues.checks import check
from postroad.queues.entry import QueueEntry
from postroad.queues.holdings import Holdings
from postroad.queues.intake import take_in
from postroad.queues.ledger import Ledger
from postroad.queues.locks import DELIVERIES, MEMBER, TENANT, Locks
from postroad.queues.names import Names
from postroad.queues.peek import Peeked, peek
from postroad.queues.ranges import RangeSet
from postroad.queues.settings import Order, QueueSettings
from postroad.queues.settlement import Settlement
from postroad.queues.table import Row
from postroad.queues.update import Ended, Reason, Update

__all__ = ["AckBatch", "Acquired", "Peeked", "SharePartition"]

READY_LOW: Final = 4096  # messages; with fewer the scanner should read on, so that no member waits for it


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int  # this one counted


class SharePartition:
    def __init__(
        self, ledger: Ledger, settings: QueueSettings, holdings: Holdings, random: Callable[[], float]
    ) -> None:
        """`random` answers a number in [0, 1), for the jitter of backoff."""
        self.ledger = ledger
        self.settings = settings
        self.holdings = holdings
        self.locks = Locks()
        self.tenants: Names[bytes] = Names(self._tenants_spoken_of)
        self.members: Names[str] = Names(self._members_spoken_of)
        self.backlog = Backlog(settings, holdings, self.tenants)
        self.backlog.frontier = ledger.start
        self.random = random
        self._log_start = 0
        self._seen = ledger.start  # the highest frontier so far: nothing behind it was ever in flight
        self._settling: dict[int, Settlement] = {}  # by identity, in the order in which they were decided

    # -- what is known of the log ----------------------------------------------------------------------

    @property
    def start(self) -> int:
        """Everything below is done, or no longer in the log."""
        return max(self.ledger.start, self._log_start)

    @property
    def frontier(self) -> int:
        """From here on nothing is known: where the scanner continues."""
        return max(self.backlog.frontier, self.ledger.start, self._log_start)

    def wants_more(self, now: Now) -> bool:
        """Whether knowing more of the log could let `acquire` hand out something.

        To be fair one must know who else waits, so a fair subscription reads on until its window is full.
        """
        settings, backlog = self.settings, self.backlog
        if self.in_hand >= settings.partition_locks_max or self.holdings.total >= settings.locks_max:
            return False
        if backlog.kept_in_line >= settings.waiting_max or backlog.schedule.rows >= settings.delayed_max:
            return False
        if settings.order is Order.PARTITION and self.waiting >= READY_LOW:
            return False
        pool = backlog.pool
        if settings.fair:
            return pool.messages < settings.fair_window and pool.entries < settings.fair_ranges_max
        return pool.messages < READY_LOW

    def extend(self, upto: int, entries: Sequence[QueueEntry], now: Now) -> Settlement | None:
        """The log's messages from the frontier up to `upto` are exactly these, ascending; offsets in no entry
        are not there. The frontier is `upto` afterwards. Messages that have expired are settled."""
        take_in(self, upto, entries, now)
        self._seen = max(self._seen, upto)
        return self.take_expired(now)

    def pass_gaps(self) -> Settlement | None:
        """The ledger moves on where nothing is to be done at its start, without waiting for who settles
        something next."""
        start, gaps = self.ledger.start, self.backlog.gaps
        if not gaps.rows or not gaps.contains(start):
            return None
        settlement = Settlement()
        settlement.accept(start, start)  # the rest of the gap goes along
        return self._seal(settlement)

    def log_starts_at(self, offset: int) -> None:
        """Retention took what is below: it is forgotten, whoever held it. The ledger hears of it with the
        next update."""
        if offset <= self._log_start:
            return
        self._log_start = offset
        if offset <= self.ledger.start:
            return  # all of it is done, so nothing is known of it here
        self._give(self.locks.drop_below(offset))
        self.backlog.drop_below(offset)
        self._seen = max(self._seen, offset)

    # -- a message's life ------------------------------------------------------------------------------

    def acquire(
        self,
        member: str,
        records_max: int,
        now: Now,
        lock_ms: int | None = None,
        upto: int | None = None,
        run_max: int = 1,
    ) -> list[Acquired]:
        """Messages that this member holds from now on: no more than it asked for and than the limits leave,
        ascending, below `upto`, `run_max` at most of one lane. Call `take_expired` afterwards."""
        settings = self.settings
        room = min(records_max, settings.partition_locks_max - self.in_hand)
        room = min(room, self.holdings.room(member, settings))
        if room <= 0:
            return []
        backlog = self.backlog
        backlog.wake(now.ms)
        until = now.ms + (settings.lock_ms if lock_ms is None else lock_ms)
        number = self.members.number(member)
        acquired: list[Acquired] = []
        while room > 0 and len(backlog.doomed) < WORK_MAX:
            fits = candidates.take(self, room, run_max, upto, now)
            if fits is None:
                break
            for fit in fits:
                row = self._hold(fit, number, until, now)
                acquired.append(Acquired(row[0], row[1], row[DELIVERIES]))
                self.holdings.take(member, row[1] - row[0] + 1, self.tenants.name(row[TENANT]))
                room -= row[1] - row[0] + 1
        acquired.sort()
        return acquired

    def give_back(self, ranges: Iterable[tuple[int, int]], member: str) -> None:
        """These were acquired a moment ago, but not sent: as if they had never been."""
        number = self.members.known(member)
        for first, last in ranges:
            rows = self.locks.carve(first, last)
            assert all(row[MEMBER] == number for row in rows), "given back by someone else"
            self._return(rows)

    def acknowledge(
        self,
        member: str,
        batches: Sequence[AckBatch],
        now: Now,
        lock_ms: int | None = None,
        delay_ms: int | None = None,
        unknown_below: int | None = None,
        reason: str = "",
        late_kinds: frozenset[int] = LATE_ACCEPTS,
    ) -> Settlement:
        """What a member says of messages that it holds: all of it counts, or none (S5).

        Raises InvalidRequest, or InvalidRecordState if it does not hold one of them (any longer). Renewals,
        for `lock_ms`, and returns take effect at once. `delay_ms` stands in for the backoff of a release;
        `reason` is why messages are rejected, or released for the last time, in words.

        `unknown_below`: `late_kinds` may come late (`late_accepts`). For members that outlive their
        connection, and this node. Raises CoordinatorNotAvailable while it is not decided whether they count.

        At most once, what was done when it was sent is passed over, whatever is said of it.
        """
        settlement = Settlement()
        runs = runs_of(batches)
        if self.settings.at_most_once:
            runs = self.ledger.undone(runs)
        number = self.members.known(member)
        lock_ms = self.settings.lock_ms if lock_ms is None else lock_ms
        late = late_accepts.find(self, number, runs, unknown_below, late_kinds, now)
        if late:
            late_accepts.withdraw(self, settlement, late, now)
            late_accepts.put_off(self, settlement, late, lock_ms, delay_ms or 0, now)
            self._seen = max(self._seen, late[-1][1] + 1)
        for first, last, kind in runs:
            settlement.count(kind, last - first + 1)
            if kind == RENEW:
                self.locks.renew(first, last, now.ms + lock_ms)
                continue
            rows = self.locks.carve(first, last)
            if kind == RETURN:
                self._return(rows)
                continue
            self._end_locks(settlement, rows)
            if kind <= ACCEPT:
                settlement.accept(first, last)
            elif kind == RELEASE:
                failed_deliveries.release(self, settlement, rows, now, delay_ms, reason)
            else:
                for row in rows:
                    counts = row[DELIVERIES:TENANT]
                    failed_deliveries.archive(
                        self, settlement, row[0], row[1], Reason.REJECTED, counts, reason
                    )
        return self._seal(settlement)

    def pledge(
        self, member: str, batches: Sequence[AckBatch], producer_id: int, epoch: int, now: Now
    ) -> Settlement:
        """A member accepts messages that it holds, if the producer's transaction commits: all, or none (S5).
        Raises InvalidRequest, InvalidRecordState, and InvalidProducerEpoch if it has ended."""
        settlement = Settlement()
        settlement.pledged = transactions.find_held(self, member, batches, producer_id, epoch, now)
        for first, last, *_ in settlement.pledged:
            self._end_locks(settlement, self.locks.carve(first, last))
        return self._seal(settlement)

    def end_transactions(self, producer_id: int, epoch: int, commit: bool, now: Now) -> Settlement:
        """The producer's transactions of lower epochs have ended: what was pledged in the last of them is
        done, or released as after a failed delivery. Raises ConcurrentTransactions: try again when all is
        settled."""
        settlement = Settlement()
        pledged, left = transactions.find_pledged(self, producer_id, epoch)
        settlement.ended.append(Ended(producer_id, epoch))
        released = left if commit else [*pledged, *left]
        failed_deliveries.release(self, settlement, released, now, None)
        settlement.count(RELEASE, sum(row[1] - row[0] + 1 for row in released))
        for first, last, *_ in pledged if commit else ():
            settlement.accept(first, last)
            settlement.count(ACCEPT, last - first + 1)
        return self._seal(settlement)

    def finish(self, ranges: Iterable[tuple[int, int]]) -> Settlement:
        """These were acquired a moment ago, and are done: at most once, when they are sent (which the caller
        does when this is settled), or because they are no longer in the log."""
        settlement = Settlement()
        for first, last in ranges:
            self._end_locks(settlement, self.locks.carve(first, last))
            settlement.accept(first, last)
        return self._seal(settlement)

    def settled(self, settlement: Settlement, now: Now) -> None:
        """The settlement's update was committed and applied to the ledger."""
        if self._settling.pop(id(settlement), None) is None:
            return
        start, backlog = self.start, self.backlog
        for first, last in settlement.done:
            backlog.leave(first, last, now.ms)
        for dying in settlement.dying:
            backlog.leave(dying.first, dying.last, now.ms)
        for released, available_at in zip(settlement.released, settlement.available_at, strict=True):
            backlog.release(max(released.first, start), released.last, available_at, now.ms)
        if backlog.gaps.rows:
            backlog.gaps.drop_below(start)

    def unsettle(self, settlement: Settlement, now: Now) -> None:
        """The settlement's update could not be written: undo it. A lock that ended meanwhile ends again."""
        if self._settling.pop(id(settlement), None) is None:
            return
        start = self.start
        for row in settlement.rows:
            if row[1] < start:
                continue
            row = (max(row[0], start), *row[1:])
            self.locks.hold(row)
            member, tenant = self._holder(row)
            self.holdings.take(member, row[1] - row[0] + 1, tenant)
        late_accepts.put_back(self, settlement, now)
        for first, last, reason in settlement.doomed:
            first, last = max(first, start), min(last, self.frontier - 1)  # behind, they will be met again
            if first <= last:
                self.backlog.doomed.append((first, last, reason))

    # -- time and members ------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When (monotonic ms) a lock ends or something delayed becomes available."""
        heads = self.locks.ends.heads[:1] + self.backlog.schedule.heads[:1]  # as `Schedule.next_at`
        return min(heads)[0] if heads else None

    def expire(self, now: Now) -> Settlement | None:
        """What is due by now: locks end, delayed messages become available. A call's work is bounded: call
        again while the next deadline has passed."""
        self.backlog.wake(now.ms)
        rows = self.locks.take_ended(now.ms, WORK_MAX)
        if not rows:
            return None
        settlement = Settlement()
        failed_deliveries.release(self, settlement, self._end_locks(settlement, rows), now, None)
        settlement.expired = settlement.messages_held
        return self._seal(settlement)

    def take_expired(self, now: Now) -> Settlement | None:
        """Archives what `extend` and `acquire` found, and must not be delivered (again): messages whose time
        is over, or that were delivered as often as they may be since the limit was lowered."""
        if not self.backlog.doomed:
            return None
        settlement = Settlement()
        settlement.doomed, self.backlog.doomed = self.backlog.doomed, []
        for first, last, reason in settlement.doomed:
            for low, high, *counts in self.ledger.attempts.pieces(first, last):
                failed_deliveries.archive(self, settlement, low, high, reason, tuple(counts))
        return self._seal(settlement)

    def clock_stepped(self, ms: int, now: Now) -> None:
        """The wall clock has gained so much on the monotonic one (lost, if negative): the times that messages
        ask for are told by it. What is available stays so. Looks at all that is delayed."""
        self.backlog.clock_stepped(ms, now.ms, self.ledger.attempts)

    def release_member(self, member: str, now: Now) -> Settlement | None:
        """It left: all that it holds is released at once. Deliveries stay counted."""
        number = self.members.known(member)
        held = self.locks.of_member(number) if number is not None else []
        if not held:
            return None
        settlement = Settlement()
        for row in held:
            self._end_locks(settlement, self.locks.carve(row[0], row[1]))
        settlement.count(RELEASE, settlement.messages_held)
        failed_deliveries.release(self, settlement, held, now, 0)
        return self._seal(settlement)

    # -- hard changes that members do not ask for ------------------------------------------------------

    def bury(self, ranges: Iterable[tuple[int, int]]) -> Update:
        """Copies of these dying messages are safe: what makes them done. Append it, then apply it."""
        return Update(self.ledger.generation, done=list(ranges))

    def reset(self, start: int) -> Update:
        """Seek, purge: what begins a new generation from here. Append it, apply it, call `after_reset`."""
        return Update(self.ledger.generation + 1, start)

    def after_reset(self, now: Now) -> None:
        """Whatever was held, settled or known belongs to the generation before."""
        self._give(list(self.locks.each()))
        self.locks.clear()
        self._settling.clear()
        self._forget()
        self._seen = self.backlog.frontier

    def change_settings(self, settings: QueueSettings, learn_anew: bool = False) -> None:
        """From now on. With another order, or fairness, or if so asked, the log is read again from the start
        on; locks stay."""
        before, self.settings = self.settings, settings
        if learn_anew or (before.order, before.fair) != (settings.order, settings.fair):
            self._forget()

    def close(self) -> None:
        """The partition is no longer used: what it holds counts no longer."""
        self._give(list(self.locks.each()))
        self.locks.clear()
        self._settling.clear()
        self.backlog.close()

    # -- what others ask -------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        return self.locks.messages

    @property
    def in_hand(self) -> int:
        """Messages that are held or pledged: both count for the partition's limit."""
        return self.locks.messages + self.ledger.pledges.messages

    @property
    def ready(self) -> int:
        return self.backlog.pool.messages

    @property
    def delayed(self) -> int:
        return self.backlog.schedule.messages

    @property
    def waiting(self) -> int:
        """Messages behind others of their key, or of the partition."""
        return self.backlog.lanes.waiting if self.backlog.lanes is not None else 0

    def has_available(self, now: Now) -> bool:
        due = self.backlog.schedule.next_at
        return self.backlog.pool.messages > 0 or (due is not None and due <= now.ms)

    def peek(self, first: int, count: int, now: Now) -> list[Peeked]:
        """The messages from this offset on, `count` at most, and their state; nothing is touched."""
        return peek(self, first, count, now)

    @property
    def is_settling(self) -> bool:
        return bool(self._settling)

    def settling(self) -> Iterable[Settlement]:
        """In the order in which they were decided."""
        return self._settling.values()

    def in_flight_ranges(self, first: int, last: int) -> RangeSet | None:
        """What of the range is held, pledged or being settled; None where that was never possible."""
        if first >= self._seen and not self.ledger.pledges.rows:
            return None
        found = RangeSet()
        for row in (*self.locks.cut(first, last), *self.ledger.pledges.cut(first, last)):
            found.add(row[0], row[1])
        for settlement in self._settling.values():
            for low, high in settlement.ranges():
                found.add(low, high)
        return found

    def check(self) -> None:
        """Asserts every invariant; for tests."""
        check(self)

    # -- steps -----------------------------------------------------------------------------------------

    def _hold(self, fit: Row, member: int, until: int, now: Now) -> Row:
        first, last, deliveries, first_ms, _, tenant = fit
        row = (first, last, until, member, deliveries + 1, first_ms or now.wall_ms, now.wall_ms, tenant)
        self.locks.hold(row)
        return row

    def _end_locks(self, settlement: Settlement, rows: list[Row]) -> list[Row]:
        """These are no longer held: they are being settled."""
        settlement.rows.extend(rows)
        self._give(rows)
        return rows

    def _return(self, rows: list[Row]) -> None:
        """These were not delivered: neither counted, which only the ledger does (S3), nor delayed."""
        self._give(rows)
        for row in rows:
            self.backlog.release(row[0], row[1], available_at=0, now_ms=0)

    def _give(self, rows: list[Row]) -> None:
        for row in rows:
            member, tenant = self._holder(row)
            self.holdings.give(member, row[1] - row[0] + 1, tenant)

    def _holder(self, row: Row) -> tuple[str, bytes | None]:
        member = self.members.name(row[MEMBER])
        assert member is not None, "a lock without a member"
        return member, self.tenants.name(row[TENANT])

    def _seal(self, settlement: Settlement) -> Settlement:
        ledger, gaps = self.ledger, self.backlog.gaps
        lead = None
        if self._log_start > ledger.start or (gaps.rows and gaps.contains(ledger.start)):
            lead = gaps.around(ledger.start, max(self._log_start - 1, ledger.start))
        settlement.seal(ledger.generation, gaps, lead)
        if settlement.update is not None:
            self._settling[id(settlement)] = settlement
        return settlement

    def _forget(self) -> None:
        self.backlog.close()
        self.backlog = Backlog(self.settings, self.holdings, self.tenants)
        self.backlog.frontier = self.start

    def _tenants_spoken_of(self) -> Iterable[int]:
        yield from self.backlog.traits.tenants()
        yield from self.locks.values_of(TENANT)
        yield from (row[TENANT] for settlement in self._settling.values() for row in settlement.rows)
        yield from self.backlog.pool.tenants()

    def _members_spoken_of(self) -> Iterable[int]:
        yield from self.locks.values_of(MEMBER)
        yield from (row[MEMBER] for settlement in self._settling.values() for row in settlement.rows)
