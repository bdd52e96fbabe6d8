"""R3: what is too old or too much goes, as whole segments, and no more than that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simulator.violation import Violation


def check_time(topic: str, start: int, end: int) -> Iterator[Violation]:
    """Everything is older than the topic keeps it, and was for long enough."""
    if start < end:
        yield Violation("R3", f"{topic}: offsets {start} to {end - 1} should be gone by now")


def check_bytes(topic: str, segments: Mapping[int, int], retention_bytes: int) -> Iterator[Violation]:
    """`segments`: the size of each by its base offset, in order."""
    bases, total = list(segments), sum(segments.values())
    if total - segments[bases[0]] >= retention_bytes and len(bases) > 1:
        yield Violation("R3", f"{topic}: {total} bytes in {len(bases)} segments are more than it may keep")


def check_files(topic: str, start: int, segments: Mapping[int, int]) -> Iterator[Violation]:
    """The log begins in the first segment that is left: what lies before has no file any more."""
    bases = list(segments)
    if len(bases) > 1 and bases[1] <= start:
        yield Violation("R3", f"{topic}: the log begins at {start} and segment {bases[0]} is still there")
    if bases[0] > start:
        yield Violation("R3", f"{topic}: the log begins at {start} and its first segment at {bases[0]}")
