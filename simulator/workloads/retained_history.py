"""What was seen of a log that lets go of its beginning."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from simulator.workloads.log_history import LogHistory


class Start(NamedTuple):
    """Where the log began, by an answer to a request that went out at `asked` and came back at `told`.

    Where an old leader may have answered, `asked` is when it was replaced."""

    asked: float
    told: float
    offset: int
    is_kept: bool = True  # whether every node that may lead later knows of it


class Step(NamedTuple):
    """A reader was at one offset and found another one next."""

    at: float
    expected: int
    found: int


class RetainedHistory(LogHistory):
    """One partition. `retention_ms` is -1 where time is no reason to delete."""

    def __init__(self, topic: str, retention_ms: int) -> None:
        super().__init__(topic, acks=-1, idempotent=True)
        self.retention_ms = retention_ms
        self.known_starts: list[Start] = []  # in the order of the answers
        self.deletions: list[tuple[float, int]] = []  # (when it was asked for, below which offset)
        self.asked_for = 0  # the highest offset below which somebody wanted everything deleted
        self.steps: list[Step] = []  # forward, over records that a reader did not see
        self.ended = inf  # when somebody asked where the log begins in the end; readers go on
        self.served_below: list[tuple[float, int]] = []  # (when, what) came from below a start

    def served(self, at: float, offset: int) -> None:
        if self.known_starts and offset < self.known_starts[-1].offset:
            self.served_below.append((at, offset))
