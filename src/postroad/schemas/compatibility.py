"""The levels of compatibility: which earlier versions a new schema is compared with, and in which directions.

BACKWARD   consumers with the new schema read what was written by the last one
FORWARD    consumers with the last schema read what is written by the new one
FULL       both;  …_TRANSITIVE: with every earlier version;  NONE: nothing is compared
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postroad.errors import InvalidCompatibilityLevel
from postroad.schemas.schema import Parsed, differences

DEFAULT: Final = "BACKWARD"
LEVELS: Final = (
    "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE",
)  # fmt: skip
MESSAGES_MAX: Final = 100  # told of one comparison


def check_level(level: str) -> str:
    """As it is written down. Raises InvalidCompatibilityLevel."""
    if level.upper() not in LEVELS:
        raise InvalidCompatibilityLevel(
            f"Invalid compatibility level {level!r}. Valid values are {', '.join(LEVELS)}."
        )
    return level.upper()


def is_transitive(level: str) -> bool:
    return level.endswith("_TRANSITIVE")


def problems(level: str, new: Parsed, earlier: Sequence[tuple[str, Parsed]]) -> list[str]:
    """Why the new schema may not follow; empty: it may. `earlier`: those to compare with, and how to call
    them."""
    if level == "NONE":
        return []
    found: list[str] = []
    for name, old in earlier:
        if level.startswith(("BACKWARD", "FULL")):
            found += [f"{name} can't be read by the new schema: {each}" for each in differences(new, old)]
        if level.startswith(("FORWARD", "FULL")):
            found += [f"{name} can't read the new schema: {each}" for each in differences(old, new)]
    return found[:MESSAGES_MAX]
