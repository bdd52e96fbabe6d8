"""P1 to P5: what the store says of a partition agrees with itself, also between two commits that belong
together: whoever reads it then acts on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from postroad.cluster.image import check_state
from simulator.cluster_history import Stated, Where
from simulator.violation import Violation


def check(states: Mapping[Where, Sequence[Stated]]) -> Iterator[Violation]:
    """The first state of each partition that contradicts itself."""
    for (topic_id, index), stated in states.items():
        for at, state in stated:
            try:
                check_state(state)
            except AssertionError:
                yield Violation("P1", f"{topic_id.hex()[:8]}-{index} contradicts itself: {state}", at)
                break
