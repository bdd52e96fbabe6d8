"""A promise that was broken."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    invariant: str  # its number in docs/simulation.md, such as L1
    text: str
    at: float | None = None  # virtual seconds, where it was seen while the scenario ran

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}" + ("" if self.at is None else f" (at {self.at:.3f} s)")
