"""DeleteGroups (42), versions 0–2: groups without members go, with their offsets; subscriptions too."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import GROUP, Rights
from postroad.broker.dispatch import Call, Result
from postroad.broker.groups.calls import enter
from postroad.broker.groups.coordinator import Token
from postroad.broker.parts import HasGroups, HasSubscriptions, HasTasks
from postroad.errors import ApiError
from postroad.groups.answers import Answer, Deleted, Outcome
from postroad.groups.coordinator import Groups
from postroad.now import Now
from postroad.security.resources import Operation
from postroad.wire.messages import delete_groups as codec

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(group=Operation.DELETE)


class Uses(HasGroups, HasSubscriptions, HasTasks, Protocol):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    request = codec.decode_request(call.body, call.version)
    results = {group_id: codec.DeletableGroupResult(group_id) for group_id in request.groups_names}
    if not results:
        return codec.encode_response(codec.DeleteGroupsResponse(), call.version)
    parked, version, access = call.park(), call.version, call.access
    left = dict.fromkeys(results)

    def answered(group_id: str, answer: Answer) -> None:
        if isinstance(answer, ApiError):
            results[group_id].error_code = answer.code
        else:
            access.changed("group deleted", group=group_id)
        del left[group_id]
        if not left and not parked.abandoned:
            response = codec.DeleteGroupsResponse(results=list(results.values()))
            parked.complete(codec.encode_response(response, version))

    for group_id in list(results):
        refusal = access.refusal(GROUP, group_id)
        if refusal is not None:
            answered(group_id, refusal)
            continue
        node.tasks.start(_delete_group(node, group_id, partial(answered, group_id)), "delete-group")
    return parked


async def _delete_group(node: Uses, group_id: str, answered: Token) -> None:
    try:
        if group_id:
            node.subscriptions.membership.check_coordinator(group_id)
        is_subscription = await node.subscriptions.exists_anywhere(group_id)
    except ApiError as error:
        answered(error)
        return
    if is_subscription:
        await _delete_subscription(node, group_id, answered)
    else:
        enter(node, group_id, partial(_delete, group_id), answered)


def _delete(group_id: str, groups: Groups, token: Token, _: Now) -> Outcome:
    return groups.delete(group_id, token)


async def _delete_subscription(node: Uses, group_id: str, answered: Token) -> None:
    try:
        await node.subscriptions.administration.delete(group_id)
    except ApiError as error:
        answered(error)
    else:
        answered(Deleted())
