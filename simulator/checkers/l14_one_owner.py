"""L14: no partition has two owners.

In the classic protocol: none in one generation. In the newer one: none at any moment; a partition goes on to
the next member only after the last one has begun to confirm that it gave it up, has left, was silent for its
session, or did not confirm within its rebalance timeout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.group_history import Given, GroupHistory, Hold


def check(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    """`cuts`: power cuts after which the group may have forgotten its last members and generations."""
    yield from _check_generations(history, cuts)
    yield from _check_holds(history, cuts)


def _check_generations(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    owners: dict[tuple[int, int], Given] = {}
    for given in history.given:
        before = owners.setdefault((given.generation, given.partition), given)
        if before.owner == given.owner:
            continue
        if not any(before.asked <= cut <= given.told for cut in cuts):
            yield Violation(
                "L14",
                f"{history.group}: partition {given.partition} was given to {before.owner} and to "
                f"{given.owner} in generation {given.generation}",
                given.told,
            )
        owners[given.generation, given.partition] = given


def _check_holds(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    for given in history.holds:
        for held in history.holds:
            if held.partition != given.partition or held.owner == given.owner:
                continue
            # The answer that gave it away may have been late: the decision came after it was asked for.
            if held.since < given.asked and held.is_due_at(given.since) and not _forgotten(held, given, cuts):
                yield Violation(
                    "L14",
                    f"{history.group}: partition {given.partition} was given to {given.owner} while "
                    f"{held.owner} had it, since {held.since:.3f} s",
                    given.since,
                )


def _forgotten(held: Hold, given: Hold, cuts: Sequence[float]) -> bool:
    return any(held.asked <= cut <= given.since for cut in cuts)
