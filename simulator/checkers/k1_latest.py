"""K1: whoever reads a compacted topic from the beginning finds the latest value of each key, where it was.

A tombstone may be gone once delete.retention.ms have passed by the node's clock; then nothing of its key is
left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from simulator.violation import Violation
from simulator.workloads.compacted_history import CompactedHistory, Scan, Version
from simulator.workloads.log_writer import ON_ITS_WAY_S

Passed = Callable[[float, float], int]  # the most time that the node's clock may have shown to pass, in ms


def check(history: CompactedHistory, scan: Scan, passed_ms: Passed, lost_until: float) -> Iterator[Violation]:
    """What was sent by `lost_until` may be gone: a power cut took what was not on the disk."""
    for offset, (key, value) in scan.records.items():
        known = history.acknowledged.get(offset)
        if known is None or not lost_until < known.sent <= scan.ended:
            continue
        if (known.key, known.value) != (key, value):
            text = f"{history.topic}: {offset} holds {key!r}, and {known.key!r} was acknowledged there"
            yield Violation("L2", text, scan.ended)
            return
    for offset, version in _latest(history, scan, lost_until).items():
        found = max((at for at, (key, _) in scan.records.items() if key == version.key), default=-1)
        if found >= offset or _may_be_superseded(history, scan, offset, version):
            continue
        if found < 0 and _may_be_deleted(history, scan, version, passed_ms):
            continue
        if version.value is None and passed_ms(version.sent, scan.ended) >= history.delete_retention_ms:
            if found < 0:
                continue
            why = f"its tombstone at {offset} is gone, and {found} is back"
        else:
            why = f"{'its tombstone' if version.value is None else 'its value'} at {offset} is gone"
        yield Violation("K1", f"{history.topic}: {version.key!r}: {why}", scan.ended)
        return


def _latest(history: CompactedHistory, scan: Scan, lost_until: float) -> dict[int, Version]:
    """The latest version of each key that was acknowledged before the scan, or before the leader that it
    asked was replaced; by offset."""
    latest: dict[bytes, int] = {}
    for offset, version in history.acknowledged.items():
        if version.told < scan.seen_until and version.sent > lost_until:
            latest[version.key] = max(offset, latest.get(version.key, -1))
    return {offset: history.acknowledged[offset] for offset in latest.values()}


def _may_be_superseded(history: CompactedHistory, scan: Scan, offset: int, version: Version) -> bool:
    """By one that came while the scan went on, behind the end that it went to. One of which nobody knows
    may have been on its way when it began; had it been there by then, the scan would have found it."""
    later = any(
        at > offset and other.key == version.key and other.sent <= scan.ended
        for at, other in history.acknowledged.items()
    )
    return later or any(
        other.key == version.key and scan.begun - ON_ITS_WAY_S < other.sent <= scan.ended
        for other in history.in_doubt.values()
    )


def _may_be_deleted(history: CompactedHistory, scan: Scan, version: Version, passed_ms: Passed) -> bool:
    """By a tombstone of which nobody knows, and which is gone itself by now, with all that was before it."""
    return any(
        other.key == version.key
        and other.value is None
        and other.sent <= scan.ended
        and passed_ms(other.sent, scan.ended) >= history.delete_retention_ms
        for other in history.in_doubt.values()
    )
