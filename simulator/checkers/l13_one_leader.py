"""L13: a leader epoch has one leader, epochs never fall, and who leads has all that is committed: it was in
sync, or might still be elected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from postroad.cluster.image import NO_LEADER
from simulator.cluster_history import Stated, Where
from simulator.violation import Violation


def check(states: Mapping[Where, Sequence[Stated]]) -> Iterator[Violation]:
    """All states of all partitions, each partition's in order."""
    for (topic_id, index), stated in states.items():
        name = f"{topic_id.hex()[:8]}-{index}"
        leaders: dict[int, int] = {}
        for number, (at, state) in enumerate(stated):
            if state.leader == NO_LEADER:
                continue
            other = leaders.setdefault(state.leader_epoch, state.leader)
            if other != state.leader:
                text = f"{name}: epoch {state.leader_epoch} has the leaders {other} and {state.leader}"
                yield Violation("L13", text, at)
            if number and state.leader not in _electable(stated[number - 1]):
                yield Violation("L13", f"{name}: {state.leader} was elected, and was not in sync", at)
        for (_, before), (at, after) in pairwise(stated):
            if after.leader_epoch < before.leader_epoch:
                yield Violation(
                    "L13", f"{name}: epoch {after.leader_epoch} follows {before.leader_epoch}", at
                )


def _electable(stated: Stated) -> tuple[int, ...]:
    return (*stated.state.isr, *stated.state.elr)
