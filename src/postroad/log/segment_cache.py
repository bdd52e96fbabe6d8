"""Which closed segments keep their descriptor and index: the ones read last, up to a bound."""

from __future__ import annotations

from typing import Final

from postroad.log.segment import Segment

OPEN_SEGMENTS_MAX: Final = 64  # at most some 0.4 MB of index and one descriptor each


class SegmentCache:
    """One may serve all logs of a node. Dropping is safe at any time: slices keep their file open."""

    def __init__(self, limit: int = OPEN_SEGMENTS_MAX) -> None:
        self._limit = limit
        self._segments: dict[Segment, None] = {}  # the one used last at the end

    def touch(self, segment: Segment) -> None:
        """It is being read: the one that was not for the longest time may go."""
        self._segments.pop(segment, None)
        self._segments[segment] = None
        if len(self._segments) > self._limit:
            self.drop(next(iter(self._segments)))

    def drop(self, segment: Segment) -> None:
        """For any thread: a log may be closed in one."""
        self._segments.pop(segment, None)
        segment.release()
