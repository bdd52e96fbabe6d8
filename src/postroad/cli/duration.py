"""Durations as options: `500ms`, `30s`, `15m`, `2h`, `7d`, `1h30m`; `0` is none."""

from __future__ import annotations

import click

from postroad.cli.param_type import ParamType
from postroad.system.durations import LONGEST_MS, parse, show

__all__ = ["DurationType", "parse", "shortened", "show"]


class DurationType(ParamType[int]):
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


def shortened(value: object, characters: int = 60) -> str:
    """What was given, quoted, as far as an error message should repeat it."""
    text = str(value)
    return repr(text if len(text) <= characters else text[: characters - 1] + "…")
