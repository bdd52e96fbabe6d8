"""ConsumerGroupDescribe (69), versions 0–1: groups of the newer protocol with members and assignments."""

from __future__ import annotations

from typing import Final, Protocol

from postroad.broker.access import GROUP, Access, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import by_topic, check_seen, loaded_groups
from postroad.broker.parts import HasGroups, HasImage
from postroad.errors import ApiError
from postroad.groups.answers import ConsumerMemberDescription
from postroad.groups.requests import Partitions
from postroad.security.resources import Operation
from postroad.wire.messages import consumer_group_describe as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DESCRIBE, topic=Operation.DESCRIBE)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


class Uses(HasGroups, HasImage, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    groups = [_describe(node, call.access, group_id) for group_id in request.group_ids]
    for group in groups:
        if request.include_authorized_operations and not group.error_code:
            group.authorized_operations = call.access.operations(GROUP, group.group_id)
    return codec.encode_response(codec.ConsumerGroupDescribeResponse(groups=groups), call.version)


def _describe(node: Uses, access: Access, group_id: str) -> codec.DescribedGroup:
    try:
        found = loaded_groups(node, access, group_id).describe_consumer(group_id)
        for member in found.members:
            check_seen(node, access, member.subscribed_names, member.assignment | member.target)
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


def _member(node: Uses, member: ConsumerMemberDescription) -> codec.Member:
    return codec.Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        list(member.subscribed_names),
        member.subscribed_regex,
        _assignment(node, member.assignment),
        _assignment(node, member.target),
        _CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    )


def _assignment(node: Uses, partitions: Partitions) -> codec.Assignment:
    return codec.Assignment([codec.TopicPartitions(*topic) for topic in by_topic(node, partitions)])
