"""OffsetForLeaderEpoch (23), versions 2–4: where an epoch ended; consumers see truncations (KIP-320)."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasPartitions
from postroad.errors import ApiError
from postroad.security.resources import Operation
from postroad.wire.messages import offset_for_leader_epoch as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DESCRIBE)


class Uses(HasPartitions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    topics = [
        codec.OffsetForLeaderTopicResult(
            topic.topic, [_epoch_end(node, call.access, topic.topic, p) for p in topic.partitions]
        )
        for topic in request.topics
    ]
    return codec.encode_response(codec.OffsetForLeaderEpochResponse(topics=topics), call.version)


def _epoch_end(
    node: Uses, access: Access, topic: str, wanted: codec.OffsetForLeaderPartition
) -> codec.EpochEndOffset:
    try:
        access.check_topic(topic)
        partition = node.partitions.lead(topic, wanted.partition)
        partition.check_epoch(wanted.current_leader_epoch)
    except ApiError as error:
        return codec.EpochEndOffset(error.code, wanted.partition)
    epoch, end = partition.log.epoch_end(wanted.leader_epoch)
    return codec.EpochEndOffset(0, wanted.partition, epoch, end)
