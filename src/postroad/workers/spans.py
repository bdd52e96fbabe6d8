"""Lengths of time as this API takes them: "30s", seconds, or a timedelta."""

from __future__ import annotations

from datetime import timedelta

from postroad.system.durations import LONGEST_MS, parse, show

Span = str | int | float | timedelta


def milliseconds(span: Span, name: str, *, shortest_ms: int = 0, longest_ms: int = LONGEST_MS) -> int:
    """ValueError, with the argument's name in it, for what is none or is out of bounds."""
    if isinstance(span, timedelta):
        found: int | None = round(span.total_seconds() * 1000)
    elif isinstance(span, str):
        found = parse(span)
    elif isinstance(span, bool) or span != span or abs(span) > LONGEST_MS:
        found = None
    else:
        found = round(span * 1000)
    if found is None or found < 0:
        raise ValueError(
            f"{name}: {span!r} is no duration: write '500ms', '30s', '15m', '2h', '1h30m', or seconds"
        )
    if found < shortest_ms:
        raise ValueError(f"{name}: {span!r} is shorter than {show(shortest_ms)}")
    if found > longest_ms:
        raise ValueError(f"{name}: {span!r} is longer than {show(longest_ms)}")
    return found
