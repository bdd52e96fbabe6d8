"""How far a subscription is behind on one partition."""

from __future__ import annotations

from postroad.queues.ledger import Ledger


def lag(ledger: Ledger, log_start: int, high_watermark: int) -> int:
    """How many messages the subscription is not done with. Offsets that compaction emptied are counted."""
    start = max(ledger.start, log_start)
    done = sum(last - max(first, start) + 1 for first, last in ledger.done if last >= start)
    return max(high_watermark - start - done, 0)
