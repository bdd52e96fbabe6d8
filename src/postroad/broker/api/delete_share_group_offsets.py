"""DeleteShareGroupOffsets (92), version 0: a subscription without members forgets topics.

When it meets them again it begins anew, as `share.auto.offset.reset` says.
"""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.parts import HasImage, HasSubscriptions
from postroad.errors import ApiError, GroupIdNotFound, GroupSubscribedToTopic, UnknownTopicOrPartition
from postroad.security.resources import Operation
from postroad.wire.messages import delete_share_group_offsets as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DELETE, topic=Operation.READ)


class Uses(HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _delete(node, call.access, request, call.version)


async def _delete(
    node: Uses, access: Access, request: codec.DeleteShareGroupOffsetsRequest, version: int
) -> bytes:
    response = codec.DeleteShareGroupOffsetsResponse()
    try:
        access.check_group(request.group_id)
        node.subscriptions.check_ready(request.group_id)
        node.subscriptions.membership.check_coordinator(request.group_id)
        if not await node.subscriptions.exists_anywhere(request.group_id):
            raise GroupIdNotFound()
    except ApiError as error:
        response.error_code, response.error_message = error.code, str(error)
        return codec.encode_response(response, version)
    for topic in request.topics:
        response.responses.append(await _forget(node, access, request.group_id, topic.topic_name))
    return codec.encode_response(response, version)


async def _forget(
    node: Uses, access: Access, group_id: str, name: str
) -> codec.DeleteShareGroupOffsetsResponseTopic:
    topic = node.image.topics.get(name) if access.may_topic(name) else None
    answer = codec.DeleteShareGroupOffsetsResponseTopic(name, bytes(16) if topic is None else topic.id)
    try:
        access.check_topic(name)
        if topic is None:
            raise UnknownTopicOrPartition()
        if name in node.subscriptions.members.topics_of(group_id):
            raise GroupSubscribedToTopic()
        await node.subscriptions.administration.remove(group_id, topic)
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, str(error)
    return answer
