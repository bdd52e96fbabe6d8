"""A message that a group committed first and processed then."""

from __future__ import annotations

from typing import NamedTuple

from simulator.workloads.log_history import Position


class Processed(NamedTuple):
    """A message whose offset was committed: handed over at `committed`, acknowledged at `at`."""

    position: Position
    value: bytes
    committed: float
    at: float
    member: str
