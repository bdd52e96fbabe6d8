"""What was done to a topic that is deleted and made anew under one name, and what was seen of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from simulator.workloads.log_history import LogHistory

LATE_S: Final = 60.0  # a change whose answer was lost may take effect until then


class ChangeKind(StrEnum):
    CREATE = "create"
    DELETE = "delete"
    GROW = "grow"


@dataclass
class Change:
    """One operator makes them all, one after the other. `told` is inf where nobody knows what came of it."""

    kind: ChangeKind
    asked: float
    partitions: int = 0  # that there are afterwards
    told: float = inf

    @property
    def over_at(self) -> float:
        """It has taken effect by then, or never will."""
        return self.told if self.told < inf else self.asked + LATE_S


class Look(NamedTuple):
    """The topic as a node described it; an id of None: there was none."""

    asked: float
    told: float
    topic_id: bytes | None
    partitions: int
    known: float  # the node knew of all changes that were made by then; with one node that is `asked`


class RecreatedHistory:
    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.changes: list[Change] = []
        self.looks: list[Look] = []
        self.incarnations: dict[bytes, LogHistory] = {}  # by topic id: what was stored and read there
        self.created: dict[bytes, float] = {}  # by topic id: when the store had it first
        self.sent: dict[bytes, float] = {}  # every value, with the time when it was handed over
        self.first_offsets: list[tuple[bytes, int, int]] = []  # (topic id, partition, offset) of each reading

    def incarnation(self, topic_id: bytes) -> LogHistory:
        if topic_id not in self.incarnations:
            found = LogHistory(self.topic, acks=-1, idempotent=True)
            found.sent = self.sent
            self.incarnations[topic_id] = found
        return self.incarnations[topic_id]
