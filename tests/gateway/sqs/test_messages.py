"""Messages in and out: bodies, attributes, delays, batches, limits."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from postroad.gateway import sqs as dialect
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.sqs.conftest import MakeQueue, attributes_of, connect, delete, receive, receive_all

TYPED = {
    "text": {"DataType": "String", "StringValue": "grüße"},
    "labelled": {"DataType": "String.iso-date", "StringValue": "2026-01-31"},
    "number": {"DataType": "Number", "StringValue": "-1.5e3"},
    "bytes": {"DataType": "Binary", "BinaryValue": b"plain text, and yet bytes"},
    "picture": {"DataType": "Binary.png", "BinaryValue": b"\x89PNG\0\xff"},
}


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def test_what_was_sent_is_received_whole(sqs: Any, queue: str) -> None:
    body = "hello \t\r\n <&> „Grüße“ 🐎"
    sent = sqs.send_message(
        QueueUrl=queue, MessageBody=body, MessageAttributes=TYPED
    )  # boto3 checks the MD5s
    (got,) = receive(sqs, queue, MessageAttributeNames=["All"])
    assert got["Body"] == body
    assert got["MessageAttributes"] == TYPED
    assert got["MessageId"] == sent["MessageId"]
    assert got["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    assert got["MD5OfBody"] == hashlib.md5(body.encode()).hexdigest() == sent["MD5OfMessageBody"]


def test_only_attributes_that_were_asked_for_are_shown(sqs: Any, queue: str) -> None:
    wanted = {name: {"DataType": "String", "StringValue": name} for name in ("a", "b.x", "b.y", "c")}
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=wanted)
    for names, shown in (([], set()), (["a", "z"], {"a"}), (["b.*"], {"b.x", "b.y"}), ([".*"], set(wanted))):
        (got,) = receive(sqs, queue, VisibilityTimeout=0, MessageAttributeNames=names)
        assert set(got.get("MessageAttributes", {})) == shown
        assert ("MD5OfMessageAttributes" in got) == bool(shown)


def test_system_attributes_are_shown_when_asked_for(sqs: Any, queue: str) -> None:
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a9"}}
    before_ms = time.time() * 1000
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId="acme", MessageSystemAttributes=trace)
    (first,) = receive(sqs, queue, AttributeNames=["All"])
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = receive(sqs, queue, MessageSystemAttributeNames=["ALL"])
    attributes = again["Attributes"]
    assert attributes["ApproximateReceiveCount"] == "2"
    assert attributes["MessageGroupId"] == "acme"
    assert attributes["AWSTraceHeader"] == "Root=1-5759e988-bd862e3fe1be46a9"
    assert abs(int(attributes["SentTimestamp"]) - before_ms) < 60_000
    assert (
        attributes["ApproximateFirstReceiveTimestamp"]
        == first["Attributes"]["ApproximateFirstReceiveTimestamp"]
    )
    assert "SequenceNumber" not in attributes
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=again["ReceiptHandle"], VisibilityTimeout=0)
    (third,) = receive(sqs, queue, AttributeNames=["SentTimestamp"])
    assert list(third["Attributes"]) == ["SentTimestamp"]
    with pytest.raises(ClientError) as error:
        receive(sqs, queue, AttributeNames=["Colour"])
    assert code_of(error) == "InvalidAttributeName"


def test_an_empty_receive_has_no_messages(sqs: Any, queue: str) -> None:
    began = time.monotonic()
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    assert time.monotonic() - began < 8
    began = time.monotonic()
    assert "Messages" not in sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=1)
    assert 0.9 < time.monotonic() - began < 8


def test_a_long_poll_wakes_within_50_ms_of_a_send(sqs: Any, queue: str) -> None:
    """Some may be held up by what else the machine does, but it is not the rule."""

    def arrival() -> float:
        assert receive(sqs, queue, VisibilityTimeout=600)
        return time.monotonic()

    took: list[float] = []
    with ThreadPoolExecutor(1) as waiting:
        while sum(each < 0.05 for each in took) < 3:
            assert len(took) < 20, took
            arrived = waiting.submit(arrival)
            time.sleep(0.3)  # it waits at the node by now
            sent_at = time.monotonic()
            sqs.send_message(QueueUrl=queue, MessageBody="wake up")
            took.append(arrived.result(60) - sent_at)


def test_a_queue_may_have_its_own_wait(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(ReceiveMessageWaitTimeSeconds="1")
    began = time.monotonic()
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    assert time.monotonic() - began > 0.9


def test_a_delay_hides_a_message_until_its_time(sqs: Any, new_queue: MakeQueue) -> None:
    """And no other: who receives late enough gets two at once, but never the one that is due much later."""
    queue = new_queue(DelaySeconds="1")
    began = time.monotonic()
    sqs.send_message(QueueUrl=queue, MessageBody="much later", DelaySeconds=900)
    sqs.send_message(QueueUrl=queue, MessageBody="late")
    sqs.send_message(QueueUrl=queue, MessageBody="now", DelaySeconds=0)
    assert {message["Body"] for message in receive_all(sqs, queue, 2)} == {"now", "late"}
    assert time.monotonic() - began > 0.9


def test_a_batch_is_sent_and_deleted(sqs: Any, queue: str) -> None:
    entries = [{"Id": f"e-{n}", "MessageBody": str(n), "MessageAttributes": TYPED} for n in range(10)]
    answer = sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == [entry["Id"] for entry in entries]
    assert len({entry["MessageId"] for entry in answer["Successful"]}) == 10
    messages = receive_all(sqs, queue, 10)
    assert {message["Body"] for message in messages} == {str(n) for n in range(10)}
    handles = [{"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)]
    answer = sqs.delete_message_batch(QueueUrl=queue, Entries=handles)
    assert len(answer["Successful"]) == 10
    assert not answer.get("Failed")
    found = attributes_of(sqs, queue)
    assert found["ApproximateNumberOfMessages"] == found["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_entries_of_a_batch_fail_on_their_own(sqs: Any, queue: str) -> None:
    answer = sqs.send_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": "good", "MessageBody": "x"},
            {"Id": "control", "MessageBody": "\x07"},
            {"Id": "late", "MessageBody": "x", "DelaySeconds": 901},
        ],
    )
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert {entry["Id"]: (entry["Code"], entry["SenderFault"]) for entry in answer["Failed"]} == {
        "control": ("InvalidMessageContents", True),
        "late": ("InvalidParameterValue", True),
    }


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        ([], "EmptyBatchRequest"),
        ([{"Id": str(n), "MessageBody": "x"} for n in range(11)], "TooManyEntriesInBatchRequest"),
        ([{"Id": "1", "MessageBody": "x"}, {"Id": "1", "MessageBody": "y"}], "BatchEntryIdsNotDistinct"),
        ([{"Id": "a b", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": "", "MessageBody": "x"}], "InvalidBatchEntryId"),
        ([{"Id": str(n), "MessageBody": "x" * 600_000} for n in range(2)], "BatchRequestTooLong"),
        (
            [{"Id": "1", "MessageBody": "x"}, {"Id": "2", "MessageBody": "x" * ((1 << 20) + 1)}],
            "BatchRequestTooLong",
        ),
    ],
)
def test_a_wrong_batch_fails_as_a_whole(sqs: Any, queue: str, entries: list[Any], name: str) -> None:
    with pytest.raises(getattr(sqs.exceptions, name)) as error:
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    assert code_of(error) == f"AWS.SimpleQueueService.{name}"
    assert receive(sqs, queue, wait_s=0) == []


def test_a_message_of_one_mebibyte_is_the_largest(sqs: Any, queue: str) -> None:
    attribute = {"n": {"DataType": "String", "StringValue": "v"}}
    largest = "x" * (1024 * 1024 - 8)
    sqs.send_message(QueueUrl=queue, MessageBody=largest, MessageAttributes=attribute)
    (got,) = receive(sqs, queue)
    assert got["Body"] == largest
    with pytest.raises(ClientError) as error:
        sqs.send_message(QueueUrl=queue, MessageBody=largest + "x", MessageAttributes=attribute)
    assert code_of(error) == "InvalidParameterValue"


def test_a_receive_brings_a_mebibyte_at_most_and_the_rest_later(sqs: Any, queue: str) -> None:
    for number in range(10):
        sqs.send_message(QueueUrl=queue, MessageBody=f"{number}" + "x" * 299_999)
    sizes: list[int] = []
    while sum(sizes) < 10:
        got = receive(sqs, queue, 10, AttributeNames=["ApproximateReceiveCount"])
        sizes.append(len(got))
        assert {each["Attributes"]["ApproximateReceiveCount"] for each in got} == {"1"}
    assert max(sizes) == 3


def test_as_much_as_one_batch_sends_comes_with_one_receive(sqs: Any, queue: str) -> None:
    body = "x" * ((1 << 20) // 10)
    entries = [{"Id": str(number), "MessageBody": body} for number in range(10)]
    assert len(sqs.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"]) == 10
    assert len(receive(sqs, queue, 10)) == 10


def test_a_queue_may_have_a_smaller_limit(sqs: Any, new_queue: MakeQueue) -> None:
    queue = new_queue(MaximumMessageSize="1024")
    sqs.send_message(QueueUrl=queue, MessageBody="x" * 1024)
    with pytest.raises(ClientError) as error:
        sqs.send_message(QueueUrl=queue, MessageBody="x" * 1025)
    assert code_of(error) == "InvalidParameterValue"


@pytest.mark.parametrize("body", ["\0", "a\x1fb", "\ufffe", "x\uffff"])
def test_characters_that_xml_can_not_hold_are_refused(sqs: Any, queue: str, body: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidMessageContents) as error:
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    assert code_of(error) == "InvalidMessageContents"


@pytest.mark.parametrize(
    "attributes",
    [
        {f"a{n}": {"DataType": "String", "StringValue": "x"} for n in range(11)},
        {"a": {"DataType": "Text", "StringValue": "x"}},
        {"a": {"DataType": "String", "StringValue": ""}},
        {"a": {"DataType": "String", "StringValue": "\0"}},
        {"a": {"DataType": "Number", "StringValue": "many"}},
        {"a": {"DataType": "Binary", "StringValue": "x"}},
        {"AWS.a": {"DataType": "String", "StringValue": "x"}},
        {"postroad-delay-ms": {"DataType": "String", "StringValue": "1"}},
        {".a": {"DataType": "String", "StringValue": "x"}},
        {"a..b": {"DataType": "String", "StringValue": "x"}},
        {"a b": {"DataType": "String", "StringValue": "x"}},
        {"a" * 257: {"DataType": "String", "StringValue": "x"}},
    ],
)
def test_wrong_message_attributes_are_refused(sqs: Any, queue: str, attributes: Any) -> None:
    with pytest.raises(ClientError) as error:
        sqs.send_message(QueueUrl=queue, MessageBody="x", MessageAttributes=attributes)
    assert code_of(error) == "InvalidParameterValue"


@pytest.mark.parametrize(
    "wrong",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": 21},
        {"WaitTimeSeconds": -1},
        {"VisibilityTimeout": 43_201},
        {"VisibilityTimeout": 2**80},
    ],
)
def test_a_receive_out_of_bounds_is_refused(sqs: Any, queue: str, wrong: dict[str, int]) -> None:
    with pytest.raises(ClientError) as error:
        sqs.receive_message(QueueUrl=queue, **wrong)
    assert code_of(error) in ("InvalidParameterValue", "SerializationException")


def test_kafka_messages_are_received_whatever_is_in_them(
    sqs: Any, gateway: RunningGateway, queue: str, name: str
) -> None:
    producer = gateway.gateway.producer
    headers = [("trace", b"t-1"), ("raw", b"\xff\xfe"), ("empty", None), ("", b"?"), ("bad\0name", b"?")]
    gateway.run(producer.send(name, b"\x00\xffbytes", key=b"k", headers=headers))
    (got,) = receive(sqs, queue, MessageAttributeNames=["trace", "raw", "empty"], AttributeNames=["All"])
    assert got["Body"] == "AP9ieXRlcw=="
    assert got["Attributes"]["MessageGroupId"] == "k"
    assert got["MessageAttributes"] == {
        "trace": {"DataType": "String", "StringValue": "t-1"},
        "raw": {"DataType": "Binary", "BinaryValue": b"\xff\xfe"},
        "empty": {"DataType": "String", "StringValue": ""},
        "postroad-body-encoding": {"DataType": "String", "StringValue": "base64"},
    }
    delete(sqs, queue, got)
    gateway.run(producer.send(name, None, headers=[("postroad-sqs-types", b'{"a":[')]))
    (tombstone,) = receive(sqs, queue, MessageAttributeNames=["All"])
    assert tombstone["Body"] == ""
    assert "MessageAttributes" not in tombstone


def test_a_queue_is_made_by_its_first_message_where_that_is_allowed(
    start_gateway: StartGateway, name: str
) -> None:
    running = start_gateway([dialect.routes], auto_create=True)
    sqs = connect(running.url)
    url = f"{running.url}/000000000000/{name}"
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        receive(sqs, url)
    sqs.send_message(QueueUrl=url, MessageBody="first")
    assert receive(sqs, url)[0]["Body"] == "first"
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.send_message(QueueUrl=f"{running.url}/000000000000/no.name", MessageBody="first")
