"""What was written to a compacted topic, and what those saw who read all of it."""

from __future__ import annotations

from typing import NamedTuple


class Version(NamedTuple):
    """A value of a key (None: a tombstone). `told` is when its sender heard that it is there."""

    key: bytes
    value: bytes | None
    sent: float
    told: float


class Scan(NamedTuple):
    """Everything that lay in the log from its beginning to the end that it had when the scan began."""

    begun: float
    ended: float
    records: dict[int, tuple[bytes, bytes | None]]  # by offset
    active: int  # the base offset of the newest segment, afterwards
    seen_until: float  # what was committed by then lay there: `begun`, unless an old leader may have answered


class CompactedHistory:
    """One partition."""

    def __init__(self, topic: str, delete_retention_ms: int) -> None:
        self.topic = topic
        self.delete_retention_ms = delete_retention_ms
        self.acknowledged: dict[int, Version] = {}  # by offset
        self.in_doubt: dict[int, Version] = {}  # by number: their sender was told of an error, or of nothing
        self.scans: list[Scan] = []
