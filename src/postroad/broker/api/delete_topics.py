"""DeleteTopics (20), versions 1–6: by name, or from version 6 on by id."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasTopicChanges
from postroad.cluster.image import Topic
from postroad.errors import ApiError, InvalidRequest, UnknownTopicId, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.wire.messages import delete_topics as codec
from postroad.wire.primitives import ZERO_UUID

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.DELETE)

_IDS_FROM: Final = 6


class Uses(HasImage, HasTopicChanges, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _delete(node, call.access, request, call.version)


async def _delete(node: Uses, access: Access, request: codec.DeleteTopicsRequest, version: int) -> bytes:
    wanted = (
        request.topics if version >= _IDS_FROM else [codec.DeleteTopicState(n) for n in request.topic_names]
    )
    results = [await _delete_one(node, access, topic) for topic in wanted]
    return codec.encode_response(codec.DeleteTopicsResponse(responses=results), version)


async def _delete_one(
    node: Uses, access: Access, wanted: codec.DeleteTopicState
) -> codec.DeletableTopicResult:
    result = codec.DeletableTopicResult(wanted.name, wanted.topic_id)
    try:
        access.check_topic(wanted.topic_id if wanted.name is None else wanted.name)
        topic = _find(node, wanted)
        result.name, result.topic_id = topic.name, topic.id
        await node.topic_changes.delete(topic)
        access.changed("topic deleted", topic=topic.name)
    except ApiError as error:
        result.error_code, result.error_message = error.code, str(error)
    return result


def _find(node: Uses, wanted: codec.DeleteTopicState) -> Topic:
    if (wanted.name is None) == (wanted.topic_id == ZERO_UUID):
        raise InvalidRequest("Name the topic either by its name or by its id.")
    if wanted.name is None:
        found = node.image.topics_by_id.get(wanted.topic_id)
        if found is None:
            raise UnknownTopicId()
    else:
        found = node.image.topics.get(wanted.name)
        if found is None:
            raise UnknownTopicOrPartition()
    return found
