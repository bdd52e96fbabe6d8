"""AddPartitionsToTxn (24), versions 0–3: the transaction is about to reach these partitions.

All of them or none: where one does not exist, the others are not attempted. Versions 4 and 5 are spoken
between brokers only.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasTransactions
from postroad.broker.transactions.coordination import fenced_code
from postroad.errors import ApiError, InvalidTopic, OperationNotAttempted, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.transactions.transaction import Partition, Producer
from postroad.wire.messages import add_partitions_to_txn as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, 3)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.WRITE, transactional_id=Operation.WRITE)

FENCED_FROM: Final = 2


class Uses(HasImage, HasTransactions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request, version = codec.decode_request(call.body, call.version), call.version
    wanted = [(topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions]
    errors = {where: code for where in wanted if (code := _wrong(node, call.access, *where))}
    if errors:
        missing = OperationNotAttempted.code
        return _respond(request, {where: errors.get(where, missing) for where in wanted}, version)
    return _add(node, call, request, wanted)


def _add(
    node: Uses, call: Call, request: codec.AddPartitionsToTxnRequest, wanted: list[tuple[str, int]]
) -> Answer:
    version, transactional_id = call.version, request.v3_and_below_transactional_id
    who = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    places: list[Partition] = [(node.image.topics[name].id, index) for name, index in wanted]

    def respond(result: Producer | ApiError | None) -> bytes:
        code = fenced_code(result, version >= FENCED_FROM) if isinstance(result, ApiError) else 0
        return _respond(request, dict.fromkeys(wanted, code), version)

    return node.transactions.submit(
        call, transactional_id, lambda room, now: room.add(transactional_id, who, places, (), 1, now), respond
    )


def _wrong(node: Uses, access: Access, topic: str, index: int) -> int:
    """The code of what is wrong with the partition; 0 if nothing is."""
    refusal = access.topic_refusal(topic)
    if refusal is not None:
        return refusal.code
    if not node.image.has_partition(topic, index):
        return UnknownTopicOrPartition.code
    return InvalidTopic.code if node.image.topics[topic].internal else 0


def _respond(
    request: codec.AddPartitionsToTxnRequest, codes: dict[tuple[str, int], int], version: int
) -> bytes:
    results = [
        codec.AddPartitionsToTxnTopicResult(
            topic.name,
            [
                codec.AddPartitionsToTxnPartitionResult(index, codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in request.v3_and_below_topics
    ]
    response = codec.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)
    return codec.encode_response(response, version)
