"""DescribeShareGroupOffsets (90), versions 0–1: from where on a subscription is not done, and its lag (1).

The lag counts messages that are neither acknowledged nor archived, those in flight among them.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasSubscriptions
from postroad.errors import ApiError, GroupIdNotFound, UnknownTopicOrPartition
from postroad.queues.update import Key
from postroad.security.resources import Operation
from postroad.wire.messages import describe_share_group_offsets as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, topic=Operation.DESCRIBE)

UNKNOWN: Final = -1  # the subscription has not met the partition


class Uses(HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _describe_all(node, call.access, request, call.version)


async def _describe_all(
    node: Uses, access: Access, request: codec.DescribeShareGroupOffsetsRequest, version: int
) -> bytes:
    response = codec.DescribeShareGroupOffsetsResponse(
        groups=[await _describe(node, access, group) for group in request.groups]
    )
    return codec.encode_response(response, version)


async def _describe(
    node: Uses, access: Access, group: codec.DescribeShareGroupOffsetsRequestGroup
) -> codec.DescribeShareGroupOffsetsResponseGroup:
    answer = codec.DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id)
    try:
        access.check_group(group.group_id)
        node.subscriptions.membership.check_coordinator(group.group_id)
        if not await node.subscriptions.exists_anywhere(group.group_id):
            raise GroupIdNotFound()
        wanted = await _wanted(node, group)
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, str(error)
        return answer
    for name, indexes in wanted:
        if group.topics is None and not access.may_topic(name):
            continue
        topic = node.image.topics.get(name) if access.may_topic(name) else None
        answer.topics.append(
            codec.DescribeShareGroupOffsetsResponseTopic(
                name,
                bytes(16) if topic is None else topic.id,
                [
                    await _partition(
                        node, access, name, Key(group.group_id, topic.id if topic else b"", index)
                    )
                    for index in indexes
                ],
            )
        )
    return answer


async def _wanted(
    node: Uses, group: codec.DescribeShareGroupOffsetsRequestGroup
) -> list[tuple[str, list[int]]]:
    """Topics and partitions that are asked for; null: all that the subscription has met."""
    if group.topics is not None:
        return [(topic.topic_name, topic.partitions) for topic in group.topics]
    met: dict[str, list[int]] = {}
    for key in await node.subscriptions.cluster.held(group.group_id):
        topic = node.image.topics_by_id.get(key.topic_id)
        if topic is not None:
            met.setdefault(topic.name, []).append(key.partition)
    return sorted(met.items())


async def _partition(
    node: Uses, access: Access, name: str, key: Key
) -> codec.DescribeShareGroupOffsetsResponsePartition:
    answer = codec.DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=UNKNOWN, leader_epoch=0, lag=UNKNOWN
    )
    try:
        access.check_topic(name)
        if not key.topic_id:
            raise UnknownTopicOrPartition()
        found = await node.subscriptions.cluster.position(key)
        if found is not None:
            answer.start_offset, answer.leader_epoch, answer.lag = found
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, str(error)
    return answer
