"""Queues that are deleted and made anew: nothing of the former one holds, at any gateway."""

from __future__ import annotations

from typing import Any

import pytest

from postroad.gateway import sqs as dialect
from tests.gateway.conftest import StartGateway
from tests.gateway.sqs.conftest import connect, receive

FIFO = {"FifoQueue": "true"}
STANDARD: dict[str, str] = {}


@pytest.fixture(scope="module")
def other(start_gateway: StartGateway) -> Any:
    return connect(start_gateway([dialect.routes], auto_create=False).url)


def make_anew(sqs: Any, name: str, attributes: dict[str, str]) -> str:
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])
    url: str = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url


def send_once(sqs: Any, queue: str, body: str) -> str:
    sent = sqs.send_message(
        QueueUrl=queue, MessageBody=body, MessageGroupId="g", MessageDeduplicationId="once"
    )
    message_id: str = sent["MessageId"]
    return message_id


def test_a_deduplication_id_of_the_former_queue_holds_back_nothing(sqs: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=FIFO)["QueueUrl"]
    send_once(sqs, queue, "one")
    queue = make_anew(sqs, f"{name}.fifo", FIFO)
    sent = send_once(sqs, queue, "two")
    (got,) = receive(sqs, queue)
    assert (got["MessageId"], got["Body"]) == (sent, "two")


def test_nor_at_a_gateway_that_did_not_see_it_made_anew(sqs: Any, other: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=FIFO)["QueueUrl"]
    send_once(other, queue, "one")
    make_anew(sqs, f"{name}.fifo", FIFO)
    sent = send_once(other, queue, "two")
    assert send_once(other, queue, "three") == sent
    (got,) = receive(sqs, queue)
    assert (got["MessageId"], got["Body"]) == (sent, "two")


def test_messages_of_a_batch_keep_their_order_in_the_new_queue(sqs: Any, other: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=FIFO)["QueueUrl"]
    send_once(other, queue, "before")
    make_anew(sqs, f"{name}.fifo", FIFO)
    entries = [
        {"Id": word, "MessageBody": word, "MessageGroupId": "g", "MessageDeduplicationId": word}
        for word in ("once", "then")
    ]
    first, second = other.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"]
    assert first["SequenceNumber"] < second["SequenceNumber"]


@pytest.mark.parametrize("batch", [False, True])
def test_a_sent_message_has_the_id_by_which_it_is_received(
    sqs: Any, other: Any, name: str, batch: bool
) -> None:
    queue = sqs.create_queue(QueueName=name, Attributes=STANDARD)["QueueUrl"]
    other.send_message(QueueUrl=queue, MessageBody="the other gateway knows the former one")
    make_anew(sqs, name, STANDARD)
    if batch:
        entries = [{"Id": "1", "MessageBody": "new"}]
        (sent,) = other.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"]
    else:
        sent = other.send_message(QueueUrl=queue, MessageBody="new")
    (got,) = receive(sqs, queue)
    assert got["MessageId"] == sent["MessageId"]


def test_a_queue_that_another_gateway_has_just_deleted_is_created(sqs: Any, other: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    other.get_queue_url(QueueName=name)
    sqs.delete_queue(QueueUrl=queue)
    other.create_queue(QueueName=name)
    assert sqs.list_queues(QueueNamePrefix=name)["QueueUrls"] == [queue]
    other.send_message(QueueUrl=queue, MessageBody="body")
    (got,) = receive(sqs, queue)
    assert got["Body"] == "body"
