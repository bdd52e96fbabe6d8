"""FIFO queues: order in a message group, one in flight, one delivery for each deduplication id."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from postroad.client import topics
from tests.gateway.conftest import RunningGateway
from tests.gateway.sqs.conftest import MakeQueue, attributes_of, delete, receive, receive_all


@pytest.fixture
def fifo(new_queue: MakeQueue) -> str:
    return new_queue(".fifo", FifoQueue="true")


def send(sqs: Any, queue: str, body: str, group: str = "g", **more: Any) -> Any:
    more.setdefault("MessageDeduplicationId", body)
    return sqs.send_message(QueueUrl=queue, MessageBody=body, MessageGroupId=group, **more)


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def test_messages_of_a_group_come_in_their_order(sqs: Any, fifo: str) -> None:
    sent = [send(sqs, fifo, str(number))["SequenceNumber"] for number in range(5)]
    assert sent == sorted(sent)
    assert {len(number) for number in sent} == {20}
    got: list[dict[str, Any]] = []
    for _ in range(5):
        (message,) = receive(sqs, fifo, 1, AttributeNames=["All"])
        assert receive(sqs, fifo, 1, wait_s=0) == []  # the group is blocked
        got.append(message)
        delete(sqs, fifo, message)
    assert [message["Body"] for message in got] == ["0", "1", "2", "3", "4"]
    assert [message["Attributes"]["SequenceNumber"] for message in got] == sent
    assert got[0]["Attributes"]["MessageGroupId"] == "g"
    assert got[0]["Attributes"]["MessageDeduplicationId"] == "0"


def test_other_groups_go_on(sqs: Any, fifo: str) -> None:
    for group in "abc":
        for number in range(2):
            send(sqs, fifo, f"{group}{number}", group)
    messages = [message for _ in "abc" for message in receive(sqs, fifo, 1)]
    assert receive(sqs, fifo, 10, wait_s=0) == []
    assert sorted(message["Body"] for message in messages) == ["a0", "b0", "c0"]


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def test_one_receive_brings_several_of_a_group_in_their_order(sqs: Any, fifo: str) -> None:
    for number in range(6):
        send(sqs, fifo, str(number))
    got = receive(sqs, fifo, 4)
    assert bodies(got) == ["0", "1", "2", "3"]
    for message in (got[3], got[0], got[1]):
        delete(sqs, fifo, message)
        assert receive(sqs, fifo, 10, wait_s=0) == []  # 2 is still in flight
    delete(sqs, fifo, got[2])
    assert bodies(receive(sqs, fifo, 10)) == ["4", "5"]


def test_what_came_back_of_a_group_comes_again_and_nothing_behind_what_is_in_flight(
    sqs: Any, fifo: str
) -> None:
    for number in range(4):
        send(sqs, fifo, str(number))
    got = receive(sqs, fifo, 3)
    for number in (1, 0):
        assert receive(sqs, fifo, 10, wait_s=0) == []
        handle = got[number]["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=fifo, ReceiptHandle=handle, VisibilityTimeout=0)
    assert bodies(receive(sqs, fifo, 10)) == ["0", "1"]
    assert receive(sqs, fifo, 10, wait_s=0) == []  # 2 is still in flight


def test_groups_come_one_by_one_and_those_that_failed_last(sqs: Any, fifo: str) -> None:
    for body in ("a0", "b0", "b1", "c0", "a1"):
        send(sqs, fifo, body, body[0])
    got = receive(sqs, fifo, 3)
    assert bodies(got) == ["a0", "a1", "b0"]
    for message in got:
        handle = message["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=fifo, ReceiptHandle=handle, VisibilityTimeout=0)
    assert bodies(receive(sqs, fifo, 10)) == ["c0", "a0", "a1", "b0", "b1"]


def test_no_two_receivers_have_messages_of_one_group(sqs: Any, fifo: str) -> None:
    """Callers that wait at the same time are served by one fetch, which brings both groups."""
    for number in range(8):
        send(sqs, fifo, f"{'ab'[number % 2]}{number // 2}", "ab"[number % 2])
    batches: list[list[str]] = []
    receivers = [
        threading.Thread(target=lambda: batches.append(bodies(receive(sqs, fifo, 3, wait_s=1))))
        for _ in range(6)
    ]
    for receiver in receivers:
        receiver.start()
    for receiver in receivers:
        receiver.join(60)
    for group in "ab":
        having = [[body for body in batch if body[0] == group] for batch in batches]
        (held,) = [each for each in having if each]
        assert held == [f"{group}{number}" for number in range(len(held))]


def test_a_message_that_fails_comes_again_before_the_next(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "1")
    send(sqs, fifo, "2")
    (first,) = receive(sqs, fifo, 1, VisibilityTimeout=1)
    again, second = receive(sqs, fifo, 10)
    assert again["MessageId"] == first["MessageId"]
    assert second["Body"] == "2"


def test_a_duplicate_is_answered_like_the_first_and_not_delivered(sqs: Any, fifo: str) -> None:
    first = send(sqs, fifo, "body", MessageDeduplicationId="once")
    second = send(sqs, fifo, "other body", MessageDeduplicationId="once")
    assert first["MessageId"] == second["MessageId"]
    assert first["SequenceNumber"] == second["SequenceNumber"]
    (got,) = receive(sqs, fifo, 10)
    delete(sqs, fifo, got)
    third = send(sqs, fifo, "body", MessageDeduplicationId="once")  # remembered after the delete, too
    assert third["MessageId"] == first["MessageId"]
    assert receive(sqs, fifo, 10, wait_s=0) == []
    assert attributes_of(sqs, fifo)["ApproximateNumberOfMessages"] == "0"


def test_duplicates_at_the_same_time_are_one_message(sqs: Any, fifo: str) -> None:
    ids: list[str] = []
    senders = [
        threading.Thread(target=lambda: ids.append(send(sqs, fifo, "x")["MessageId"])) for _ in range(8)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
    assert len(ids) == 8
    assert len(set(ids)) == 1


def test_duplicates_within_a_batch_are_one_message(sqs: Any, fifo: str) -> None:
    entries = [
        {
            "Id": str(n),
            "MessageBody": f"b{n % 2}",
            "MessageGroupId": "g",
            "MessageDeduplicationId": f"d{n % 2}",
        }
        for n in range(4)
    ]
    answer = sqs.send_message_batch(QueueUrl=fifo, Entries=entries)
    ids = [entry["MessageId"] for entry in answer["Successful"]]
    assert ids[0] == ids[2] != ids[1] == ids[3]
    assert attributes_of(sqs, fifo)["ApproximateNumberOfMessages"] == "2"


def test_content_decides_where_the_queue_says_so(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(".fifo", FifoQueue="true", ContentBasedDeduplication="true")
    one = sqs.send_message(QueueUrl=queue, MessageBody="same", MessageGroupId="g")
    two = sqs.send_message(QueueUrl=queue, MessageBody="same", MessageGroupId="g")
    other = sqs.send_message(QueueUrl=queue, MessageBody="different", MessageGroupId="g")
    assert one["MessageId"] == two["MessageId"] != other["MessageId"]


def test_the_scope_of_deduplication_may_be_the_group(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(
        ".fifo",
        FifoQueue="true",
        DeduplicationScope="messageGroup",
        FifoThroughputLimit="perMessageGroupId",
    )
    for group in ("a", "b", "a"):
        send(sqs, queue, "body", group, MessageDeduplicationId="same")
    groups: list[str] = []
    for message in receive_all(sqs, queue, 2, AttributeNames=["All"]):
        groups.append(message["Attributes"]["MessageGroupId"])
        assert message["Attributes"]["MessageDeduplicationId"] == "same"
        delete(sqs, queue, message)
    assert sorted(groups) == ["a", "b"]
    assert receive(sqs, queue, 10, wait_s=0) == []


def test_the_scope_of_deduplication_is_the_queue_only_with_a_single_partition(
    sqs: Any, gateway: RunningGateway, name: str
) -> None:
    queue = f"{name}.fifo"
    gateway.run(topics.create(gateway.gateway.client, queue, partitions=3))
    for scope in ({}, {"DeduplicationScope": "queue"}):
        with pytest.raises(sqs.exceptions.InvalidAttributeValue, match="partition"):
            sqs.create_queue(QueueName=queue, Attributes={"FifoQueue": "true", **scope})
    by_group = {"FifoQueue": "true", "DeduplicationScope": "messageGroup"}
    url = sqs.create_queue(QueueName=queue, Attributes=by_group)["QueueUrl"]
    with pytest.raises(sqs.exceptions.InvalidAttributeValue, match="partition"):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"DeduplicationScope": "queue"})
    assert attributes_of(sqs, url)["DeduplicationScope"] == "messageGroup"


def test_a_queue_with_a_single_partition_may_have_either_scope(sqs: Any, fifo: str) -> None:
    for scope in ("messageGroup", "queue"):
        sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"DeduplicationScope": scope})
        assert attributes_of(sqs, fifo)["DeduplicationScope"] == scope


def test_what_fifo_queues_need_and_do_not_take(sqs: Any, fifo: str, new_queue: MakeQueue) -> None:
    for wrong, code in (
        ({"MessageDeduplicationId": "d"}, "MissingParameter"),
        ({"MessageGroupId": "g"}, "InvalidParameterValue"),
        ({"MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 1}, "InvalidParameterValue"),
        ({"MessageGroupId": "g" * 129, "MessageDeduplicationId": "d"}, "InvalidParameterValue"),
        ({"MessageGroupId": "with space", "MessageDeduplicationId": "d"}, "InvalidParameterValue"),
        ({"MessageGroupId": "g", "MessageDeduplicationId": ""}, "InvalidParameterValue"),
    ):
        with pytest.raises(ClientError) as error:
            sqs.send_message(QueueUrl=fifo, MessageBody="x", **wrong)
        assert code_of(error) == code, wrong
    with pytest.raises(ClientError) as error:
        sqs.send_message(QueueUrl=new_queue(), MessageBody="x", MessageDeduplicationId="d")
    assert code_of(error) == "InvalidParameterValue"
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.set_queue_attributes(QueueUrl=new_queue(), Attributes={"ContentBasedDeduplication": "true"})


def test_a_receive_attempt_id_is_accepted(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "x")
    assert receive(sqs, fifo, ReceiveRequestAttemptId="attempt-1")
