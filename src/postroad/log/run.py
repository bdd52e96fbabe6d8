"""Staged batches that go to one segment with one write, and where they will lie in it."""

from __future__ import annotations

from typing import Final

from postroad.log.aborted import AbortedTransaction

NO_BATCH: Final = -1


class Run:
    __slots__ = (
        "aborted",
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
        self.aborted: list[AbortedTransaction] = []  # whose markers are among these batches
        self.position = position  # where the next batch goes
        self.due = due  # the position from which the index wants an entry
        self.max_timestamp = max_timestamp  # in the segment, these batches included
        self.first_ms = first_ms  # when the segment got its first batch; NO_BATCH: it has none
        self.end_offset = base_offset  # after the last batch; set when the run is complete

    def add(self, batch: memoryview, base_offset: int, max_timestamp: int, index_interval_bytes: int) -> None:
        """Put a batch behind the others."""
        if self.position >= self.due:
            self.entries.append((base_offset, self.position, self.max_timestamp))
            self.due = self.position + index_interval_bytes
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
        self.buffers.append(batch)
        self.position += len(batch)
