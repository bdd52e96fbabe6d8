"""Small things that Amazon's own tests, and those of others, look at: words, codes, and what is kept."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import Request, urlopen
from uuid import UUID

import pytest
from botocore.exceptions import ClientError

from tests.gateway.sqs.conftest import MakeQueue, arn_of, attributes_of, delete, receive
from tests.gateway.sqs.test_fifo import fifo, send

__all__ = ["fifo"]


def refusal(error: pytest.ExceptionInfo[ClientError]) -> tuple[str, str]:
    said = error.value.response["Error"]
    return said["Code"], said["Message"]


def test_truth_values_may_be_written_in_any_case(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(".fifo", FifoQueue="True", ContentBasedDeduplication="TRUE")
    found = attributes_of(sqs, queue)
    assert (found["FifoQueue"], found["ContentBasedDeduplication"]) == ("true", "true")
    assert new_queue(".fifo", FifoQueue="TRUE", ContentBasedDeduplication="true") == queue  # the same
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"ContentBasedDeduplication": "False"})
    assert attributes_of(sqs, queue)["ContentBasedDeduplication"] == "false"


def test_a_queue_may_be_told_the_type_that_it_has(sqs: Any, fifo: str) -> None:
    sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"FifoQueue": "true"})
    with pytest.raises(ClientError) as error:
        sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"FifoQueue": "false"})
    text = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
    assert refusal(error) == ("InvalidAttributeValue", text)


def test_message_ids_are_uuids_and_stay(sqs: Any, queue: str) -> None:
    sent = sqs.send_message(QueueUrl=queue, MessageBody="x")
    batch = sqs.send_message_batch(QueueUrl=queue, Entries=[{"Id": "a", "MessageBody": "y"}])
    ids = {sent["MessageId"], batch["Successful"][0]["MessageId"]}
    assert all(UUID(each).version == 4 and str(UUID(each)) == each for each in ids)
    assert {message["MessageId"] for _ in range(2) for message in receive(sqs, queue)} == ids


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"MessageDeduplicationId": "d"}, "The request must contain the parameter MessageGroupId."),
        (
            {"MessageGroupId": "g"},
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId "
            "provided explicitly",
        ),
    ],
    ids=["no group", "no deduplication id"],
)
def test_a_batch_for_a_fifo_queue_is_refused_as_a_whole(
    sqs: Any, fifo: str, entry: dict[str, str], text: str
) -> None:
    sound = {"MessageGroupId": "g", "MessageDeduplicationId": "other"}
    entries = [{"Id": "0", "MessageBody": "x", **sound}, {"Id": "1", "MessageBody": "x", **entry}]
    with pytest.raises(ClientError) as error:
        sqs.send_message_batch(QueueUrl=fifo, Entries=entries)
    assert refusal(error) == ("InvalidParameterValue", text)
    assert attributes_of(sqs, fifo)["ApproximateNumberOfMessages"] == "0"


def test_a_purge_forgets_deduplication_ids(sqs: Any, fifo: str) -> None:
    first = send(sqs, fifo, "x")
    sqs.purge_queue(QueueUrl=fifo)
    second = send(sqs, fifo, "x")
    assert send(sqs, fifo, "x")["MessageId"] == second["MessageId"] != first["MessageId"]
    (got,) = receive(sqs, fifo, 10, AttributeNames=["All"])
    assert got["MessageId"] == second["MessageId"]
    assert got["Attributes"]["MessageDeduplicationId"] == "x"


def test_a_fifo_queue_says_that_a_receipt_is_over(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "x")
    (old,) = receive(sqs, fifo, VisibilityTimeout=0)
    (new,) = receive(sqs, fifo)
    with pytest.raises(ClientError) as error:
        delete(sqs, fifo, old)
    code, text = refusal(error)
    assert code == "InvalidParameterValue"
    assert text.endswith("for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.")
    delete(sqs, fifo, new)
    delete(sqs, fifo, new)  # it is deleted, as was asked for


def test_the_trace_of_a_request_is_the_trace_of_its_message(sqs: Any, queue: str) -> None:
    trace = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1"
    for more in (
        {},
        {"MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "own"}}},
    ):
        body = json.dumps({"QueueUrl": queue, "MessageBody": "x", **more}).encode()
        headers = {"X-Amz-Target": "AmazonSQS.SendMessage", "X-Amzn-Trace-Id": trace}
        with urlopen(Request(queue.rpartition("/0")[0], body, headers), timeout=60) as response:
            assert response.status == 200
        (got,) = receive(sqs, queue, AttributeNames=["AWSTraceHeader"])
        assert got["Attributes"]["AWSTraceHeader"] == ("own" if more else trace)
        delete(sqs, queue, got)


def test_delayed_messages_are_counted_before_anybody_has_received(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="now")
    for _ in range(2):
        sqs.send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=600)
    found = attributes_of(sqs, queue)
    assert found["ApproximateNumberOfMessagesDelayed"] == "2"
    assert found["ApproximateNumberOfMessages"] == "1"


def test_receive_counts_go_on_in_the_dead_letter_queue(sqs: Any, new_queue: MakeQueue) -> None:
    dead = new_queue("-dead")
    policy = json.dumps({"deadLetterTargetArn": arn_of(sqs, dead), "maxReceiveCount": 2})
    source = new_queue(RedrivePolicy=policy)
    sqs.send_message(QueueUrl=source, MessageBody="x")
    first, _ = (receive(sqs, source, VisibilityTimeout=0, AttributeNames=["All"])[0] for _ in range(2))
    (letter,) = receive(sqs, dead, AttributeNames=["All"])
    assert letter["MessageId"] == first["MessageId"]
    assert letter["Attributes"]["ApproximateReceiveCount"] == "3"
    assert letter["Attributes"]["SentTimestamp"] == first["Attributes"]["SentTimestamp"]


def test_names_of_attributes_have_letters_of_any_script(sqs: Any, queue: str) -> None:
    attribute = {"DataType": "String", "StringValue": "v"}
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes={"attr.1øßä": attribute})
    (got,) = receive(sqs, queue, MessageAttributeNames=["All"])
    assert got["MessageAttributes"] == {"attr.1øßä": attribute}
    for wrong in ("a!b", "a§b", "a b", ".a", "a."):
        with pytest.raises(ClientError):
            sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes={wrong: attribute})


def test_all_attributes_have_three_names(sqs: Any, queue: str) -> None:
    attribute = {"DataType": "String", "StringValue": "v"}
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes={"a": attribute})
    for every in ("All", ".*", "*"):
        (got,) = receive(sqs, queue, VisibilityTimeout=0, MessageAttributeNames=[every])
        assert got["MessageAttributes"] == {"a": attribute}, every


def test_a_batch_tells_of_what_there_is(sqs: Any, queue: str) -> None:
    good, bad = {"Id": "a", "MessageBody": "x"}, {"Id": "b", "MessageBody": "x", "DelaySeconds": 901}
    assert "Failed" not in sqs.send_message_batch(QueueUrl=queue, Entries=[good])
    assert "Successful" not in sqs.send_message_batch(QueueUrl=queue, Entries=[bad])
    both = sqs.send_message_batch(QueueUrl=queue, Entries=[good, bad])
    assert ([each["Id"] for each in both["Successful"]], [each["Id"] for each in both["Failed"]]) == (
        ["a"],
        ["b"],
    )


def test_texts_are_amazons(sqs: Any, queue: str, fifo: str, name: str) -> None:
    ids = "can only include alphanumeric and punctuation characters. 1 to 128 in length."
    entry = {"MessageBody": "x"}
    standard = {"Attributes": {"DeduplicationScope": "queue"}, "QueueName": f"{name}-x"}
    for call, asked, text in (
        (sqs.send_message_batch, {"QueueUrl": queue, "Entries": [{"Id": "a:b", **entry}]},
         "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
         "It can be at most 80 letters long."),
        (sqs.send_message, {"QueueUrl": queue, "MessageBody": "x", "MessageGroupId": "a b"},
         f"Value a b for parameter MessageGroupId is invalid. Reason: MessageGroupId {ids}"),
        (sqs.send_message, {"QueueUrl": fifo, "MessageBody": "x", "MessageGroupId": "g", "DelaySeconds": 2},
         "Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not "
         "valid for this queue type."),
        (sqs.receive_message, {"QueueUrl": queue, "WaitTimeSeconds": 21},
         "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."),
        (sqs.delete_message, {"QueueUrl": queue, "ReceiptHandle": "garbage"},
         'The input receipt handle "garbage" is not a valid receipt handle.'),
        (sqs.remove_permission, {"QueueUrl": queue, "Label": "l"},
         "Value l for parameter Label is invalid. Reason: can't find label."),
        (sqs.create_queue, standard,
         "You can specify the DeduplicationScope only when FifoQueue is set to true."),
        (sqs.create_queue, {"QueueName": name, "Attributes": {"DelaySeconds": "1"}},
         "A queue already exists with the same name and a different value for attribute DelaySeconds"),
        (sqs.create_queue, {"QueueName": "no/name"},
         "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"),
        (sqs.send_message_batch, {"QueueUrl": queue, "Entries": []},
         "There should be at least one SendMessageBatchRequestEntry in the request."),
        (sqs.delete_message_batch, {"QueueUrl": queue, "Entries": []},
         "There should be at least one DeleteMessageBatchRequestEntry in the request."),
        (sqs.change_message_visibility_batch, {"QueueUrl": queue, "Entries": []},
         "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request."),
        (sqs.send_message, {"QueueUrl": queue, "MessageBody": "x",
                            "MessageAttributes": {"a": {"DataType": "Text", "StringValue": "v"}}},
         "The message attribute 'a' has an invalid message attribute type, the set of supported type "
         "prefixes is Binary, Number, and String."),
        (sqs.tag_queue, {"QueueUrl": queue, "Tags": {}}, "The request must contain the parameter Tags."),
        (sqs.untag_queue, {"QueueUrl": queue, "TagKeys": []},
         "Tag keys must be between 1 and 128 characters in length."),
        (sqs.add_permission,
         {"QueueUrl": queue, "Label": "l", "AWSAccountIds": ["1" * 12], "Actions": ["RemovePermission"]},
         "Value SQS:RemovePermission for parameter ActionName is invalid. Reason: Only the queue owner is "
         "allowed to invoke this action."),
        (sqs.cancel_message_move_task, {"TaskHandle": "garbage"},
         "Value for parameter TaskHandle is invalid."),
    ):  # fmt: skip
        with pytest.raises(ClientError) as error:
            call(**asked)
        assert refusal(error)[1] == text


def test_a_second_purge_within_a_minute_is_forbidden(sqs: Any, queue: str) -> None:
    sqs.purge_queue(QueueUrl=queue)
    with pytest.raises(sqs.exceptions.PurgeQueueInProgress) as error:
        sqs.purge_queue(QueueUrl=queue)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_a_message_of_a_batch_that_is_too_long_fails_alone(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(MaximumMessageSize="1024")
    entries = [{"Id": str(length), "MessageBody": "a" * length} for length in (1024, 1025)]
    answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["1024"]
    (failed,) = answer["Failed"]
    text = "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes."
    assert (failed["Id"], failed["Message"]) == ("1025", text)


def test_a_receive_without_a_visibility_timeout_is_seen_and_counted_once(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    for number in (1, 2, 3):
        (got,) = receive(sqs, queue, wait_s=0, VisibilityTimeout=0, AttributeNames=["All"])
        assert got["Attributes"]["ApproximateReceiveCount"] == str(number)
