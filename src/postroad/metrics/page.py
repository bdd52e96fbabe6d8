"""The text exposition format of Prometheus, version 0.0.4.

    # HELP name what it means
    # TYPE name counter
    name{label="value"} 12

All lines of a name stand together: a `Family` gathers them, in whatever order they come to be known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"

_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SPECIAL: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP: Final = "# HELP "


def labels(**values: object) -> str:
    """`topic="orders",partition="0"`: as a sample has them between its braces."""
    return ",".join(f'{name}="{str(value).translate(_SPECIAL)}"' for name, value in values.items())


class Family:
    """One name with all its samples."""

    __slots__ = ("_constant", "_lines", "name")

    def __init__(self, name: str, kind: str, meaning: str, constant: str) -> None:
        assert _NAME.fullmatch(name), name
        self.name = name
        self._constant = constant
        self._lines = [f"{_HELP}{name} {meaning}", f"# TYPE {name} {kind}"]

    def add(self, value: float, given: str = "", suffix: str = "") -> None:
        """`given` is what `labels` answers."""
        both = f"{self._constant},{given}" if self._constant and given else self._constant or given
        braces = f"{{{both}}}" if both else ""
        self._lines.append(f"{self.name}{suffix}{braces} {_number(value)}")

    @property
    def lines(self) -> list[str]:
        """None without a sample: a name alone tells nothing."""
        return self._lines if len(self._lines) > 2 else []


class Page:
    """`constant`: labels that every sample on the page has."""

    def __init__(self, constant: str = "") -> None:
        self._constant = constant
        self._families: list[Family] = []

    def family(self, name: str, kind: str, meaning: str) -> Family:
        family = Family(name, kind, meaning, self._constant)
        self._families.append(family)
        return family

    def text(self) -> str:
        lines = [line for family in self._families for line in family.lines]
        return "\n".join([*lines, ""])


def merge(pages: Iterable[str]) -> str:
    """One page out of several that `Page` wrote, where the same names may stand on more than one."""
    merged: dict[str, list[str]] = {}
    for page in pages:
        for name, lines in _families(page):
            known = merged.get(name)
            if known is None:
                merged[name] = lines
            else:
                known.extend(lines[2:])
    return "\n".join([*(line for lines in merged.values() for line in lines), ""])


def _families(page: str) -> Iterator[tuple[str, list[str]]]:
    lines: list[str] = []
    for line in filter(None, page.split("\n")):  # a label may hold what else ends a line
        if line.startswith(_HELP) and lines:
            yield lines[0].split(" ", 3)[2], lines
            lines = []
        lines.append(line)
    if lines:
        yield lines[0].split(" ", 3)[2], lines


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return repr(float(value)).replace("inf", "Inf").replace("nan", "NaN")
