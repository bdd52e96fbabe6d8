"""Redrive policies, and the way back: message move tasks."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway
from tests.gateway.sqs.conftest import (
    MakeQueue,
    arn_of,
    attributes_of,
    connect,
    delete,
    receive,
    receive_all,
)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def policy(sqs: Any, target: str, receives: int | str = 2) -> str:
    return json.dumps({"deadLetterTargetArn": arn_of(sqs, target), "maxReceiveCount": receives})


@pytest.fixture
def dead(new_queue: MakeQueue) -> str:
    return new_queue("-dead")


@pytest.fixture
def source(sqs: Any, dead: str, new_queue: MakeQueue) -> str:
    return new_queue(RedrivePolicy=policy(sqs, dead))


def kill(sqs: Any, queue: str, bodies: list[str]) -> list[dict[str, Any]]:
    """Send them, and fail with each as often as it takes."""
    for body in bodies:
        attribute = {"n": {"DataType": "Number", "StringValue": "5"}}
        sqs.send_message(QueueUrl=queue, MessageBody=body, MessageAttributes=attribute)
    messages: list[dict[str, Any]] = []
    for _ in range(2 * len(bodies)):
        messages += receive(sqs, queue, VisibilityTimeout=30)
        handle = messages[-1]["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=0)
    return messages


def test_a_message_that_fails_too_often_becomes_a_dead_letter(sqs: Any, source: str, dead: str) -> None:
    (first, _) = kill(sqs, source, ["poison"])
    (letter,) = receive(sqs, dead, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert letter["Body"] == "poison"
    assert letter["MessageId"] == first["MessageId"]
    assert letter["MessageAttributes"] == {"n": {"DataType": "Number", "StringValue": "5"}}
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(sqs, source)
    assert receive(sqs, source, wait_s=0) == []


def test_a_visibility_timeout_that_ends_counts_as_a_failure(sqs: Any, source: str, dead: str) -> None:
    """Also if it ends on the way: then it has not come here, and counts all the same."""
    sqs.send_message(QueueUrl=source, MessageBody="slow")
    began = time.monotonic()
    assert receive(sqs, source, VisibilityTimeout=1)
    receive(sqs, source, wait_s=5, VisibilityTimeout=1)
    assert receive(sqs, dead)[0]["Body"] == "slow"
    assert time.monotonic() - began > 1.9  # two of them, not one


def test_without_a_policy_a_message_comes_for_ever(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="again")
    for _ in range(8):
        (got,) = receive(sqs, queue, VisibilityTimeout=0, AttributeNames=["ApproximateReceiveCount"])
    assert int(got["Attributes"]["ApproximateReceiveCount"]) >= 8


def test_a_message_that_came_for_one_who_had_hung_up_is_no_dead_letter(
    sqs: Any, gateway: RunningGateway, dead: str, new_queue: MakeQueue
) -> None:
    source = new_queue(RedrivePolicy=policy(sqs, dead, receives=1))
    impatient = connect(gateway.url, read_timeout=0.5)
    with pytest.raises(ReadTimeoutError):
        receive(impatient, source, wait_s=20)
    impatient.close()
    sqs.send_message(QueueUrl=source, MessageBody="hello")
    (message,) = receive(sqs, source, AttributeNames=["All"])
    assert message["Body"] == "hello"
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_queue_may_be_its_own_dead_letter_queue_and_keeps_its_messages(sqs: Any, queue: str) -> None:
    own = policy(sqs, queue, 1)
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": own})
    assert json.loads(attributes_of(sqs, queue)["RedrivePolicy"]) == json.loads(own)
    sqs.send_message(QueueUrl=queue, MessageBody="again")
    for _ in range(3):
        (got,) = receive(sqs, queue, VisibilityTimeout=0)
        assert got["Body"] == "again"
    assert attributes_of(sqs, queue)["ApproximateNumberOfMessages"] == "1"
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": ""})
    assert "RedrivePolicy" not in attributes_of(sqs, queue)


def test_a_policy_is_told_changed_and_taken_away(sqs: Any, source: str, dead: str) -> None:
    told = json.loads(attributes_of(sqs, source)["RedrivePolicy"])
    assert told == {"deadLetterTargetArn": arn_of(sqs, dead), "maxReceiveCount": 2}
    sqs.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": policy(sqs, dead, "7")})
    assert json.loads(attributes_of(sqs, source)["RedrivePolicy"])["maxReceiveCount"] == 7
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [source]
    name = source.rpartition("/")[2]
    same = {"RedrivePolicy": policy(sqs, dead, 7)}
    assert sqs.create_queue(QueueName=name, Attributes=same)["QueueUrl"] == source
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy(sqs, dead, 8)})
    sqs.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": ""})
    assert "RedrivePolicy" not in attributes_of(sqs, source)
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == []


def test_policies_that_can_not_be_are_refused(sqs: Any, source: str, dead: str, new_queue: MakeQueue) -> None:
    fifo = new_queue(".fifo", FifoQueue="true")
    target = arn_of(sqs, dead)
    for wrong in (
        policy(sqs, dead, 0),
        policy(sqs, dead, 1001),
        policy(sqs, fifo),
        json.dumps({"deadLetterTargetArn": target + "-nowhere", "maxReceiveCount": 1}),
        json.dumps({"deadLetterTargetArn": "no arn", "maxReceiveCount": 1}),
        json.dumps({"deadLetterTargetArn": target}),
        json.dumps({"maxReceiveCount": 1}),
    ):
        with pytest.raises(ClientError) as error:
            sqs.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": wrong})
        assert code_of(error) == "InvalidParameterValue", wrong


def test_a_dead_letter_queue_says_whose_letters_it_takes(sqs: Any, dead: str, new_queue: MakeQueue) -> None:
    queue = new_queue()
    for allow, right in (
        ({"redrivePermission": "denyAll"}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn_of(sqs, dead)]}, False),
        ({"redrivePermission": "byQueue", "sourceQueueArns": [arn_of(sqs, queue)]}, True),
        ({"redrivePermission": "allowAll"}, True),
    ):
        sqs.set_queue_attributes(QueueUrl=dead, Attributes={"RedriveAllowPolicy": json.dumps(allow)})
        wanted = {"RedrivePolicy": policy(sqs, dead)}
        if right:
            sqs.set_queue_attributes(QueueUrl=queue, Attributes=wanted)
            continue
        with pytest.raises(ClientError) as error:
            sqs.set_queue_attributes(QueueUrl=queue, Attributes=wanted)
        assert code_of(error) == "InvalidParameterValue"


def status_of(sqs: Any, dead: str) -> dict[str, Any]:
    (task,) = sqs.list_message_move_tasks(SourceArn=arn_of(sqs, dead))["Results"]
    found: dict[str, Any] = task
    return found


def test_a_move_task_takes_letters_back_to_their_queue(sqs: Any, source: str, dead: str) -> None:
    kill(sqs, source, ["a", "b", "c"])
    until(lambda: attributes_of(sqs, dead)["ApproximateNumberOfMessages"] == "3", "three letters")
    handle = sqs.start_message_move_task(SourceArn=arn_of(sqs, dead))["TaskHandle"]
    back = receive_all(sqs, source, 3, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert sorted(message["Body"] for message in back) == ["a", "b", "c"]
    assert back[0]["Attributes"]["ApproximateReceiveCount"] == "1"
    assert "DeadLetterQueueSourceArn" not in back[0]["Attributes"]
    assert back[0]["MessageAttributes"]["n"]["DataType"] == "Number"
    until(lambda: status_of(sqs, dead)["Status"] == "COMPLETED", "the task is done")
    task = status_of(sqs, dead)
    assert task["ApproximateNumberOfMessagesMoved"] == task["ApproximateNumberOfMessagesToMove"] == 3
    assert task["SourceArn"] == arn_of(sqs, dead)
    assert "TaskHandle" not in task
    assert attributes_of(sqs, dead)["ApproximateNumberOfMessages"] == "0"
    with pytest.raises(sqs.exceptions.ResourceNotFoundException) as error:
        sqs.cancel_message_move_task(TaskHandle=handle)
    assert code_of(error) == "ResourceNotFoundException"


def test_a_move_task_is_for_the_queue_and_not_for_others_that_hold_its_topic(
    gateway: RunningGateway, sqs: Any, source: str, dead: str, name: str
) -> None:
    async def others() -> list[bytes | None]:
        await directory.create(f"{name}-others", [name], {"share.auto.offset.reset": "earliest"})
        received = await gateway.gateway.receive(f"{name}-others", 10, 1000, 30_000)
        return [each.message.value for each in received]

    directory = gateway.gateway.directory
    kill(sqs, source, ["poison"])
    until(lambda: attributes_of(sqs, dead)["ApproximateNumberOfMessages"] == "1", "a letter")
    sqs.start_message_move_task(SourceArn=arn_of(sqs, dead))
    assert [message["Body"] for message in receive_all(sqs, source, 1)] == ["poison"]
    assert gateway.run(others()) == [b"poison"], "the first one, which died elsewhere, and not what came back"


def test_one_task_of_a_queue_runs_at_a_time_and_can_be_cancelled(
    sqs: Any, source: str, dead: str, new_queue: MakeQueue
) -> None:
    other = new_queue("-other")
    for _ in range(2):
        entries = [{"Id": str(number), "MessageBody": str(number)} for number in range(10)]
        sqs.send_message_batch(QueueUrl=dead, Entries=entries)
    target = {"SourceArn": arn_of(sqs, dead), "DestinationArn": arn_of(sqs, other)}
    handle = sqs.start_message_move_task(**target, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    with pytest.raises(ClientError, match="There is already a task running") as error:
        sqs.start_message_move_task(**target)
    assert code_of(error) == "InvalidParameterValue"
    assert UUID(json.loads(b64decode(handle))["taskId"]).version == 4
    assert status_of(sqs, dead)["TaskHandle"] == handle
    assert status_of(sqs, dead)["DestinationArn"] == arn_of(sqs, other)
    (moved,) = receive(sqs, other)
    delete(sqs, other, moved)
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] >= 1
    until(lambda: status_of(sqs, dead)["Status"] == "CANCELLED", "the task is cancelled")
    assert int(attributes_of(sqs, dead)["ApproximateNumberOfMessages"]) >= 10  # one a second had gone


def test_move_tasks_that_can_not_be_are_refused(
    sqs: Any, source: str, dead: str, new_queue: MakeQueue
) -> None:
    from_dead = {"SourceArn": arn_of(sqs, dead)}
    nowhere = arn_of(sqs, dead) + "-nowhere"
    for wrong, code in (
        ({"SourceArn": nowhere}, "ResourceNotFoundException"),
        ({"SourceArn": "no arn"}, "InvalidParameterValue"),
        ({"SourceArn": arn_of(sqs, source)}, "InvalidParameterValue"),
        ({**from_dead, "DestinationArn": nowhere}, "ResourceNotFoundException"),
        ({**from_dead, "DestinationArn": arn_of(sqs, dead)}, "InvalidParameterValue"),
        ({**from_dead, "MaxNumberOfMessagesPerSecond": 501}, "InvalidParameterValue"),
    ):
        with pytest.raises(ClientError) as error:
            sqs.start_message_move_task(**wrong)
        assert code_of(error) == code, wrong
    with pytest.raises(ClientError) as error:
        sqs.cancel_message_move_task(TaskHandle="nonsense")
    assert code_of(error) == "InvalidParameterValue"
    assert sqs.list_message_move_tasks(SourceArn=arn_of(sqs, dead))["Results"] == []


def test_a_letter_that_could_not_be_moved_was_not_received(sqs: Any, dead: str, new_queue: MakeQueue) -> None:
    new_queue("-a", RedrivePolicy=policy(sqs, dead, 1))
    gone = new_queue("-b", RedrivePolicy=policy(sqs, dead, 1))
    sqs.send_message(QueueUrl=gone, MessageBody="homeless")
    receive(sqs, gone, VisibilityTimeout=0)
    until(lambda: attributes_of(sqs, dead)["ApproximateNumberOfMessages"] == "1", "a letter")
    sqs.delete_queue(QueueUrl=gone)
    sqs.start_message_move_task(SourceArn=arn_of(sqs, dead))
    until(lambda: status_of(sqs, dead)["Status"] == "FAILED", "the task has failed")
    (letter,) = receive(sqs, dead, AttributeNames=["All"])
    assert letter["Body"] == "homeless"
    assert letter["Attributes"]["ApproximateReceiveCount"] == "2"  # one before it died, and this one


def test_letters_of_a_fifo_queue_come_back_in_their_order(sqs: Any, new_queue: MakeQueue) -> None:
    dead = new_queue("-dead.fifo", FifoQueue="true")
    source = new_queue(".fifo", FifoQueue="true", RedrivePolicy=policy(sqs, dead, 1))
    for number in range(3):
        sqs.send_message(
            QueueUrl=source, MessageBody=str(number), MessageGroupId="g", MessageDeduplicationId=str(number)
        )
    for _ in range(3):
        (message,) = receive(sqs, source)
        sqs.change_message_visibility(
            QueueUrl=source, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    until(lambda: attributes_of(sqs, dead)["ApproximateNumberOfMessages"] == "3", "three letters")
    sqs.start_message_move_task(SourceArn=arn_of(sqs, dead))
    bodies: list[str] = []
    for _ in range(3):
        (message,) = receive(sqs, source)
        bodies.append(message["Body"])
        delete(sqs, source, message)
    assert bodies == ["0", "1", "2"]
