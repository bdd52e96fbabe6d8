"""The one table of SQS's actions: what each is asked with, and who does it.

`admin`: it takes away what others need, so it wants an admin's key where keys are asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

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
    admin: bool
    decoder: Decoder[Any]
    begin: Begin | None = None


def _action(
    request: type[Struct], handler: Handler, admin: bool = False, begin: Begin | None = None
) -> Action:
    return Action(request.__name__, request, handler, admin, Decoder(request), begin)


_ALL: Final = (
    _action(requests.SendMessage, sending.send_message, begin=sending.begin_send),
    _action(requests.SendMessageBatch, sending.send_message_batch),
    _action(requests.ReceiveMessage, receiving.receive_message),
    _action(requests.DeleteMessage, visibility.delete_message),
    _action(requests.DeleteMessageBatch, visibility.delete_message_batch),
    _action(requests.ChangeMessageVisibility, visibility.change_message_visibility),
    _action(requests.ChangeMessageVisibilityBatch, visibility.change_message_visibility_batch),
    _action(requests.CreateQueue, queues.create_queue),
    _action(requests.DeleteQueue, queues.delete_queue, admin=True),
    _action(requests.PurgeQueue, queues.purge_queue, admin=True),
    _action(requests.GetQueueUrl, queues.get_queue_url),
    _action(requests.ListQueues, queues.list_queues),
    _action(requests.GetQueueAttributes, queue_attributes.get_queue_attributes),
    _action(requests.SetQueueAttributes, queue_attributes.set_queue_attributes),
    _action(requests.TagQueue, tags.tag_queue),
    _action(requests.UntagQueue, tags.untag_queue),
    _action(requests.ListQueueTags, tags.list_queue_tags),
    _action(requests.AddPermission, permissions.add_permission),
    _action(requests.RemovePermission, permissions.remove_permission),
    _action(requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues),
    _action(requests.StartMessageMoveTask, moves.start_message_move_task),
    _action(requests.CancelMessageMoveTask, moves.cancel_message_move_task),
    _action(requests.ListMessageMoveTasks, moves.list_message_move_tasks),
)

ACTIONS: Final = {action.name: action for action in _ALL}
