"""Durations as text: `500ms`, `30s`, `15m`, `2h`, `7d`, `1h30m`; `0` is none."""

from __future__ import annotations

import re
from typing import Final

UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_MS: Final = 36_525 * UNITS_MS["d"]  # a century: whoever writes more has mistyped
_DIGITS_MAX: Final = 18
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(rf"(?:\d{{1,{_DIGITS_MAX}}}(?:ms|s|m|h|d))+")


def parse(text: str) -> int | None:
    """Milliseconds; None for what is no duration."""
    if text == "0":
        return 0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(int(number) * UNITS_MS[unit] for number, unit in _PART.findall(text))


def show(duration_ms: int) -> str:
    """In the largest unit that holds it without a remainder: `12h`."""
    unit = next(unit for unit, size in reversed(UNITS_MS.items()) if duration_ms % size == 0)
    return f"{duration_ms // UNITS_MS[unit]}{unit}"
