"""O1: where a group's members commit before they process, no message is processed twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.processed import Processed


def check(topic: str, processed: Sequence[Processed], cuts: Sequence[float]) -> Iterator[Violation]:
    """`cuts`: power cuts that may have taken the commits that were handed over before them."""
    last: dict[tuple[Position, bytes], Processed] = {}
    for each in processed:
        before = last.get((each.position, each.value))
        if before is not None and not any(before.committed <= cut <= each.at for cut in cuts):
            yield Violation(
                "O1",
                f"{topic}: {tuple(each.position)} was processed by {before.member[:8]} after a commit that "
                f"was acknowledged at {before.at:.3f} s, and again by {each.member[:8]}",
                each.at,
            )
            return
        last[each.position, each.value] = each
