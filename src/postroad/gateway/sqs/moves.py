"""StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Struct, field

from postroad.gateway.sqs import answers, counts, names, queues
from postroad.gateway.sqs.errors import SqsError, invalid, unsupported
from postroad.gateway.sqs.move_task import RUNNING, MoveTask
from postroad.gateway.sqs.queue import Queue
from postroad.gateway.sqs.requests import CancelMessageMoveTask, ListMessageMoveTasks, StartMessageMoveTask
from postroad.gateway.sqs.service import Caller, Service

PER_SECOND_MAX: Final = 500
RESULTS_MAX: Final = 10


class _Handle(Struct):
    task_id: str = field(name="taskId")
    source_arn: str = field(name="sourceArn")


_handle_decoder: Final = msgspec.json.Decoder(_Handle)


async def start_message_move_task(
    service: Service, caller: Caller, asked: StartMessageMoveTask
) -> answers.TaskStarted:
    source = await _queue(service, asked.source_arn, "SourceArn")
    per_second = asked.max_number_of_messages_per_second
    if per_second is not None and not 1 <= per_second <= PER_SECOND_MAX:
        reason = f"It must be between 1 and {PER_SECOND_MAX}."
        raise invalid("MaxNumberOfMessagesPerSecond", per_second, reason)
    if not await queues.sources_of(service, source):
        text = "Source queue must be configured as a Dead Letter Queue."
        raise SqsError("InvalidParameterValueException", text)
    target = None
    if asked.destination_arn is not None:
        target = await _queue(service, asked.destination_arn, "DestinationArn")
        if target.name == source.name:
            raise invalid("DestinationArn", asked.destination_arn[:200], "It is the source itself.")
        if target.fifo != source.fifo:
            raise invalid("DestinationArn", asked.destination_arn[:200], "It is another type of queue.")
    to_move = (await counts.count(service.gateway.client, source.name)).visible
    if service.move_tasks.running(source.name) is not None:
        raise unsupported(
            "There is already a task running. Only one active task is allowed for a source queue."
        )
    topic = None if target is None else target.topic
    task = MoveTask(service.gateway, source.name, topic, to_move, per_second)
    task.destination = None if target is None else target.name
    service.move_tasks.start(task)
    return answers.TaskStarted(_write_handle(task, caller))


async def cancel_message_move_task(
    service: Service, _: Caller, asked: CancelMessageMoveTask
) -> answers.TaskCancelled:
    task = service.move_tasks.find(_read_handle(asked.task_handle).task_id)
    if task is None:
        raise _not_found("Task does not exist.")
    if task.status != RUNNING:
        raise _not_found(f"The task is {task.status}; only a running one can be cancelled.")
    task.cancel()
    return answers.TaskCancelled(task.moved)


async def list_message_move_tasks(
    service: Service, caller: Caller, asked: ListMessageMoveTasks
) -> answers.Tasks:
    count = 1 if asked.max_results is None else asked.max_results
    if not 1 <= count <= RESULTS_MAX:
        raise invalid("MaxResults", count, f"Must be between 1 and {RESULTS_MAX}.")
    source = await _queue(service, asked.source_arn, "SourceArn")
    tasks = list(service.move_tasks.of(source.name))[:count]
    return answers.Tasks([_describe(task, caller) for task in tasks])


def _describe(task: MoveTask, caller: Caller) -> answers.Task:
    return answers.Task(
        task.status,
        names.arn_of(caller.region, task.source),
        task.moved,
        task.started_ms,
        _write_handle(task, caller) if task.status == RUNNING else None,
        None if task.destination is None else names.arn_of(caller.region, task.destination),
        task.per_second,
        task.to_move,
        task.failure,
    )


async def _queue(service: Service, arn: str, parameter: str) -> Queue:
    name = names.name_in_arn(arn)
    if name is None:
        raise invalid(parameter, arn[:200], "It is no ARN of a queue.")
    try:
        return await service.queue_named(name)
    except SqsError:
        text = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise _not_found(text) from None


def _write_handle(task: MoveTask, caller: Caller) -> str:
    handle = _Handle(task.id, names.arn_of(caller.region, task.source))
    return base64.b64encode(msgspec.json.encode(handle)).decode()


def _read_handle(text: str) -> _Handle:
    try:
        return _handle_decoder.decode(base64.b64decode(text.encode(), validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise invalid("TaskHandle", text[:200], "It is none that was given.") from None


def _not_found(text: str) -> SqsError:
    return SqsError("ResourceNotFoundException", text, 404)
