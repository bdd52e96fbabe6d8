"""L14: a commit from a stale generation or member epoch is refused.

So is an operator's commit while the group has members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.group_history import GroupHistory


def check(history: GroupHistory, cuts: Sequence[float]) -> Iterator[Violation]:
    """`cuts`: power cuts that may have taken what had made an identity stale, or the identity itself: then
    the group counts anew, and may give it out once more."""
    for commit in history.stale:
        if commit.is_taken and not any(cut >= commit.since for cut in cuts):
            yield Violation(
                "L14",
                f"{history.group}: a commit of {commit.who} was taken, which had been stale since "
                f"{commit.known_at:.3f} s",
                commit.handed,
            )
    for handed, told in history.operated:
        if not cuts and any(pulse.lasts_over(handed, told) for pulse in history.pulses):
            yield Violation("L14", f"{history.group}: it has members, and took an operator's commit", told)
