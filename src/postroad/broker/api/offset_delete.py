"""OffsetDelete (47), version 0: committed offsets of topics that nobody in the group reads (KIP-496)."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import submit
from postroad.broker.parts import HasGroups, HasImage, HasSubscriptions
from postroad.errors import ApiError, UnknownTopicOrPartition
from postroad.groups.answers import Answer, OffsetsDeleted
from postroad.groups.offsets import OffsetKey
from postroad.security.resources import Operation
from postroad.wire.messages import offset_delete as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DELETE, topic=Operation.READ)


class Uses(HasGroups, HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    access, version = call.access, call.version
    wanted = [(topic.name, p.partition_index) for topic in request.topics for p in topic.partitions]
    offset_keys = [
        offset_key
        for offset_key in wanted
        if call.access.may_topic(offset_key[0]) and node.image.has_partition(*offset_key)
    ]
    return submit(
        node,
        call,
        request.group_id,
        lambda groups, token, _: groups.delete_offsets(request.group_id, offset_keys, token),
        lambda answer: codec.encode_response(_response(answer, access, request, offset_keys), version),
    )


def _response(
    answer: Answer, access: Access, request: codec.OffsetDeleteRequest, offset_keys: list[OffsetKey]
) -> codec.OffsetDeleteResponse:
    if isinstance(answer, ApiError):
        return codec.OffsetDeleteResponse(error_code=answer.code)
    assert isinstance(answer, OffsetsDeleted)
    codes = {
        offset_key: 0 if error is None else error.code
        for offset_key, error in zip(offset_keys, answer.errors, strict=True)
    }
    topics = [
        codec.OffsetDeleteResponseTopic(
            topic.name,
            [
                codec.OffsetDeleteResponsePartition(
                    p.partition_index,
                    codes.get((topic.name, p.partition_index), _refusal(access, topic.name)),
                )
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return codec.OffsetDeleteResponse(topics=topics)


def _refusal(access: Access, topic: str) -> int:
    refusal = access.topic_refusal(topic)
    return UnknownTopicOrPartition.code if refusal is None else refusal.code
