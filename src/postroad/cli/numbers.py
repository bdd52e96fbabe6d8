"""Numbers on the command line: what the protocol's fields hold, and what makes sense.

Click's own ranges let `nan` through, and print `[1<=x<=2147483647]` beside each option.
"""

from __future__ import annotations

import math
from typing import Final

import click

from postroad.cli.duration import shortened
from postroad.cli.param_type import ParamType

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
DIGITS_MAX: Final = 20  # more than any number here has; Python refuses to read thousands of them
SECONDS_MAX: Final = 86_400.0  # a day; in milliseconds that still fits the protocol's time-outs


class WholeNumber(ParamType[int]):
    name = "number"

    def __init__(self, lowest: int, highest: int) -> None:
        self._lowest = lowest
        self._highest = highest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        try:
            found = int(text) if len(text) <= DIGITS_MAX else self._highest + 1
        except ValueError:
            found = self._highest + 1
        if not self._lowest <= found <= self._highest:
            self.fail(
                f"{shortened(text)} is not a whole number from {self._lowest} to {self._highest}", param, ctx
            )
        return found


class DecimalNumber(ParamType[float]):
    name = "number"

    def __init__(self, lowest: float, highest: float) -> None:
        self._lowest = lowest
        self._highest = highest

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(str(value))
        except ValueError:
            found = math.nan
        if not self._lowest <= found <= self._highest:  # false for nan
            self.fail(
                f"{shortened(value)} is not a number from {self._lowest:g} to {self._highest:g}", param, ctx
            )
        return found


COUNT: Final = WholeNumber(1, INT32_MAX)
NODES: Final = WholeNumber(1, 100)  # of one machine; each takes 60 MB
REPLICAS: Final = WholeNumber(1, INT16_MAX)
PARTITION: Final = WholeNumber(0, INT32_MAX)
OFFSET: Final = WholeNumber(0, INT64_MAX)
SECONDS: Final = DecimalNumber(0.1, SECONDS_MAX)
