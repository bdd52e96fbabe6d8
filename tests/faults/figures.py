"""Figures that the failure matrix has measured, shown when the tests are over."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

SEEN: list[str] = []


def note(row: str, **figures: object) -> None:
    """Remember what was seen in a row of the matrix; times are in seconds."""
    shown = ", ".join(f"{name} {_text(value)}" for name, value in figures.items())
    SEEN.append(f"{row}: {shown}")


def note_gaps(row: str, gaps: Sequence[float]) -> None:
    """Remember how long clients waited."""
    every = " ".join(map(_text, gaps))
    note(row, times=len(gaps), p50=median(gaps), max=max(gaps), all=every)


def _text(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)
