"""Deleting messages and changing their visibility, at this gateway or another."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from botocore.exceptions import ClientError

from postroad.gateway import sqs as dialect
from tests.gateway.conftest import StartGateway
from tests.gateway.sqs.conftest import MakeQueue, connect, delete, receive, receive_all


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def test_a_message_is_invisible_for_its_visibility_timeout(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    began = time.monotonic()
    (first,) = receive(sqs, queue, VisibilityTimeout=1)
    (again,) = receive(sqs, queue, wait_s=0) or receive(sqs, queue)
    assert 0.9 < time.monotonic() - began < 10
    assert again["MessageId"] == first["MessageId"]
    assert again["ReceiptHandle"] != first["ReceiptHandle"]


def test_visibility_zero_returns_a_message_at_once(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (got,) = receive(sqs, queue)
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    assert receive(sqs, queue, wait_s=0)


def test_receive_with_visibility_zero_brings_the_message_each_time(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    for count in range(1, 4):
        (got,) = receive(sqs, queue, wait_s=0, VisibilityTimeout=0, AttributeNames=["All"])
        assert got["Attributes"]["ApproximateReceiveCount"] == str(count)


def test_a_longer_visibility_keeps_a_message(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    got, timeout_s = received_and_kept(sqs, queue)
    assert receive(sqs, queue, wait_s=timeout_s + 1) == []
    delete(sqs, queue, got)


def received_and_kept(sqs: Any, queue: str) -> tuple[dict[str, Any], int]:
    """A message that is to stay invisible for a minute, and for how long it would have been. Who is held up
    for longer than that tries again."""
    for timeout_s in (1, 2, 5):
        (got,) = receive(sqs, queue, VisibilityTimeout=timeout_s)
        longer = {"ReceiptHandle": got["ReceiptHandle"], "VisibilityTimeout": 60}
        try:
            sqs.change_message_visibility(QueueUrl=queue, **longer)
        except sqs.exceptions.MessageNotInflight:
            continue
        return got, timeout_s
    raise AssertionError("no message was kept")


def test_an_old_receipt_deletes_silently_nothing(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (old,) = receive(sqs, queue, VisibilityTimeout=0)
    (new,) = receive(sqs, queue)
    delete(sqs, queue, old)
    with pytest.raises(sqs.exceptions.MessageNotInflight) as error:
        sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=old["ReceiptHandle"], VisibilityTimeout=9)
    assert code_of(error) == "AWS.SimpleQueueService.MessageNotInflight"
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=new["ReceiptHandle"], VisibilityTimeout=9)
    delete(sqs, queue, new)
    delete(sqs, queue, new)


def test_handles_that_are_none_are_refused(sqs: Any, new_queue: MakeQueue) -> None:
    queue, other = new_queue(), new_queue("-other")
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (got,) = receive(sqs, queue)
    handle = got["ReceiptHandle"]
    bent = ("B" if handle[10] != "B" else "C").join((handle[:10], handle[11:]))
    for url, wrong in (
        (queue, "nonsense"),
        (queue, bent),
        (queue, "ü"),
        (queue, "A" * 5000),
        (other, handle),
    ):
        with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid) as error:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=wrong)
        assert code_of(error) == "ReceiptHandleIsInvalid"
        with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=wrong, VisibilityTimeout=1)
    with pytest.raises(ClientError) as refused:
        sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=43_201)
    assert code_of(refused) == "InvalidParameterValue"


def test_entries_of_a_batch_fail_on_their_own(sqs: Any, queue: str) -> None:
    for number in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody=str(number))
    handles = [message["ReceiptHandle"] for message in receive_all(sqs, queue, 3)]
    delete(sqs, queue, {"ReceiptHandle": handles[2]})
    answer = sqs.change_message_visibility_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "back", "ReceiptHandle": handles[0], "VisibilityTimeout": 0},
            {"Id": "longer", "ReceiptHandle": handles[1], "VisibilityTimeout": 60},
            {"Id": "deleted", "ReceiptHandle": handles[2], "VisibilityTimeout": 60},
            {"Id": "wrong", "ReceiptHandle": "nonsense", "VisibilityTimeout": 60},
            {"Id": "bounds", "ReceiptHandle": handles[1], "VisibilityTimeout": -1},
            {"Id": "none", "ReceiptHandle": handles[1]},
        ],
    )
    assert {entry["Id"] for entry in answer["Successful"]} == {"back", "longer"}
    assert {entry["Id"]: entry["Code"] for entry in answer["Failed"]} == {
        "deleted": "InvalidParameterValue",
        "wrong": "ReceiptHandleIsInvalid",
        "bounds": "InvalidParameterValue",
        "none": "MissingParameter",
    }
    answer = sqs.delete_message_batch(
        QueueUrl=queue,
        Entries=[{"Id": "a", "ReceiptHandle": handles[1]}, {"Id": "b", "ReceiptHandle": "nonsense"}],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["a"]
    assert [entry["Code"] for entry in answer["Failed"]] == ["ReceiptHandleIsInvalid"]


def test_a_receipt_is_good_at_any_gateway(sqs: Any, queue: str, start_gateway: StartGateway) -> None:
    other = connect(start_gateway([dialect.routes]).url)
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (got,) = receive(sqs, queue)
    other.change_message_visibility(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = receive(sqs, queue)
    delete(other, queue, again)
    with pytest.raises(ClientError, match="Message does not exist or is not available") as error:
        sqs.change_message_visibility(
            QueueUrl=queue, ReceiptHandle=again["ReceiptHandle"], VisibilityTimeout=1
        )
    assert code_of(error) == "InvalidParameterValue"


def test_a_message_that_is_visible_can_be_made_visible(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (got,) = receive(sqs, queue)
    for _ in range(2):
        sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"], VisibilityTimeout=0)
    assert receive(sqs, queue)


def test_ten_consumers_never_hold_the_same_message(sqs: Any, queue: str) -> None:
    messages = 200
    for start in range(0, messages, 10):
        entries = [{"Id": str(n), "MessageBody": str(start + n)} for n in range(10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    seen: list[str] = []

    def consume() -> None:
        while len(seen) < messages:
            for message in receive(sqs, queue, 7, wait_s=1, VisibilityTimeout=600):
                seen.append(message["Body"])
                delete(sqs, queue, message)

    consumers = [threading.Thread(target=consume) for _ in range(10)]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(120)
    assert sorted(map(int, seen)) == list(range(messages))
