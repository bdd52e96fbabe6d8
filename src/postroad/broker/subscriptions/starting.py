"""Where a subscription begins on a partition that it meets for the first time."""

from __future__ import annotations

from postroad.broker.partition import Partition
from postroad.broker.subscriptions.isolation import readable_end
from postroad.cluster.start_at import StartAt, StartKind


def starting_offset(
    partition: Partition, start: StartAt | None, now_ms: int, committed_only: bool = False
) -> int:
    """None: with the first message that is there. Raises what reading the log raises.

    `committed_only`: a transaction that is open now counts as published when it is committed."""
    if start is None or start.kind is StartKind.EARLIEST:
        return partition.log.start_offset
    end = readable_end(partition, committed_only)
    timestamp_ms = start.timestamp_ms(now_ms)
    if timestamp_ms is None:
        return end
    found = partition.log.offset_for_time(timestamp_ms)
    return end if found is None else min(found.offset, end)
