"""Who fetches from which partition of a share group.

Members share partitions, so the question is not who owns one but who looks after it:

- Every partition of a topic that anyone subscribes to is looked after, by two members where two subscribe:
  one that stalls holds nothing up, and one that leaves is not missed until the others hear of it.
- Nobody who subscribes to a partition idles: with more members than that needs, partitions have more members.
- Members with the same subscription have as many partitions as one another, give or take one; partitions
  with the same subscribers have as many members, give or take one.
- Of what was assigned before, as much stays as that allows.

Each pass below removes one fault without bringing back another: moves between members leave the members of
a partition as many as they were, moves between partitions leave each member's share as large as it was. So
the passes come to rest, and an assignment that is at rest is left as it is. Where subscriptions differ they
may rest with some members a little busier than others; that is near enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final, NamedTuple

from postroad.groups.assignors import Assignment, Subscriber
from postroad.groups.requests import TopicPartition

COPIES: Final = 2  # members that look after a partition, where there are as many
_ROUNDS_MAX: Final = 64  # each round only improves, and two or three are enough for all but oddities


def spread(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """An `Assignor` (see `assignors.py`): `counts` holds the partitions of every subscribed topic."""
    draft = _Draft(subscribers, counts)
    draft.keep(subscribers)
    draft.cover()
    for _ in range(_ROUNDS_MAX):
        passes = (draft.trim(), draft.even_out_members(), draft.employ(), draft.even_out_partitions())
        if not any(passes):
            break
    return draft.assignment()


class _Pool(NamedTuple):
    """Partitions with the same subscribers."""

    readers: list[str]  # in order
    partitions: list[TopicPartition]  # in order
    copies: int


class _Draft:
    """Each pass returns whether it changed anything."""

    def __init__(self, subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> None:
        self._load = dict.fromkeys(sorted(s.member_id for s in subscribers), 0)
        self._pools = _pools(subscribers, counts)
        self._holders: dict[TopicPartition, set[str]] = {
            tp: set() for pool in self._pools for tp in pool.partitions
        }

    def keep(self, subscribers: Sequence[Subscriber]) -> None:
        for subscriber in subscribers:
            for tp in subscriber.previous:
                if tp in self._holders and tp.topic_id in subscriber.topics:
                    self._give(tp, subscriber.member_id)

    def cover(self) -> None:
        """Give every partition its members."""
        for pool in self._pools:
            heap = self._least_loaded_first(pool)
            for tp in pool.partitions:
                passed_over = []  # they look after it already
                while len(self._holders[tp]) < pool.copies:
                    member_id = self._least_loaded(heap)
                    if member_id in self._holders[tp]:
                        passed_over.append(heappop(heap))
                    else:
                        self._give(tp, member_id)
                        heapreplace(heap, (self._load[member_id], member_id))
                for entry in passed_over:
                    heappush(heap, entry)

    def trim(self) -> bool:
        """Take a partition that has members enough from those who have others, the busiest first."""
        trimmed = False
        for pool in self._pools:
            for tp in pool.partitions:
                while len(self._holders[tp]) > pool.copies:
                    busiest = self._busiest(tp)
                    if self._load[busiest] <= 1:
                        break
                    self._take(tp, busiest)
                    trimmed = True
        return trimmed

    def even_out_members(self) -> bool:
        """Move partitions from members that have two more than the least loaded one."""
        moved = False
        for pool in self._pools:
            heap = self._least_loaded_first(pool)
            for tp in pool.partitions:
                receiver, giver = self._least_loaded(heap), self._busiest(tp)
                if self._load[giver] - self._load[receiver] >= 2 and receiver not in self._holders[tp]:
                    self._take(tp, giver)
                    self._give(tp, receiver)
                    heapreplace(heap, (self._load[receiver], receiver))
                    moved = True
        return moved

    def employ(self) -> bool:
        """Give members without a partition one of those that have the fewest members."""
        employed = False
        for pool in self._pools:
            heap = [(len(self._holders[tp]), tp) for tp in pool.partitions]
            heapify(heap)
            for member_id in pool.readers:
                if not self._load[member_id]:
                    members, tp = heap[0]
                    self._give(tp, member_id)
                    heapreplace(heap, (members + 1, tp))
                    employed = True
        return employed

    def even_out_partitions(self) -> bool:
        """Move members from partitions that have two more than the one with the fewest."""
        moved = False
        for pool in self._pools:
            while True:
                fewest = min(pool.partitions, key=lambda tp: (len(self._holders[tp]), tp))
                most = max(pool.partitions, key=lambda tp: (len(self._holders[tp]), tp))
                if len(self._holders[most]) - len(self._holders[fewest]) < 2:
                    break
                member_id = min(self._holders[most] - self._holders[fewest])
                self._take(most, member_id)
                self._give(fewest, member_id)
                moved = True
        return moved

    def assignment(self) -> Assignment:
        held: dict[str, list[TopicPartition]] = {member_id: [] for member_id in self._load}
        for tp, holders in self._holders.items():
            for member_id in holders:
                held[member_id].append(tp)
        return {member_id: frozenset(partitions) for member_id, partitions in held.items()}

    # --- helpers ---

    def _give(self, tp: TopicPartition, member_id: str) -> None:
        self._holders[tp].add(member_id)
        self._load[member_id] += 1

    def _take(self, tp: TopicPartition, member_id: str) -> None:
        self._holders[tp].remove(member_id)
        self._load[member_id] -= 1

    def _busiest(self, tp: TopicPartition) -> str:
        return max(self._holders[tp], key=lambda member_id: (self._load[member_id], member_id))

    def _least_loaded_first(self, pool: _Pool) -> list[tuple[int, str]]:
        heap = [(self._load[member_id], member_id) for member_id in pool.readers]
        heapify(heap)
        return heap

    def _least_loaded(self, heap: list[tuple[int, str]]) -> str:
        """A member's entry may be out of date: it is put right when it comes up."""
        load, member_id = heap[0]
        while load != self._load[member_id]:
            heapreplace(heap, (self._load[member_id], member_id))
            load, member_id = heap[0]
        return member_id


def _pools(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> list[_Pool]:
    """Those with the fewest subscribers leave the least choice, so they come first."""
    readers: dict[bytes, list[str]] = defaultdict(list)
    for member_id, topics in sorted((s.member_id, s.topics) for s in subscribers):
        for topic_id in topics & counts.keys():
            readers[topic_id].append(member_id)
    partitions: dict[tuple[str, ...], list[TopicPartition]] = defaultdict(list)
    for topic_id in sorted(readers):
        partitions[tuple(readers[topic_id])] += [TopicPartition(topic_id, n) for n in range(counts[topic_id])]
    pools = [_Pool(list(who), what, min(COPIES, len(who))) for who, what in partitions.items() if what]
    return sorted(pools, key=lambda pool: (len(pool.readers), pool.readers))
