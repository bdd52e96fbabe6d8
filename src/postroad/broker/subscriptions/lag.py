"""How far a subscription is behind on one partition."""

from __future__ import annotations

from postroad.queues.ledger import Ledger


def lag(ledger: Ledger, log_start: int, end: int) -> int:
    """How many messages before `end`, where its reading ends, the subscription is not done with. Offsets that
    compaction emptied are counted, and until the queue has passed them those of aborted transactions."""
    start = max(ledger.start, log_start)
    done = sum(last - max(first, start) + 1 for first, last in ledger.done if last >= start)
    return max(end - start - done, 0)
