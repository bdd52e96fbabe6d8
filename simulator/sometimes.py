"""Events that a run of many seeds must reach: a check that is never put to the test proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SEEDS_MIN: Final = 200  # fewer need not reach everything

EVENTS: Final[tuple[str, ...]] = (
    "clean stop",
    "power cut",
    "power cut while it starts",
    "start refused",
)


def missing(seen: Mapping[str, int]) -> list[str]:
    return [event for event in EVENTS if not seen.get(event)]
