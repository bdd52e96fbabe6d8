"""From a request about a group to its coordinator, and from the room's answer back to the wire."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from random import Random
from typing import Protocol

from postroad.broker.access import Access
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call
from postroad.broker.groups.coordinator import Token
from postroad.broker.parts import HasGroups, HasImage, HasSubscriptions
from postroad.errors import ApiError
from postroad.groups.answers import Answer as GroupAnswer
from postroad.groups.answers import Outcome
from postroad.groups.coordinator import Groups
from postroad.groups.requests import Client, Partitions
from postroad.now import Now
from postroad.security.resources import ResourceType
from postroad.system.chance import make_uuid

Decide = Callable[[Groups, Token, Now], Outcome]
Respond = Callable[[GroupAnswer], bytes]

log = logging.getLogger(__name__)


class HasGroupsAndSubscriptions(HasGroups, HasSubscriptions, Protocol): ...


def submit(
    node: HasGroupsAndSubscriptions,
    call: Call,
    group_id: str,
    decide: Decide,
    respond: Respond,
    *,
    shared: bool = False,
    if_subscription: type[ApiError] | None = None,
) -> Answer:
    """Park the request and hand it to the group's coordinator; `respond` makes the body of its answer, which
    is `if_subscription` where the id is that of a subscription (None: no matter)."""
    answer = call.park()

    def reply(result: GroupAnswer) -> None:
        if answer.abandoned:
            return
        try:
            body = respond(result)
        except Exception:  # whoever waits beside this one must not be harmed, and this one must not hang
            log.exception("an answer about group %s could not be made", group_id)
            answer.hang_up("its answer could not be made")
        else:
            answer.complete(body)

    refusal = call.access.refusal(ResourceType.GROUP, group_id)
    if refusal is not None:
        reply(refusal)
    elif if_subscription is not None and node.subscriptions.exists(group_id):
        reply(if_subscription(f"{group_id!r} is a subscription: use another group id, or a share consumer."))
    else:
        enter(node, group_id, decide, reply, shared=shared)
    return answer


def enter(node: HasGroups, group_id: str, decide: Decide, reply: Token, *, shared: bool = False) -> None:
    """The same for one of several groups in a request: `reply` hears the answer or the error."""
    try:
        coordinator = node.groups.find(group_id, is_fenced=shared)
        door = coordinator.shared if shared else coordinator.alone
        door(group_id, lambda now: decide(coordinator.groups, reply, now), reply)
    except ApiError as error:
        reply(error)


def loaded_groups(node: HasGroups, access: Access, group_id: str) -> Groups:
    """For calls that change nothing. Raises where the coordinator can't answer yet, or must not."""
    access.check_group(group_id)
    coordinator = node.groups.find(group_id)
    coordinator.check_loaded()
    return coordinator.groups


def by_topic(node: HasImage, partitions: Partitions) -> list[tuple[bytes, str, list[int]]]:
    """Ids, names and partitions of the topics that still exist, as descriptions of members want them."""
    indexes: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        indexes.setdefault(topic_id, []).append(index)
    known = node.image.topics_by_id
    return [
        (topic_id, known[topic_id].name, found) for topic_id, found in indexes.items() if topic_id in known
    ]


def check_seen(node: HasImage, access: Access, names: Iterable[str], partitions: Partitions) -> None:
    """Raises TopicAuthorizationFailed where a description of a member would name a topic that the caller may
    not know of."""
    for name in names:
        access.check_topic(name)
    for _, name, _ in by_topic(node, partitions):
        access.check_topic(name)


def client_of(call: Call) -> Client:
    """The client's host as Kafka shows it, with a slash before it."""
    return Client(call.client_id or "", "/" + call.connection.peer.rpartition(":")[0])


def new_member_id(call: Call, random: Random) -> str:
    return f"{call.client_id or 'member'}-{make_uuid(random)}"
