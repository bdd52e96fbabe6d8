"""StartMessageMoveTask, CancelMessageMoveTask and ListMessageMoveTasks."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec
from msgspec import Struct, field

from postroad.gateway.redrives import AlreadyRunning, Task, TooMany
from postroad.gateway.redrives.task import shown_request
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import DESCRIBE, WRITE, check_receive
from postroad.gateway.sqs import answers, counts, names, queues, uuids
from postroad.gateway.sqs.errors import SqsError, invalid
from postroad.gateway.sqs.move_task import KIND, MoveRequest
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
    access = caller.access
    source = await _queue(service, access, asked.source_arn, "SourceArn")
    await check_receive(access, service.gateway.directory, source.name)
    per_second = asked.max_number_of_messages_per_second
    if per_second is not None and not 1 <= per_second <= PER_SECOND_MAX:
        reason = f"It must be between 1 and {PER_SECOND_MAX}."
        raise invalid("MaxNumberOfMessagesPerSecond", per_second, reason)
    if not await queues.sources_of(service, source):
        text = "Source queue must be configured as a Dead Letter Queue."
        raise SqsError("InvalidParameterValueException", text)
    target = None
    if asked.destination_arn is not None:
        target = await _queue(service, access, asked.destination_arn, "DestinationArn")
        access.check_topic(target.topic, WRITE)
        if target.name == source.name:
            raise invalid("DestinationArn", asked.destination_arn[:200], "It is the source itself.")
        if target.fifo != source.fifo:
            raise invalid("DestinationArn", asked.destination_arn[:200], "It is another type of queue.")
    gateway = service.gateway
    to_move = (await counts.count(gateway.client, source.name)).visible
    request = (
        MoveRequest(target.topic, target.name, per_second)
        if target is not None
        else MoveRequest(per_second=per_second)
    )
    try:
        task = await gateway.redrives.start(
            source.name, KIND, request, gateway.now_ms(), to_move, access.owner
        )
    except AlreadyRunning:
        text = (
            "There is already a task running. Only one active task is allowed for a source queue arn at a "
            "given time."
        )
        raise SqsError("InvalidParameterValueException", text) from None
    except TooMany:
        raise SqsError("RequestThrottled", "As many tasks run here as may; wait for one to end.") from None
    return answers.TaskStarted(_write_handle(task, source.name, caller))


async def cancel_message_move_task(
    service: Service, caller: Caller, asked: CancelMessageMoveTask
) -> answers.TaskCancelled:
    handle = _read_handle(asked.task_handle)
    source = (await _queue(service, caller.access, handle.source_arn, "SourceArn")).name
    await check_receive(caller.access, service.gateway.directory, source)
    tasks = [task for task in await _tasks(service, source) if uuids.of_task(task.id) == handle.task_id]
    if not tasks:
        raise _not_found("Task does not exist.")
    if tasks[0].state != "running":
        raise _not_found(f"The task is {_status(tasks[0])}; only a running one can be cancelled.")
    cancelled = await service.gateway.redrives.cancel(source, tasks[0].id)
    return answers.TaskCancelled((cancelled or tasks[0]).progress.sent)


async def list_message_move_tasks(
    service: Service, caller: Caller, asked: ListMessageMoveTasks
) -> answers.Tasks:
    count = 1 if asked.max_results is None else asked.max_results
    if not 1 <= count <= RESULTS_MAX:
        raise invalid("MaxResults", count, f"Must be between 1 and {RESULTS_MAX}.")
    source = await _queue(service, caller.access, asked.source_arn, "SourceArn")
    caller.access.check_group(source.name, DESCRIBE)
    tasks = (await _tasks(service, source.name))[:count]
    return answers.Tasks([_describe(task, source.name, caller) for task in tasks])


async def _tasks(service: Service, source: str) -> list[Task]:
    found = await service.gateway.redrives.of(source) if source else []
    return [task for task in found if task.kind == KIND]


def _describe(task: Task, source: str, caller: Caller) -> answers.Task:
    request = shown_request(task, MoveRequest, MoveRequest())
    return answers.Task(
        _status(task),
        names.arn_of(caller.region, source),
        task.progress.sent,
        task.began_ms,
        _write_handle(task, source, caller) if task.state == "running" else None,
        None if request.destination is None else names.arn_of(caller.region, request.destination),
        request.per_second,
        task.progress.total,
        task.failure,
    )


def _status(task: Task) -> str:
    return task.state.upper()


async def _queue(service: Service, access: Access, arn: str, parameter: str) -> Queue:
    name = names.name_in_arn(arn)
    if name is None:
        raise invalid(parameter, arn[:200], "It is not the ARN of a queue.")
    try:
        return await service.queue_seen(access, name)
    except SqsError:
        text = f"The resource that you specified for the {parameter} parameter doesn't exist."
        raise _not_found(text) from None


def _write_handle(task: Task, source: str, caller: Caller) -> str:
    handle = _Handle(uuids.of_task(task.id), names.arn_of(caller.region, source))
    return base64.b64encode(msgspec.json.encode(handle)).decode()


def _read_handle(text: str) -> _Handle:
    try:
        return _handle_decoder.decode(base64.b64decode(text.encode(), validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise SqsError(
            "InvalidParameterValueException", "Value for parameter TaskHandle is invalid."
        ) from None


def _not_found(text: str) -> SqsError:
    return SqsError("ResourceNotFoundException", text, 404)
