"""Many callers at once, callers that vanish, and more than one gateway."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from postroad.errors import UnknownTopicOrPartition
from postroad.gateway import sqs as dialect
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.sqs.conftest import WAIT_S, MakeQueue, attributes_of, connect, delete, receive, receive_all


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """What each returned, or raised."""
    results: list[Any] = [None] * len(work)

    def run(number: int) -> None:
        try:
            results[number] = work[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


def test_a_queue_that_many_create_is_one_and_takes_its_topic_along(
    sqs: Any, gateway: RunningGateway, name: str
) -> None:
    urls = at_once(*[lambda: sqs.create_queue(QueueName=name)["QueueUrl"]] * 8)
    assert len(set(urls)) == 1
    sqs.delete_queue(QueueUrl=urls[0])
    client = gateway.gateway.client
    with pytest.raises(UnknownTopicOrPartition):
        gateway.run(client.retry(lambda: client.topic(name)))


def test_changes_at_the_same_time_are_all_kept(sqs: Any, queue: str) -> None:
    def tag(number: int) -> Callable[[], Any]:
        return lambda: sqs.tag_queue(QueueUrl=queue, Tags={f"k{number}": "v"})

    def allow(number: int) -> Callable[[], Any]:
        return lambda: sqs.add_permission(
            QueueUrl=queue, Label=f"l{number}", AWSAccountIds=["1" * 12], Actions=["*"]
        )

    at_once(*(make(number) for number in range(5) for make in (tag, allow)))
    assert len(sqs.list_queue_tags(QueueUrl=queue)["Tags"]) == 5
    assert len(json.loads(attributes_of(sqs, queue)["Policy"])["Statement"]) == 5


def test_who_waits_at_a_queue_hears_that_it_is_deleted(sqs: Any, queue: str) -> None:
    def remove() -> None:
        time.sleep(0.3)
        sqs.delete_queue(QueueUrl=queue)

    heard, _ = at_once(lambda: receive(sqs, queue), remove)
    assert isinstance(heard, sqs.exceptions.QueueDoesNotExist)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        receive(sqs, queue)


def test_a_caller_that_vanished_keeps_no_message(sqs: Any, gateway: RunningGateway, queue: str) -> None:
    body = json.dumps({"QueueUrl": queue, "WaitTimeSeconds": 20}).encode()
    host, _, port = urlsplit(gateway.url).netloc.partition(":")
    with socket.create_connection((host, int(port))) as vanishing:
        vanishing.sendall(
            b"POST / HTTP/1.1\r\nHost: x\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        time.sleep(0.3)  # it waits at the node by now
    sqs.send_message(QueueUrl=queue, MessageBody="not for the dead")
    # And not only when the visibility timeout is over.
    assert int(attributes_of(sqs, queue)["VisibilityTimeout"]) > WAIT_S
    assert receive(sqs, queue)[0]["Body"] == "not for the dead"


def test_short_receives_at_once_all_find_what_is_there(sqs: Any, queue: str) -> None:
    for start in range(0, 100, 10):
        entries = [{"Id": str(n), "MessageBody": str(start + n)} for n in range(10)]
        sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    receive_all(sqs, queue, 10)
    for _ in range(3):
        found = at_once(*[lambda: receive(sqs, queue, 2, wait_s=0)] * 10)
        assert [len(messages) for messages in found if messages] == [2] * 10


def test_a_noisy_tenant_waits_for_itself_only(sqs: Any, queue: str) -> None:
    for tenant, count in (("noisy", 60), ("quiet", 3)):
        for start in range(0, count, 10):
            entries = [
                {"Id": str(n), "MessageBody": tenant, "MessageGroupId": tenant}
                for n in range(min(10, count - start))
            ]
            sqs.send_message_batch(QueueUrl=queue, Entries=entries)
    bodies = [message["Body"] for message in receive_all(sqs, queue, 20)]
    assert bodies.count("quiet") == 3


def test_a_duplicate_through_another_gateway_is_not_delivered(
    sqs: Any, new_queue: MakeQueue, start_gateway: StartGateway
) -> None:
    other = connect(start_gateway([dialect.routes]).url)
    queue = new_queue(".fifo", FifoQueue="true")
    for client in (sqs, other, sqs):
        client.send_message(
            QueueUrl=queue, MessageBody="once", MessageGroupId="g", MessageDeduplicationId="same"
        )
    (got,) = receive(sqs, queue)
    delete(sqs, queue, got)
    assert receive(sqs, queue, 10, wait_s=1) == []
