"""Server-side assignors (KIP-848): who shall own which partition.

`uniform` gives every member as many partitions as any other, and moves as few as that allows. `range` gives
each member the same stretch of every topic, so that partitions with one number come together (for joins),
static members in the order of their instance ids. Both are functions of their arguments alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import Final, NamedTuple

from postroad.groups.requests import Partitions, TopicPartition

_BALANCE_ROUNDS_MAX: Final = 16  # each round only improves; what is left after these is near enough


class Subscriber(NamedTuple):
    member_id: str
    instance_id: str | None
    topics: frozenset[bytes]  # ids
    previous: Partitions  # the target until now


Assignment = dict[str, Partitions]
Assignor = Callable[[Sequence[Subscriber], Mapping[bytes, int]], Assignment]


def uniform(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """`counts` holds the partitions of every subscribed topic that exists."""
    if len({subscriber.topics for subscriber in subscribers}) <= 1:
        return _uniform_alike(subscribers, counts)
    return _uniform_mixed(subscribers, counts)


def range_(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    owned: dict[str, list[TopicPartition]] = {subscriber.member_id: [] for subscriber in subscribers}
    in_order = sorted(subscribers, key=lambda s: (s.instance_id is None, s.instance_id or s.member_id))
    for topic_id, count in counts.items():
        readers = [s.member_id for s in in_order if topic_id in s.topics]
        if not readers:
            continue
        each, more = divmod(count, len(readers))
        start = 0
        for number, member_id in enumerate(readers):
            end = start + each + (number < more)
            owned[member_id] += (TopicPartition(topic_id, partition) for partition in range(start, end))
            start = end
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = {"uniform": uniform, "range": range_}
DEFAULT_ASSIGNOR: Final = "uniform"


def _uniform_alike(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """All read the same topics: each gets the quota, and some one more."""
    if not subscribers:
        return {}
    topics = subscribers[0].topics
    left = dict.fromkeys(tp for tp in _all_partitions(counts) if tp.topic_id in topics)
    quota, extras = divmod(len(left), len(subscribers))
    owned: dict[str, list[TopicPartition]] = {}
    for subscriber in subscribers:
        keeps = sorted(tp for tp in subscriber.previous if tp in left)
        size = quota + (len(keeps) > quota and extras > 0)
        extras -= size > quota
        owned[subscriber.member_id] = keeps[:size]
        for tp in keeps[:size]:
            del left[tp]
    spare = iter(left)
    for partitions in owned.values():
        while len(partitions) < quota:
            partitions.append(next(spare))
    for partitions in owned.values():
        if extras and len(partitions) == quota:
            partitions.append(next(spare))
            extras -= 1
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


def _uniform_mixed(subscribers: Sequence[Subscriber], counts: Mapping[bytes, int]) -> Assignment:
    """Topics differ: keep what may be kept, give the rest to whoever has least, then even out."""
    readers: dict[bytes, list[str]] = defaultdict(list)
    for subscriber in subscribers:
        for topic_id in sorted(subscriber.topics & counts.keys()):
            readers[topic_id].append(subscriber.member_id)
    owner: dict[TopicPartition, str] = {}
    load = {subscriber.member_id: 0 for subscriber in subscribers}
    for subscriber in subscribers:
        for tp in sorted(subscriber.previous):
            exists = tp.partition < counts.get(tp.topic_id, 0)
            if exists and tp.topic_id in subscriber.topics and tp not in owner:
                owner[tp] = subscriber.member_id
                load[subscriber.member_id] += 1
    # Topics with the fewest readers leave the least choice, so they come first.
    by_choice = sorted(readers, key=lambda topic_id: (len(readers[topic_id]), topic_id))
    for topic_id in by_choice:
        _give(topic_id, counts[topic_id], readers[topic_id], owner, load)
    for _ in range(_BALANCE_ROUNDS_MAX):
        moves = [
            _even_out(topic_id, counts[topic_id], readers[topic_id], owner, load) for topic_id in by_choice
        ]
        if not any(moves):
            break
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in load}
    for tp, member_id in owner.items():
        owned[member_id].append(tp)
    return {member_id: frozenset(partitions) for member_id, partitions in owned.items()}


def _give(
    topic_id: bytes, count: int, readers: list[str], owner: dict[TopicPartition, str], load: dict[str, int]
) -> None:
    heap = [(load[member_id], member_id) for member_id in readers]
    heapify(heap)
    for partition in range(count):
        tp = TopicPartition(topic_id, partition)
        if tp not in owner:
            owner[tp] = member_id = heap[0][1]
            load[member_id] += 1
            heapreplace(heap, (load[member_id], member_id))


def _even_out(
    topic_id: bytes, count: int, readers: list[str], owner: dict[TopicPartition, str], load: dict[str, int]
) -> bool:
    """Within one topic, move partitions from members that have two more than the least loaded reader."""
    moved = False
    heap = [(load[member_id], member_id) for member_id in readers]
    heapify(heap)
    held = [TopicPartition(topic_id, partition) for partition in range(count)]
    for tp in sorted(held, key=lambda tp: (-load[owner[tp]], tp)):
        least, receiver = heap[0]
        while load[receiver] != least:  # a giver's entry is out of date
            heapreplace(heap, (load[receiver], receiver))
            least, receiver = heap[0]
        giver = owner[tp]
        if load[giver] - least >= 2:
            owner[tp] = receiver
            load[giver] -= 1
            load[receiver] += 1
            moved = True
    return moved


def _all_partitions(counts: Mapping[bytes, int]) -> list[TopicPartition]:
    return [
        TopicPartition(topic_id, partition)
        for topic_id in sorted(counts)
        for partition in range(counts[topic_id])
    ]
