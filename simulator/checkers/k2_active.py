"""K2: compaction leaves the newest segment alone: all that was acknowledged there can be read.

In a cluster that is the newest of all replicas: each ends its segments by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.violation import Violation
from simulator.workloads.compacted_history import CompactedHistory, Scan


def check(history: CompactedHistory, scan: Scan, lost_until: float) -> Iterator[Violation]:
    """What was sent by `lost_until` may be gone: a power cut took what was not on the disk."""
    missing = [
        offset
        for offset, version in history.acknowledged.items()
        if offset >= scan.active
        and version.told < scan.seen_until
        and version.sent > lost_until
        and offset not in scan.records
    ]
    if missing:
        text = f"{history.topic}: {missing[0]} is gone, though the newest segment begins at {scan.active}"
        yield Violation("K2", text, scan.ended)
