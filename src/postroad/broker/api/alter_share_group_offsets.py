"""AlterShareGroupOffsets (91), version 0: a subscription goes on from other offsets: seek, purge.

Kafka refuses this while the group has members. Here it may have: what they hold is no longer theirs, and
what they say of it is answered with INVALID_RECORD_STATE.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasSubscriptions
from postroad.errors import ApiError, UnknownTopicOrPartition
from postroad.queues.update import Key
from postroad.security.resources import Operation
from postroad.wire.messages import alter_share_group_offsets as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.READ, topic=Operation.READ)


class Uses(HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _alter(node, call.access, request, call.version)


async def _alter(
    node: Uses, access: Access, request: codec.AlterShareGroupOffsetsRequest, version: int
) -> bytes:
    response = codec.AlterShareGroupOffsetsResponse()
    try:
        access.check_group(request.group_id)
        node.subscriptions.check_ready(request.group_id)
        node.subscriptions.membership.check_coordinator(request.group_id)
        node.subscriptions.membership.check_group_type(request.group_id)
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
        return codec.encode_response(response, version)
    response.responses = list(
        await asyncio.gather(
            *(_alter_topic(node, access, request.group_id, topic) for topic in request.topics)
        )
    )
    return codec.encode_response(response, version)


async def _alter_topic(
    node: Uses, access: Access, group_id: str, topic: codec.AlterShareGroupOffsetsRequestTopic
) -> codec.AlterShareGroupOffsetsResponseTopic:
    known = node.image.topics.get(topic.topic_name)
    topic_id = bytes(16) if known is None or not access.may_topic(topic.topic_name) else known.id
    partitions = []
    for wanted in topic.partitions:
        answer = codec.AlterShareGroupOffsetsResponsePartition(partition_index=wanted.partition_index)
        try:
            access.check_topic(topic.topic_name)
            if known is None or known.internal:
                raise UnknownTopicOrPartition()
            await node.subscriptions.administration.reset(
                Key(group_id, topic_id, wanted.partition_index), wanted.start_offset
            )
        except ApiError as error:
            answer.error_code, answer.error_message = error.code, str(error)
        partitions.append(answer)
    return codec.AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, partitions)
