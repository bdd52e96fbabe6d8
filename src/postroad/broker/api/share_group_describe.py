"""ShareGroupDescribe (77), version 1: share groups with their members and what each looks after."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import GROUP, Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import by_topic, check_seen
from postroad.broker.parts import HasImage, HasSubscriptions
from postroad.errors import ApiError, CoordinatorLoadInProgress, InvalidGroupId
from postroad.groups.answers import ShareDescription, ShareMemberDescription
from postroad.groups.requests import Partitions
from postroad.security.resources import Operation
from postroad.wire.messages import share_group_describe as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, topic=Operation.DESCRIBE)


class Uses(HasImage, HasSubscriptions, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    return _describe_all(node, call.access, request, call.version)


async def _describe_all(
    node: Uses, access: Access, request: codec.ShareGroupDescribeRequest, version: int
) -> bytes:
    groups = [await _describe(node, access, group_id) for group_id in request.group_ids]
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = access.operations(GROUP, group.group_id)
    return codec.encode_response(codec.ShareGroupDescribeResponse(groups=groups), version)


async def _describe(node: Uses, access: Access, group_id: str) -> codec.DescribedGroup:
    try:
        access.check_group(group_id)
        found = await _find(node, group_id)
        for member in found.members:
            check_seen(node, access, member.subscribed_names, member.assignment)
    except ApiError as error:
        return codec.DescribedGroup(error.code, str(error), group_id)
    return codec.DescribedGroup(
        group_id=group_id,
        group_state=found.state,
        group_epoch=found.epoch,
        assignment_epoch=found.target_epoch,
        assignor_name=found.assignor,
        members=[_member(node, member) for member in found.members],
    )


async def _find(node: Uses, group_id: str) -> ShareDescription:
    if not group_id:
        raise InvalidGroupId
    node.subscriptions.membership.check_coordinator(group_id)
    exists = await node.subscriptions.exists_anywhere(group_id)
    if not exists and not node.subscriptions.loaded:
        raise CoordinatorLoadInProgress
    return node.subscriptions.members.describe(group_id, exists=exists)


def _member(node: Uses, member: ShareMemberDescription) -> codec.Member:
    return codec.Member(
        member.member_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        list(member.subscribed_names),
        _assignment(node, member.assignment),
    )


def _assignment(node: Uses, partitions: Partitions) -> codec.Assignment:
    return codec.Assignment([codec.TopicPartitions(*topic) for topic in by_topic(node, partitions)])
