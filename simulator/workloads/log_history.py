"""What clients of one topic were told and saw: the material of the log's checks."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple


class Position(NamedTuple):
    partition: int
    offset: int


class Told(NamedTuple):
    """A value, and a moment before which nobody can have been told of it."""

    value: bytes
    at: float


class LogHistory:
    """`acks` is what its producers asked for: 0, 1 or -1 (all)."""

    def __init__(self, topic: str, acks: int, idempotent: bool) -> None:
        self.topic = topic
        self.acks = acks
        self.idempotent = idempotent
        self.sent: dict[bytes, float] = {}  # every value, with the time when it was handed over
        self.acknowledged: dict[Position, Told] = {}
        self.in_doubt: dict[bytes, None] = {}  # values whose sender was told of an error, or of nothing
        self.seen: dict[Position, Told] = {}  # by any reader, at first
        self.final: dict[Position, bytes] = {}  # by the one that read all of it in the end
        self.starts: dict[int, int] = {}  # where a partition began by then; what lay below may be gone
        self._last: dict[tuple[str, int], tuple[int, float]] = defaultdict(lambda: (-1, 0.0))

    def is_kept(self, position: Position) -> bool:
        """Whether the log had not let go of it when all was read in the end."""
        return position.offset >= self.starts.get(position.partition, 0)

    def lasting(self, partition: int) -> list[int]:
        """Offsets of which no power cut takes the message where logs are synced: those that were acknowledged
        by all, or that a reader has seen. With acks=1 an acknowledgement alone promises no such thing."""
        there = self.acknowledged if self.acks == -1 else self.seen
        return [position.offset for position in there if position.partition == partition]

    def rises(self, producer: str, position: Position, sent_at: float, lost_until: float) -> bool:
        """Whether a producer's acknowledged sends to a partition rise, as they should.

        What it had sent before `lost_until` may be gone: its offset may be given out again.
        """
        last, last_sent_at = self._last[producer, position.partition]
        self._last[producer, position.partition] = position.offset, sent_at
        return position.offset > last or last_sent_at <= lost_until
