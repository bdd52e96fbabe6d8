"""The fewest faults with which a seed still fails."""

from __future__ import annotations

from collections.abc import Sequence

from simulator.campaign import Campaign, play_apart
from simulator.faults import Fault
from simulator.scenario import Result


def shrink(campaign: Campaign, failed: Result) -> Result:
    """Leave out halves, quarters … and single faults, as long as the same invariant is broken."""
    invariant, best = failed.violations[0].invariant, failed
    size = max(1, len(best.plan) // 2)
    while best.plan:
        shorter = _shorter(campaign, best, invariant, size)
        if shorter is not None:
            best = shorter
        elif size == 1:
            break
        else:
            size //= 2
        size = min(size, max(1, len(best.plan)))
    return best


def _shorter(campaign: Campaign, best: Result, invariant: str, size: int) -> Result | None:
    for start in range(0, len(best.plan), size):
        plan: Sequence[Fault] = [*best.plan[:start], *best.plan[start + size :]]
        result = play_apart(campaign, best.seed, plan)
        if any(violation.invariant == invariant for violation in result.violations):
            return result
    return None
