"""What transactions leave to a subscription with `share.isolation.level` read_committed (KIP-932).

Its queues end at the stable offset, so that nothing is delivered before its transaction has ended, and pass
over what was aborted. Both follow from the log alone, whoever leads it. Messages are decided about when they
are scanned, and stay decided: below the stable offset no transaction changes any more.
"""

from __future__ import annotations

from bisect import bisect_right

from postroad.broker.partition import Partition
from postroad.wire.scan import IsAborted


def readable_end(partition: Partition, committed_only: bool) -> int:
    """Messages below it may be delivered, unless they were aborted."""
    return partition.stable_offset if committed_only else partition.high_watermark


def aborted_between(partition: Partition, first: int, below: int) -> IsAborted | None:
    """Tells whether the batch of a transaction, from `first` on and below `below`, was aborted; None if none
    was. `below` is not above the stable offset. Raises OSError."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for entry in partition.log.aborted(first, below):
        spans.setdefault(entry.producer_id, []).append((entry.first, entry.marker))
    if not spans:
        return None

    def is_aborted(producer_id: int, offset: int) -> bool:
        of_producer = spans.get(producer_id, ())
        found = bisect_right(of_producer, offset, key=_first) - 1
        return found >= 0 and offset < of_producer[found][1]

    return is_aborted


def _first(span: tuple[int, int]) -> int:
    return span[0]
