"""Staged batches that go to one segment with one write, and where they will lie in it."""

from __future__ import annotations

from typing import Final

NO_BATCH: Final = -1


class Run:
    __slots__ = (
        "base_offset",
        "buffers",
        "due",
        "end_offset",
        "entries",
        "first_ms",
        "max_timestamp",
        "position",
    )

    def __init__(self, base_offset: int, position: int, due: int, max_timestamp: int, first_ms: int) -> None:
        self.base_offset = base_offset  # of the segment
        self.buffers: list[memoryview] = []
        self.entries: list[tuple[int, int, int]] = []  # (offset, position, time) for the index
        self.position = position  # where the next batch goes
        self.due = due  # the position from which the index wants an entry
        self.max_timestamp = max_timestamp  # in the segment, these batches included
        self.first_ms = first_ms  # when the segment got its first batch; NO_BATCH: it has none
        self.end_offset = base_offset  # after the last batch; set when the run is complete
