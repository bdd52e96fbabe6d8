"""R1: a log's start only rises, also over a kill: what was deleted once is never served again.

A power cut may bring back what was deleted shortly before it. In a cluster an answered request to delete
stays in effect; what retention deletes the next leader may still have, and deletes itself. A leader that has
not heard yet that it was replaced tells where the log began until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simulator.violation import Violation
from simulator.workloads.log_writer import ON_ITS_WAY_S
from simulator.workloads.retained_history import RetainedHistory


def check(history: RetainedHistory, power_cuts: Sequence[float]) -> Iterator[Violation]:
    """`power_cuts`: when they were."""
    known = history.known_starts
    for number, start in enumerate(known):
        last_cut = max((cut for cut in power_cuts if cut < start.told), default=0.0)
        floor = max(
            (s.offset for s in known[:number] if s.is_kept and last_cut < s.asked and s.told < start.asked),
            default=0,
        )
        if start.offset < floor:
            text = f"{history.topic}: the log begins at {start.offset} and began at {floor} before"
            yield Violation("R1", text, start.told)
            return
    for at, offset in history.served_below:
        last_cut = max((cut for cut in power_cuts if cut < at), default=0.0)
        kept = [s for s in known if s.is_kept and last_cut < s.asked]
        floors = [s.offset for s in kept if s.told < at - ON_ITS_WAY_S]
        if offset < max(floors, default=0):
            text = f"{history.topic}: offset {offset} was served when the log began at {max(floors)}"
            yield Violation("R1", text, at)
            return
