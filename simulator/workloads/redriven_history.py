"""What became of messages that die, and are sent back from their dead-letter topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simulator.workloads.log_history import Position

Headers = Sequence[tuple[str, bytes | None]]


@dataclass
class SentOut:
    """A producer's message. Each copy of it in the log is a life; it is rejected in the first `deaths`."""

    value: bytes
    key: bytes
    headers: Headers
    deaths: int
    sent_at: float
    is_acknowledged: bool = False
    lives: list[Position] = field(default_factory=list)  # where it came to the subscription, in that order
    may_be_accepted: bool = False  # a member accepted it, and was not refused


class Copy(NamedTuple):
    """The message, or a copy of it that was sent back, as it lies in its topic in the end."""

    position: Position
    value: bytes
    key: bytes | None
    headers: Headers


class RedrivenHistory:
    def __init__(self, topic: str, subscription: str) -> None:
        self.topic = topic
        self.subscription = subscription
        self.sent: dict[bytes, SentOut] = {}  # by value
        self.copies: list[Copy] = []
        self.letters: Counter[bytes] = Counter()  # by value: how many lie in the dead-letter topic
        self.came_to_others: list[tuple[bytes, Position]] = []  # to another subscription of the topic
        self.doubtful_runs = 0  # redrives that ended with an error, so that letters may go out once more
