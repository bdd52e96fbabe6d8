"""Durations as options: `500ms`, `30s`, `15m`, `2h`, `7d`, `1h30m`; `0` is none."""

from __future__ import annotations

import re
from typing import Final

import click

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+")


class DurationType(click.ParamType[int]):
    """Milliseconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = parse(str(value))
        if found is None:
            self.fail(f"{value!r} is no duration such as 500ms, 30s, 15m, 2h, 7d or 1h30m", param, ctx)
        return found


def parse(text: str) -> int | None:
    if text == "0":
        return 0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(text))
