"""Ranges of numbers on the command line: what the protocol's fields hold, and what makes sense."""

from __future__ import annotations

import math
from typing import Final

import click

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
SECONDS_MAX: Final = 86_400.0  # a day; in milliseconds that still fits the protocol's time-outs


class FiniteRange(click.FloatRange):
    """`nan` passes every comparison, so click's range lets it through."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))  # type: ignore[arg-type]
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


COUNT: Final = click.IntRange(1, INT32_MAX)
REPLICAS: Final = click.IntRange(1, INT16_MAX)
PARTITION: Final = click.IntRange(0, INT32_MAX)
OFFSET: Final = click.IntRange(0, INT64_MAX)
SECONDS: Final = FiniteRange(0.1, SECONDS_MAX)
