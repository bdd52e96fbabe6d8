"""`Backlog`: what is known of the log and neither done nor in flight. All of it is soft.

A message that is met in the log joins its lane, if it has to keep an order; the head of a lane, and whatever
has no lane, goes into the schedule until its time has come, and from there into the pool that acquisitions
are served from. A message that is released comes the same way again, from the schedule on.

Several messages of a lane may go out together (`followers`). Those behind its head are strays then: they keep
their place in line, and what stands behind them waits for them.

B1 `gaps` lie below the frontier. B2 a stray is in line, not at the head of its lane.
"""

from __future__ import annotations

from typing import Final

from postroad.queues.holdings import Holdings
from postroad.queues.keys import WHOLE_PARTITION, Lanes
from postroad.queues.ledger import Attempts
from postroad.queues.names import Names
from postroad.queues.pool import Pool, Taken
from postroad.queues.ranges import RangeSet
from postroad.queues.schedule import Schedule
from postroad.queues.settings import Order, QueueSettings
from postroad.queues.settlement import Doomed
from postroad.queues.tenants import FairPool
from postroad.queues.traits import Trait, Traits

WORK_MAX: Final = 10_000  # ranges that one call moves, so that no call takes long

_IN_FLIGHT: Final = True
_GONE: Final = False


class Backlog:
    def __init__(self, settings: QueueSettings, holdings: Holdings, tenants: Names[bytes]) -> None:
        self._order = settings.order
        self.frontier = 0
        self.pool: Pool | FairPool = FairPool(holdings, tenants) if settings.fair else Pool()
        self.schedule = Schedule()
        self.lanes = Lanes() if settings.order is not Order.NONE else None
        self.traits = Traits()
        self.gaps = RangeSet()
        self.doomed: list[Doomed] = []
        # In line though they were handed out, along with the head of their lane or when the subscription kept
        # another order: offset, whether it is still in flight or gone.
        self.strays: dict[int, bool] = {}

    @property
    def kept_in_line(self) -> int:
        """Ranges in memory because they wait for others, and what of messages must be known until then."""
        return self.traits.rows + (self.lanes.weight if self.lanes is not None else 0)

    def meet(self, trait: Trait, key: bytes | None, now_ms: int) -> None:
        """These messages are in the log, and nothing else is known of them."""
        lane = self._lane(key)
        if trait.tenant or trait.expires_at or (trait.available_at and lane is not None):
            self.traits.put(*(trait if lane is not None else trait._replace(available_at=0)))
        first, last = trait.first, trait.last
        if lane is not None and self.lanes is not None:
            head = self.lanes.join(first, last, lane)
            if head is None:
                return
            first = last = head
        self.put(first, last, trait.tenant, trait.available_at, now_ms)

    def put(self, first: int, last: int, tenant: int, available_at: int, now_ms: int) -> None:
        """These messages wait for no other: they can go out, now or when their time comes."""
        if available_at > now_ms:
            self.schedule.add(available_at, first, last)
        else:
            self.pool.add(first, last, tenant)

    def meet_in_flight(self, trait: Trait, key: bytes | None) -> None:
        """These messages are in the log, and were handed out before this backlog was begun."""
        if trait.tenant or trait.expires_at:
            self.traits.put(*trait._replace(available_at=0))
        lane = self._lane(key)
        if lane is not None and self.lanes is not None:
            for offset in range(trait.first, trait.last + 1):
                if self.lanes.join(offset, offset, lane) is None:
                    self.strays[offset] = _IN_FLIGHT

    def wake(self, now_ms: int) -> None:
        """What was delayed until now goes into the pool."""
        next_at = self.schedule.next_at
        if next_at is None or next_at > now_ms:
            return
        for first, last in self.schedule.take_due(now_ms, WORK_MAX):
            self._make_ready(first, last)

    def clock_stepped(self, ms: int, now_ms: int, attempts: Attempts) -> None:
        """What was delivered before backs off, whatever the wall clock says; the others follow it."""
        self.wake(now_ms)
        self.traits.shift(-ms)
        rows = [
            (at if piece[2] else max(at - ms, 1), piece[0], piece[1])
            for at, first, last in self.schedule
            for piece in attempts.pieces(first, last)
        ]
        self.schedule.clear()
        for row in sorted(rows):
            self.schedule.add(*row)

    def take(self, count: int, upto: int | None) -> list[Taken]:
        return self.pool.take(count, upto)

    def followers(self, head: int, count: int, upto: int | None, now_ms: int) -> list[int]:
        """The messages of a lane that may go out along with its head, which was just taken: up to the first
        one that is in flight, delayed or over."""
        lane = self.lanes.heads.get(head) if self.lanes is not None else None
        found: list[int] = []
        if lane is None or self.lanes is None:
            return found
        for offset in self.lanes.behind(lane):
            stray, trait = self.strays.get(offset), self.traits.of(offset)
            if stray is _GONE:
                continue
            is_over = 0 < trait.expires_at <= now_ms
            if len(found) >= count or stray is not None or trait.available_at > now_ms or is_over:
                break
            if upto is not None and offset >= upto:
                break
            found.append(offset)
        return found

    def send_along(self, offset: int) -> None:
        """It goes out, or is settled, though it stands in line."""
        self.strays[offset] = _IN_FLIGHT
        trait = self.traits.of(offset)
        if trait.available_at:  # its time has come, whatever the clock says later
            self.traits.carve(offset, offset)
            self.traits.put(*trait._replace(first=offset, last=offset, available_at=0))

    def doom(self, doomed: Doomed, tenant: int) -> None:
        """It was taken from the pool, but must not go out."""
        self.doomed.append(doomed)
        self.pool.fell(tenant)

    def withdraw(self, first: int, last: int) -> int | None:
        """These messages will not go out: they have just been accepted. When they would have been available;
        None, and nothing changes, where they are not to be had. With an order call it for each offset."""
        if self.pool.withdraw(first, last):
            return 0
        available_at = self.schedule.withdraw(first, last)
        if available_at is None and self._is_in_line(first):
            self.send_along(first)
            return 0
        return available_at

    def release(self, first: int, last: int, available_at: int, now_ms: int) -> None:
        """It was in flight, or withdrawn, and is no longer. What lies behind the frontier will be met."""
        last = min(last, self.frontier - 1)
        if self.lanes is None:
            if first <= last:
                self._place_by_tenant(first, last, available_at, now_ms)
            return
        for offset in range(first, last + 1):
            if offset in self.strays:
                del self.strays[offset]
            else:
                self._place_by_tenant(offset, offset, available_at, now_ms)

    def leave(self, first: int, last: int, now_ms: int) -> None:
        """It was in flight, doomed or withdrawn, and will never come again: who waits for it moves up."""
        if self.lanes is not None:
            for offset in range(first, min(last, self.frontier - 1) + 1):
                if offset in self.lanes.heads:
                    self._move_up(offset, now_ms)
                elif offset in self.strays:
                    self.strays[offset] = _GONE
        if self.traits.rows:
            self.traits.carve(first, last)

    def drop_below(self, offset: int) -> None:
        """The log begins here now."""
        self.frontier = max(self.frontier, offset)
        self.pool.drop_below(offset)
        self.schedule.drop_below(offset)
        self.gaps.drop_below(offset)
        self.traits.drop_below(offset)
        self.doomed = [(max(a, offset), b, why) for a, b, why in self.doomed if b >= offset]
        self.strays = {stray: state for stray, state in self.strays.items() if stray >= offset}
        if self.lanes is not None:
            for head in self.lanes.drop_below(offset):
                self._move_up(head, now_ms=0)  # what is due already is woken at the next look

    def close(self) -> None:
        self.pool.close()

    def _is_in_line(self, offset: int) -> bool:
        """Asked of what is neither done nor in flight, and neither in the pool nor in the schedule."""
        if self.lanes is None or self.gaps.contains(offset):
            return False
        return offset not in self.lanes.heads and offset not in self.strays

    def _lane(self, key: bytes | None) -> bytes | None:
        return (
            WHOLE_PARTITION if self._order is Order.PARTITION else key if self._order is Order.KEY else None
        )

    def _place_by_tenant(self, first: int, last: int, available_at: int, now_ms: int) -> None:
        if available_at > now_ms:
            self.schedule.add(available_at, first, last)
        else:
            self._make_ready(first, last)

    def _make_ready(self, first: int, last: int) -> None:
        if not self.traits.rows:
            self.pool.add(first, last)
            return
        for low, high, tenant, _, _ in self.traits.pieces(first, last):
            self.pool.add(low, high, tenant)

    def _move_up(self, head: int, now_ms: int) -> None:
        assert self.lanes is not None
        follower = self.lanes.leave(head)
        while follower is not None and self.strays.get(follower) is _GONE:
            del self.strays[follower]
            follower = self.lanes.leave(follower)
        if follower is None:
            return
        if follower in self.strays:
            del self.strays[follower]  # the head of its lane as it is, in flight
            return
        trait = self.traits.of(follower)
        self.put(follower, follower, trait.tenant, trait.available_at, now_ms)

    def check(self) -> None:
        for part in (self.pool, self.schedule, self.traits, self.gaps):
            part.check()
        assert self.gaps.last is None or self.gaps.last < self.frontier, "B1"
        if self.lanes is not None:
            self.lanes.check()
            assert not self.strays.keys() & self.lanes.heads.keys(), "B2"
