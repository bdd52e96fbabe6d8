"""Durations as options: `500ms`, `30s`, `15m`, `2h`, `7d`, `1h30m`; `0` is none."""

from __future__ import annotations

import re
from typing import Final

import click

UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
LONGEST_MS: Final = 36_525 * UNITS_MS["d"]  # a century: whoever writes more has mistyped
_DIGITS_MAX: Final = 18
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(rf"(?:\d{{1,{_DIGITS_MAX}}}(?:ms|s|m|h|d))+")


class DurationType(click.ParamType[int]):
    """Milliseconds, from `shortest_ms` to `longest_ms`."""

    name = "duration"

    def __init__(self, longest_ms: int = LONGEST_MS, shortest_ms: int = 0, why: str = "") -> None:
        """`why` tells what is wrong with a shorter one."""
        self._longest_ms = longest_ms
        self._shortest_ms = shortest_ms
        self._why = why

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else parse(str(value))
        if found is None:
            self.fail(
                f"{shortened(value)} is not a duration such as 500ms, 30s, 15m, 2h, 7d or 1h30m", param, ctx
            )
        if found > self._longest_ms:
            self.fail(f"{value} is longer than {show(self._longest_ms)}", param, ctx)
        if found < self._shortest_ms:
            self.fail(f"{value} is shorter than {show(self._shortest_ms)}{self._why}", param, ctx)
        return found


def parse(text: str) -> int | None:
    if text == "0":
        return 0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(int(number) * UNITS_MS[unit] for number, unit in _PART.findall(text))


def show(duration_ms: int) -> str:
    """In the largest unit that holds it without a remainder: `12h`."""
    unit = next(unit for unit, size in reversed(UNITS_MS.items()) if duration_ms % size == 0)
    return f"{duration_ms // UNITS_MS[unit]}{unit}"


def shortened(value: object, characters: int = 60) -> str:
    """What was given, quoted, as far as an error message should repeat it."""
    text = str(value)
    return repr(text if len(text) <= characters else text[: characters - 1] + "…")
