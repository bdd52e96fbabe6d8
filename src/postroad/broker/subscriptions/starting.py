"""Where a subscription begins on a partition that it meets for the first time."""

from __future__ import annotations

from postroad.broker.partition import Partition
from postroad.cluster.start_at import StartAt, StartKind


def starting_offset(partition: Partition, start: StartAt | None, now_ms: int) -> int:
    """None: with the first message that is there. Raises what reading the log raises."""
    if start is None or start.kind is StartKind.EARLIEST:
        return partition.log.start_offset
    timestamp_ms = start.timestamp_ms(now_ms)
    if timestamp_ms is None:
        return partition.high_watermark
    found = partition.log.offset_for_time(timestamp_ms)
    return partition.high_watermark if found is None else min(found.offset, partition.high_watermark)
