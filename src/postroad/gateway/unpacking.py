"""Messages out of a node's answer, no more of them than callers take.

Compressed batches may unpack to a thousand times their bytes, and a fetch bounds only the latter. So they are
unpacked one after the other, until there is enough. The rest can be given back unseen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from postroad.client.metadata import TopicPartition
from postroad.client.share_message import ShareMessage, read_delivery
from postroad.gateway import sizes
from postroad.wire import batch as batches
from postroad.wire.messages.share_fetch import AcquiredRecords, PartitionData


class Unpacked(NamedTuple):
    messages: list[ShareMessage]
    left: list[AcquiredRecords]  # acquired, and not unpacked


def unpack(topic_partition: TopicPartition, answer: Any, bytes_max: int) -> Unpacked:
    """What a partition's part of a ShareFetch answer holds: one batch at least, whatever it unpacks to."""
    data = memoryview(answer.records)
    if not any(header.attributes & batches.COMPRESSION_MASK for _, header in batches.walk(data)):
        return Unpacked(read_delivery(topic_partition, answer).messages, [])
    unpacked = Unpacked([], [])
    size = 0
    for piece in _pieces(data, answer.acquired_records):
        if size >= bytes_max and unpacked.messages:
            unpacked.left.extend(piece.acquired_records)
            continue
        messages = read_delivery(topic_partition, piece).messages
        size += sum(map(sizes.of_message, messages))
        unpacked.messages.extend(messages)
    return unpacked


def _pieces(data: memoryview, acquired: list[AcquiredRecords]) -> Iterator[PartitionData]:
    """An answer for each batch, with what was acquired of it. Batches and ranges ascend."""
    current = 0
    for position, header in batches.walk(data):
        within: list[AcquiredRecords] = []
        while current < len(acquired) and acquired[current].first_offset < header.next_offset:
            run = acquired[current]
            first = max(run.first_offset, header.base_offset)
            last = min(run.last_offset, header.next_offset - 1)
            if first <= last:
                within.append(AcquiredRecords(first, last, run.delivery_count))
            if run.last_offset >= header.next_offset:
                break  # it goes on in the next batch
            current += 1
        if within:
            records = data[position : position + header.size]
            yield PartitionData(records=records, acquired_records=within)
