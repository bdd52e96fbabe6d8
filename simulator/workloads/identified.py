"""A message with an id, and whether a subscription got it."""

from __future__ import annotations

from typing import NamedTuple

from simulator.workloads.log_history import Position


class Identified(NamedTuple):
    """A message with an id, as it lies in the log in the end."""

    position: Position
    timestamp: int
    identity: bytes
    value: bytes
    is_delivered: bool
    may_be_lost: bool  # a power cut may have taken what the node knew of it
