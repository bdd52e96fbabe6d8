"""AddPermission and RemovePermission: statements in a queue's Policy.

Policies are kept and shown and decide nothing: who may do what is said by access keys (`gateway/access.py`).
Where requests are users' they are refused.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Any, Final

import msgspec

from postroad.gateway.sqs import answers, names
from postroad.gateway.sqs.errors import SqsError, invalid, missing, unsupported
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import AddPermission, RemovePermission
from postroad.gateway.sqs.service import Caller, Service

POLICY: Final = "Policy"
ACTIONS_MAX: Final = 7
STATEMENTS_MAX: Final = 20
LABEL_CHARACTERS_MAX: Final = 80
ACTIONS: Final = frozenset(
    {
        "*",
        "SendMessage",
        "ReceiveMessage",
        "DeleteMessage",
        "ChangeMessageVisibility",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
    }
)
OWNERS: Final = frozenset(
    {
        "AddPermission",
        "CancelMessageMoveTask",
        "CreateQueue",
        "DeleteQueue",
        "ListMessageMoveTasks",
        "ListQueueTags",
        "ListQueues",
        "RemovePermission",
        "SetQueueAttributes",
        "StartMessageMoveTask",
        "TagQueue",
        "UntagQueue",
    }
)  # nobody else can be permitted these

_LABEL_CHARACTERS: Final = frozenset(ascii_letters + digits + "-_")


async def add_permission(service: Service, caller: Caller, asked: AddPermission) -> answers.Nothing:
    _refuse_to_users(caller)
    _check(asked)
    async with service.changing(asked.queue_url) as queue:
        policy = _policy_of(queue)
        statements = _statements(policy)
        if any(_label(statement) == asked.label for statement in statements):
            raise invalid("Label", asked.label, "Already exists.")
        if len(statements) >= STATEMENTS_MAX:
            raise SqsError("OverLimit", f"A policy can have {STATEMENTS_MAX} statements at most.")
        statement = _statement(asked, names.arn_of(caller.region, queue.name))
        await _remember(service, queue, {**policy, "Statement": [*statements, statement]})
    return answers.Nothing()


async def remove_permission(service: Service, caller: Caller, asked: RemovePermission) -> answers.Nothing:
    _refuse_to_users(caller)
    async with service.changing(asked.queue_url) as queue:
        policy = _policy_of(queue)
        statements = _statements(policy)
        left = [statement for statement in statements if _label(statement) != asked.label]
        if len(left) == len(statements):
            raise invalid("Label", asked.label[:100], "can't find label.")
        await _remember(service, queue, {**policy, "Statement": left})
    return answers.Nothing()


def _refuse_to_users(caller: Caller) -> None:
    """Raises SqsError: a rule that nobody enforces is worse than none."""
    if caller.access.is_guarded:
        raise unsupported("Policies decide nothing here: `postroad acl` says who may do what.")


def _statement(asked: AddPermission, resource: str) -> dict[str, Any]:
    principals = [f"arn:aws:iam::{account}:root" for account in asked.accounts]
    actions = [f"SQS:{action}" for action in asked.actions]
    return {
        "Sid": asked.label,
        "Effect": "Allow",
        "Principal": {"AWS": principals[0] if len(principals) == 1 else principals},
        "Action": actions[0] if len(actions) == 1 else actions,
        "Resource": resource,
    }


def _check(asked: AddPermission) -> None:
    if not 0 < len(asked.label) <= LABEL_CHARACTERS_MAX or not _LABEL_CHARACTERS.issuperset(asked.label):
        raise invalid("Label", asked.label[:100], "It has 1 to 80 letters, digits, hyphens and underscores.")
    if not asked.accounts:
        raise missing("AWSAccountIds")
    for account in asked.accounts:
        if len(account) != len(names.ACCOUNT) or not account.isdecimal():
            raise invalid("PrincipalId", account[:100], "Unable to verify.")
    if not asked.actions:
        raise missing("Actions")
    if len(asked.actions) > ACTIONS_MAX:
        raise SqsError(
            "OverLimit", f"{len(asked.actions)} Actions were found, maximum allowed is {ACTIONS_MAX}."
        )
    for action in asked.actions:
        if action in OWNERS:
            reason = "Only the queue owner is allowed to invoke this action."
            raise invalid("ActionName", f"SQS:{action}", reason)
        if action not in ACTIONS:
            raise invalid(
                "ActionName", action[:100], "Please refer to the appropriate WSDL for valid actions."
            )


def _policy_of(queue: Queue) -> dict[str, Any]:
    text = queue.attribute(POLICY)
    if text:
        policy: dict[str, Any] = msgspec.json.decode(text)
        return policy
    return {"Version": "2008-10-17", "Id": f"{names.arn_of(names.REGION, queue.name)}/SQSDefaultPolicy"}


def _statements(policy: dict[str, Any]) -> list[Any]:
    found = policy.get("Statement", [])
    return found if isinstance(found, list) else [found]


def _label(statement: Any) -> Any:
    return statement.get("Sid") if isinstance(statement, dict) else None


async def _remember(service: Service, queue: Queue, policy: dict[str, Any]) -> None:
    """A policy that says nothing is none."""
    text = msgspec.json.encode(policy).decode() if policy["Statement"] else ""
    attributes = {**queue.remembered.attributes, POLICY: text}
    await service.remember(queue, msgspec.structs.replace(queue.remembered, attributes=attributes))
