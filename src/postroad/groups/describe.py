"""Groups as an operator sees them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from postroad.groups.answers import (
    ClassicDescription,
    ClassicMemberDescription,
    ConsumerDescription,
    ConsumerMemberDescription,
    ListedGroup,
)
from postroad.groups.classic import ClassicGroup, ClassicState
from postroad.groups.consumer import ConsumerGroup
from postroad.groups.group import Group
from postroad.groups.reconcile import NOTHING
from postroad.groups.subscription import CONSUMER_PROTOCOL

CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"


def listed(groups: Iterable[Group], states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    wanted_states = {state.lower() for state in states}
    wanted_types = {group_type.lower() for group_type in types}
    return [
        entry
        for entry in map(_entry, groups)
        if (not wanted_states or entry.state.lower() in wanted_states)
        and (not wanted_types or entry.group_type in wanted_types)
    ]


def classic(group_id: str, group: Group | None) -> ClassicDescription:
    """A group that has offsets only is an empty one."""
    if group is None or group.is_consumer:
        return ClassicDescription(group_id, ClassicState.DEAD)
    if group.classic is None:
        return ClassicDescription(group_id, ClassicState.EMPTY)
    found = group.classic
    protocol = found.protocol if found.state is ClassicState.STABLE else ""
    return ClassicDescription(group_id, found.state, found.protocol_type, protocol, _classic_members(found))


def consumer(group: ConsumerGroup) -> ConsumerDescription:
    members = tuple(
        ConsumerMemberDescription(
            member_id,
            value.instance_id,
            value.rack_id,
            group.current(member_id).epoch,
            value.client_id,
            value.client_host,
            value.subscribed_names,
            value.subscribed_regex,
            group.current(member_id).assigned,
            group.targets.get(member_id, NOTHING),
            value.classic is not None,
        )
        for member_id, value in group.members.items()
    )
    return ConsumerDescription(
        group.group_id, group.state, group.epoch, group.target_epoch, group.assignor, members
    )


def _classic_members(group: ClassicGroup) -> tuple[ClassicMemberDescription, ...]:
    """Metadata and assignment are shown while they belong together."""
    stable = group.state is ClassicState.STABLE
    return tuple(
        ClassicMemberDescription(
            member_id,
            member.value.instance_id,
            member.value.client_id,
            member.value.client_host,
            member.metadata(group.protocol) if stable else b"",
            member.value.assignment if stable else b"",
        )
        for member_id, member in group.members.items()
    )


def _entry(group: Group) -> ListedGroup:
    if group.consumer is not None and group.is_consumer:
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL, group.consumer.state, CONSUMER_TYPE)
    if group.classic is None:
        return ListedGroup(group.group_id, "", ClassicState.EMPTY, CLASSIC_TYPE)
    return ListedGroup(group.group_id, group.classic.protocol_type, group.classic.state, CLASSIC_TYPE)
