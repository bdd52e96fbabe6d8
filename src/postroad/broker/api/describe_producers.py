"""DescribeProducers (61), version 0: the idempotent producers that a partition remembers."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasPartitions
from postroad.errors import ApiError
from postroad.security.resources import Operation
from postroad.wire.messages import describe_producers as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.READ)


class Uses(HasPartitions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    topics = [
        codec.TopicResponse(
            topic.name,
            [_partition(node, call.access, topic.name, index) for index in topic.partition_indexes],
        )
        for topic in request.topics
    ]
    return codec.encode_response(codec.DescribeProducersResponse(topics=topics), call.version)


def _partition(node: Uses, access: Access, topic: str, index: int) -> codec.PartitionResponse:
    try:
        access.check_topic(topic)
        partition = node.partitions.lead(topic, index)
    except ApiError as error:
        return codec.PartitionResponse(index, error.code, str(error))
    active = [codec.ProducerState(*producer) for producer in partition.log.producers()]
    return codec.PartitionResponse(index, active_producers=active)
