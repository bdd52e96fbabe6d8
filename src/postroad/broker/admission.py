"""The rule by which a client's batch gets into a partition, and when it may be acknowledged.

There is one rule, whichever way a request takes through the node (`api/produce`, `produce_run`).
"""

from __future__ import annotations

from typing import Final

from postroad.broker.partition import Partition
from postroad.errors import (
    ApiError,
    InvalidRequest,
    InvalidTopic,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    TransactionalIdAuthorizationFailed,
)
from postroad.log.producers import OpensTransaction
from postroad.wire import batch as batches

ACKS_NONE, ACKS_LEADER, ACKS_ALL = ACKS = (0, 1, -1)

_NOT_PLAIN: Final = batches.CONTROL | batches.TRANSACTIONAL


def admit(
    partition: Partition,
    records: memoryview,
    acks: int,
    now_ms: int,
    transactional_id: str | None = None,
    *,
    may_open: bool = False,
) -> tuple[int, int, int]:
    """Check a client's batch and stage it: (base offset, append time, the offset after its last record).

    Raises ApiError, and has changed nothing then; OpensTransaction if it would open a transaction and nobody
    has verified that it `may_open` one. What comes of a staged batch is known when the turn ends.
    """
    if partition.internal or partition.is_leaving or (partition.lacks_replicas and acks == ACKS_ALL):
        raise _closed_to_clients(partition)
    header = batches.only_batch(records)
    if header[batches.ATTRIBUTES] & _NOT_PLAIN:
        _check_transactional(header, transactional_id)
        gates = partition.gates
        if gates and not may_open and (header[batches.PRODUCER_ID], header[batches.PRODUCER_EPOCH]) in gates:
            raise OpensTransaction()  # an earlier batch of the producer is being verified: this one follows
    if partition.inspect is not None:
        records, header = partition.inspect(records, header)
    base, append_time, _ = partition.append(records, header, now_ms, may_open=may_open)
    return base, append_time, base + header[batches.LAST_OFFSET_DELTA] + 1


def waits_for_commit(partition: Partition, acks: int, end: int) -> bool:
    """Whether a batch that is written, and ends before `end`, may not be acknowledged yet."""
    return acks == ACKS_ALL and end > partition.high_watermark


def _check_transactional(header: batches.Fields, transactional_id: str | None) -> None:
    if header[batches.ATTRIBUTES] & batches.CONTROL:
        raise InvalidRequest("Control batches come from nodes only.")
    if transactional_id is None:
        raise TransactionalIdAuthorizationFailed("A transactional batch came without a transactional id.")
    if header[batches.PRODUCER_ID] < 0:
        raise InvalidRequest("A transactional batch has a producer id.")


def _closed_to_clients(partition: Partition) -> ApiError:
    if partition.internal:
        return InvalidTopic(f"{partition.topic} is written by the nodes only.")
    if partition.is_leaving:
        return NotLeaderOrFollower("Another node is about to lead.")
    if partition.is_left:
        return NotLeaderOrFollower("Another node may lead by now.")
    return NotEnoughReplicas()
