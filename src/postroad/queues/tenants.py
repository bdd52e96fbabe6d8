"""`FairPool`: what can go out now, by tenant. The one with the fewest messages in flight is served next.

In flight counts over the whole subscription, so a tenant's rank changes when other partitions serve it or
settle its messages. Ranks are kept in a heap that is put right when it is looked at: a rank that has become
worse is noticed when its entry comes up, one that has become better is told by `Holdings.watch`. So the next
tenant is found without looking through all of them.

F1 each tenant that has messages has an entry in the heap, not behind its true rank unless it is in `_fallen`.
F2 `messages` and `entries` count what is in the queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final

from postroad.queues.holdings import Holdings
from postroad.queues.names import Names
from postroad.queues.pool import Taken

SERVED_MAX: Final = 10_000  # tenants that are remembered by when they were served; the others count as never

Rank = tuple[int, int, int]  # messages in flight, when it was served last, when it came


class TenantQueue:
    __slots__ = ("came", "entry", "ranges", "tenant")

    def __init__(self, tenant: int, came: int) -> None:
        self.tenant = tenant
        self.came = came
        self.ranges: list[tuple[int, int]] = []  # a heap: the lowest offset first
        self.entry: Rank | None = None  # its rank in the heap of tenants; entries that differ are void

    def take(self, count: int, upto: int | None) -> tuple[int, int]:
        first, last = heappop(self.ranges)
        end = min(last, first + count - 1, last if upto is None else upto - 1)
        if end < last:
            heappush(self.ranges, (end + 1, last))
        return first, end


class FairPool:
    def __init__(self, holdings: Holdings, names: Names[bytes]) -> None:
        self._holdings = holdings
        self._names = names
        self._queues: dict[int, TenantQueue] = {}
        self._heap: list[tuple[Rank, int]] = []
        self._served: dict[int, int] = {}  # tenant: the turn in which it was served last; oldest first
        self._turn = 0
        self._fallen = holdings.watch()
        self.messages = 0
        self.entries = 0

    def add(self, first: int, last: int, tenant: int = 0) -> None:
        queue = self._queues.get(tenant)
        if queue is None:
            self._turn += 1
            queue = self._queues[tenant] = TenantQueue(tenant, self._turn)
            self._enter(queue, {})
        heappush(queue.ranges, (first, last))
        self.messages += last - first + 1
        self.entries += 1

    def take(self, count: int, upto: int | None) -> list[Taken]:
        """Takes out `count` messages at most, below `upto`; ascending, whoever was served first."""
        self._notice_falls()
        taken: list[Taken] = []
        picked: dict[int, int] = {}  # in this call: not yet in flight for the holdings
        passed: list[TenantQueue] = []
        while count > 0 and (queue := self._next(picked)) is not None:
            if upto is not None and queue.ranges[0][0] >= upto:
                passed.append(queue)
                continue
            first, last = self._serve(queue, 1 if len(self._queues) > 1 else count, upto)
            picked[queue.tenant] = picked.get(queue.tenant, 0) + last - first + 1
            count -= last - first + 1
            taken.append((first, last, queue.tenant))
            if queue.ranges:
                self._enter(queue, picked)
        for queue in passed:
            self._enter(queue, picked)
        return _joined(sorted(taken))

    def withdraw(self, first: int, last: int) -> bool:
        """Takes out this range, if all of it is here as one. Looks through all ranges."""
        for queue in self._queues.values():
            for index, (low, high) in enumerate(queue.ranges):
                if low <= first and last <= high:
                    rest = [(low, first - 1), (last + 1, high)]
                    queue.ranges[index : index + 1] = [each for each in rest if each[0] <= each[1]]
                    self._recount(queue)
                    return True
        return False

    def fell(self, tenant: int) -> None:
        """What was taken of it will not be in flight after all."""
        self._fallen[self._names.name(tenant)] = None

    def drop_below(self, offset: int) -> None:
        """Looks through all ranges if there are any below."""
        if all(queue.ranges[0][0] >= offset for queue in self._queues.values()):
            return
        for queue in self._queues.values():
            queue.ranges = [(max(first, offset), last) for first, last in queue.ranges if last >= offset]
        self._recount(*self._queues.values())

    def overlapping(self, first: int, last: int) -> list[tuple[int, int]]:
        found = [
            (max(low, first), min(high, last)) for low, high in self.each() if low <= last and high >= first
        ]
        return sorted(found)

    def each(self) -> Iterator[tuple[int, int]]:
        for queue in self._queues.values():
            yield from queue.ranges

    def tenants(self) -> Iterator[int]:
        """The numbers of those that have messages here, or were served lately."""
        yield from self._queues
        yield from self._served

    def close(self) -> None:
        self._holdings.unwatch(self._fallen)

    def _recount(self, *changed: TenantQueue) -> None:
        for queue in changed:
            heapify(queue.ranges)
            if not queue.ranges:
                del self._queues[queue.tenant]
        self.messages = sum(last - first + 1 for first, last in self.each())
        self.entries = sum(len(queue.ranges) for queue in self._queues.values())

    def _next(self, picked: dict[int, int]) -> TenantQueue | None:
        """The tenant to be served. Its entry is taken off the heap."""
        while self._heap:
            rank, tenant = heappop(self._heap)
            queue = self._queues.get(tenant)
            if queue is None or queue.entry != rank:
                continue
            if rank == self._rank(queue, picked):
                queue.entry = None
                return queue
            self._enter(queue, picked)
        return None

    def _serve(self, queue: TenantQueue, count: int, upto: int | None) -> tuple[int, int]:
        entries = len(queue.ranges)
        first, last = queue.take(count, upto)
        self.messages -= last - first + 1
        self.entries -= entries - len(queue.ranges)
        if not queue.ranges:
            del self._queues[queue.tenant]
        self._turn += 1
        self._served.pop(queue.tenant, None)
        self._served[queue.tenant] = self._turn
        if len(self._served) > SERVED_MAX:
            del self._served[next(iter(self._served))]
        return first, last

    def _rank(self, queue: TenantQueue, picked: dict[int, int]) -> Rank:
        tenant = queue.tenant
        in_flight = self._holdings.by_tenant.get(self._names.name(tenant), 0) + picked.get(tenant, 0)
        return in_flight, self._served.get(tenant, 0), queue.came

    def _enter(self, queue: TenantQueue, picked: dict[int, int]) -> None:
        queue.entry = self._rank(queue, picked)
        heappush(self._heap, (queue.entry, queue.tenant))
        if len(self._heap) > 2 * len(self._queues) + 64:
            self._heap = [
                (each.entry, each.tenant) for each in self._queues.values() if each.entry is not None
            ]
            heapify(self._heap)

    def _notice_falls(self) -> None:
        for name in self._fallen:
            tenant = self._names.known(name) if name is not None else 0
            queue = self._queues.get(tenant) if tenant is not None else None
            if queue is not None:
                self._enter(queue, {})
        self._fallen.clear()

    def check(self) -> None:
        assert self.messages == sum(last - first + 1 for first, last in self.each()), "F2"
        assert self.entries == sum(len(queue.ranges) for queue in self._queues.values()), "F2"
        entries = set(self._heap)
        for tenant, queue in self._queues.items():
            assert queue.ranges, "F2"
            assert (queue.entry, tenant) in entries, "F1"
            late = queue.entry is not None and queue.entry > self._rank(queue, {})
            assert not late or self._names.name(tenant) in self._fallen, "F1"


def _joined(taken: list[Taken]) -> list[Taken]:
    """Neighbours of one tenant as one range."""
    joined: list[Taken] = []
    for first, last, tenant in taken:
        if joined and joined[-1][1] + 1 == first and joined[-1][2] == tenant:
            joined[-1] = (joined[-1][0], last, tenant)
        else:
            joined.append((first, last, tenant))
    return joined
