"""The one table of SQS's actions: what each is asked with, and who does it.

`rights`: what a user needs for it. `admin`: it takes away what others need, so it wants an admin's key where
keys of the settings are all that is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from postroad.gateway.security.rights import ALTER_CONFIGS, DELETE, DESCRIBE, RECEIVE, Rights
from postroad.gateway.sqs import (
    moves,
    permissions,
    queue_attributes,
    queues,
    receiving,
    requests,
    sending,
    tags,
    visibility,
)
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.sending import Done
from postroad.gateway.sqs.service import Caller, Service

Handler = Callable[[Service, Caller, Any], Awaitable[SqsAnswer]]
Begin = Callable[[Service, Caller, Any, Done], bool]
"""Does what the handler does and calls back, without a task; or answers False, and has done nothing."""


class Action(NamedTuple):
    name: str
    request: type[Struct]
    handler: Handler
    rights: Rights
    admin: bool
    decoder: Decoder[Any]
    begin: Begin | None = None


def _action(
    request: type[Struct],
    handler: Handler,
    rights: Rights,
    admin: bool = False,
    begin: Begin | None = None,
) -> Action:
    return Action(request.__name__, request, handler, rights, admin, Decoder(request), begin)


SEND: Final = Rights(by_handler="Write on the queue's topic")
SEE: Final = Rights(by_handler="to know of the queue: Describe on its group, or on the topic of its name")
CHANGE: Final = Rights(group=ALTER_CONFIGS)
MOVE: Final = Rights(by_handler="Read on the source's group and topics, Write where messages go")

_ALL: Final = (
    _action(requests.SendMessage, sending.send_message, SEND, begin=sending.begin_send),
    _action(requests.SendMessageBatch, sending.send_message_batch, SEND),
    _action(requests.ReceiveMessage, receiving.receive_message, RECEIVE),
    _action(requests.DeleteMessage, visibility.delete_message, RECEIVE),
    _action(requests.DeleteMessageBatch, visibility.delete_message_batch, RECEIVE),
    _action(requests.ChangeMessageVisibility, visibility.change_message_visibility, RECEIVE),
    _action(requests.ChangeMessageVisibilityBatch, visibility.change_message_visibility_batch, RECEIVE),
    _action(
        requests.CreateQueue, queues.create_queue, Rights(by_handler="AlterConfigs on the group, Create")
    ),
    _action(requests.DeleteQueue, queues.delete_queue, Rights(group=DELETE), admin=True),
    _action(requests.PurgeQueue, queues.purge_queue, Rights(group=DELETE), admin=True),
    _action(requests.GetQueueUrl, queues.get_queue_url, SEE),
    _action(requests.ListQueues, queues.list_queues, SEE),
    _action(requests.GetQueueAttributes, queue_attributes.get_queue_attributes, Rights(group=DESCRIBE)),
    _action(requests.SetQueueAttributes, queue_attributes.set_queue_attributes, CHANGE),
    _action(requests.TagQueue, tags.tag_queue, CHANGE),
    _action(requests.UntagQueue, tags.untag_queue, CHANGE),
    _action(requests.ListQueueTags, tags.list_queue_tags, Rights(group=DESCRIBE)),
    _action(requests.AddPermission, permissions.add_permission, CHANGE),
    _action(requests.RemovePermission, permissions.remove_permission, CHANGE),
    _action(
        requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues, Rights(group=DESCRIBE)
    ),
    _action(requests.StartMessageMoveTask, moves.start_message_move_task, MOVE),
    _action(requests.CancelMessageMoveTask, moves.cancel_message_move_task, MOVE),
    _action(
        requests.ListMessageMoveTasks,
        moves.list_message_move_tasks,
        Rights(by_handler="Describe on the source's group"),
    ),
)

ACTIONS: Final = {action.name: action for action in _ALL}
