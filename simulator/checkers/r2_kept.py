"""R2: nothing is deleted before its time: neither by retention nor behind what somebody asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simulator.violation import Violation
from simulator.workloads.log_writer import timestamp_ms
from simulator.workloads.retained_history import RetainedHistory


def check(
    history: RetainedHistory, latest_ms: Callable[[float, float], int], lost_until: float
) -> Iterator[Violation]:
    """`latest_ms`: the latest time that the node's wall clock showed between two moments. What was there by
    `lost_until` may be gone, and its offsets may hold later messages, whatever the start was before."""
    checked = history.asked_for
    for start in history.known_starts:
        for position, told in history.acknowledged.items():
            if not checked <= position.offset < start.offset:
                continue
            if start.asked <= lost_until < told.at:
                continue
            sent_ms = timestamp_ms(told.at)
            if history.retention_ms < 0 or told.at > start.told:
                why = "and nobody asked for that"
            elif sent_ms >= (now_ms := latest_ms(told.at, start.told)) - history.retention_ms:
                why = f"{now_ms - sent_ms} ms old by the node's clock; it keeps {history.retention_ms} ms"
            else:
                continue
            text = f"{history.topic}: the log begins at {start.offset}, so {position.offset} is gone: {why}"
            yield Violation("R2", text, start.told)
            return
        checked = max(checked, start.offset)


def check_steps(history: RetainedHistory, final_start: int, last_power_cut: float) -> Iterator[Violation]:
    """A reader passes over records only where the log has let go of them. A power cut may bring some back.

    What comes after somebody asked for `final_start` says nothing: the log may have let go of more by then.
    """
    for step in history.steps:
        if last_power_cut < step.at < history.ended and step.found > final_start:
            text = f"{history.topic}: {step.found} came where {step.expected} was next"
            yield Violation("L5", f"{text}, and the log begins at {final_start}", step.at)
            return
