"""The rule by which a client's batch gets into a partition, and when it may be acknowledged.

There is one rule, whichever way a request takes through the node (`api/produce`, `produce_run`).
"""

from __future__ import annotations

from typing import Final

from postroad.broker.partition import Partition
from postroad.errors import ApiError, InvalidRequest, InvalidTopic, NotEnoughReplicas, NotLeaderOrFollower
from postroad.wire import batch as batches

ACKS_NONE, ACKS_LEADER, ACKS_ALL = ACKS = (0, 1, -1)

_NOT_FROM_CLIENTS: Final = batches.CONTROL | batches.TRANSACTIONAL


def admit(partition: Partition, records: memoryview, acks: int, now_ms: int) -> tuple[int, int, int]:
    """Check a client's batch and stage it: (base offset, append time, the offset after its last record).

    Raises ApiError, and has changed nothing then. What comes of a staged batch is known when the turn ends.
    """
    if partition.internal or (partition.lacks_replicas and acks == ACKS_ALL):
        raise _closed_to_clients(partition)
    header = batches.only_batch(records)
    if header[batches.ATTRIBUTES] & _NOT_FROM_CLIENTS:
        raise InvalidRequest("Transactions are not supported yet; control batches come from nodes only.")
    if partition.inspect is not None:
        records, header = partition.inspect(records, header)
    base, append_time, _ = partition.append(records, header, now_ms)
    return base, append_time, base + header[batches.LAST_OFFSET_DELTA] + 1


def waits_for_commit(partition: Partition, acks: int, end: int) -> bool:
    """Whether a batch that is written, and ends before `end`, may not be acknowledged yet."""
    return acks == ACKS_ALL and end > partition.high_watermark


def _closed_to_clients(partition: Partition) -> ApiError:
    if partition.internal:
        return InvalidTopic(f"{partition.topic} is written by the nodes only.")
    if partition.is_left:
        return NotLeaderOrFollower("Another node may lead by now.")
    return NotEnoughReplicas()
