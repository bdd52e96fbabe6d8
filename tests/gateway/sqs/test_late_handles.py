"""Receipt handles whose visibility timeout is over: what they can still do, and what a FIFO queue refuses.

A message that is received with a visibility timeout of 0 is visible again at once: nobody has to wait here.
"""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from postroad.gateway import sqs as dialect
from postroad.testing import node
from tests.gateway.conftest import StartGateway, gateway_in_thread
from tests.gateway.sqs.conftest import connect, delete, receive
from tests.gateway.sqs.test_fifo import fifo, send

__all__ = ["fifo"]


def change(sqs: Any, queue: str, message: dict[str, Any], timeout_s: int) -> None:
    handle = message["ReceiptHandle"]
    sqs.change_message_visibility(QueueUrl=queue, ReceiptHandle=handle, VisibilityTimeout=timeout_s)


def visible_again(sqs: Any, queue: str) -> dict[str, Any]:
    sqs.send_message(QueueUrl=queue, MessageBody="x")
    (got,) = receive(sqs, queue, VisibilityTimeout=0)
    return got


def test_a_message_whose_timeout_is_over_is_made_invisible_again(
    sqs: Any, queue: str, start_gateway: StartGateway
) -> None:
    got = visible_again(sqs, queue)
    change(sqs, queue, got, 600)
    other = connect(start_gateway([dialect.routes]).url)
    for gateway in (sqs, other):
        assert receive(gateway, queue, wait_s=0) == []
    change(other, queue, got, 0)
    (again,) = receive(sqs, queue, AttributeNames=["All"])
    assert again["Attributes"]["ApproximateReceiveCount"] == "2", "only receives count"


def test_a_message_that_was_made_invisible_again_is_deleted_with_its_handle(sqs: Any, queue: str) -> None:
    got = visible_again(sqs, queue)
    change(sqs, queue, got, 600)
    delete(sqs, queue, got)
    with pytest.raises(ClientError, match="Message does not exist or is not available"):
        change(sqs, queue, got, 0)


def test_late_handles_of_a_batch_make_their_messages_invisible_again(sqs: Any, queue: str) -> None:
    late = visible_again(sqs, queue)["ReceiptHandle"]
    entries = [{"Id": "late", "ReceiptHandle": late, "VisibilityTimeout": 600}]
    answer = sqs.change_message_visibility_batch(QueueUrl=queue, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["late"]
    assert receive(sqs, queue, wait_s=0) == []


@pytest.mark.parametrize("timeout_s", [0, 600])
def test_a_late_handle_takes_a_message_from_nobody(sqs: Any, queue: str, timeout_s: int) -> None:
    late = visible_again(sqs, queue)
    (held,) = receive(sqs, queue, VisibilityTimeout=600)
    with pytest.raises(sqs.exceptions.MessageNotInflight):
        change(sqs, queue, late, timeout_s)
    assert receive(sqs, queue, wait_s=0) == []
    change(sqs, queue, held, 0)
    assert receive(sqs, queue)


def test_to_make_visible_what_is_visible_is_no_error_however_old_the_handle_is(
    sqs: Any, queue: str, fifo: str
) -> None:
    oldest = visible_again(sqs, queue)
    assert receive(sqs, queue, VisibilityTimeout=0)
    change(sqs, queue, oldest, 0)
    send(sqs, fifo, "x")
    (late,) = receive(sqs, fifo, VisibilityTimeout=0)
    change(sqs, fifo, late, 0)
    assert receive(sqs, queue)
    assert receive(sqs, fifo)


def test_a_fifo_queue_deletes_nothing_with_a_handle_whose_timeout_is_over(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "x")
    (late,) = receive(sqs, fifo, VisibilityTimeout=0)
    with pytest.raises(ClientError, match=r"The receipt handle has expired\.") as error:
        delete(sqs, fifo, late)
    assert error.value.response["Error"]["Code"] == "InvalidParameterValue"
    entries = [{"Id": "late", "ReceiptHandle": late["ReceiptHandle"]}]
    answer = sqs.delete_message_batch(QueueUrl=fifo, Entries=entries)
    assert [entry["Code"] for entry in answer["Failed"]] == ["InvalidParameterValue"]
    (again,) = receive(sqs, fifo)
    assert again["MessageId"] == late["MessageId"]
    delete(sqs, fifo, again)


def test_a_fifo_queue_makes_nothing_invisible_again(sqs: Any, fifo: str) -> None:
    send(sqs, fifo, "x")
    (late,) = receive(sqs, fifo, VisibilityTimeout=0)
    with pytest.raises(sqs.exceptions.MessageNotInflight):
        change(sqs, fifo, late, 600)
    assert receive(sqs, fifo)


def test_a_fifo_queue_knows_which_handles_were_good_when_its_node_is_started_again() -> None:
    with node({"http.enabled": False}) as broker:
        with gateway_in_thread(broker.bootstrap, [dialect.routes]) as first:
            sqs = connect(first.url)
            queue = sqs.create_queue(QueueName="jobs.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
            for group in ("late", "good"):
                send(sqs, queue, group, group)
            (good, late) = sorted(receive(sqs, queue, 10, VisibilityTimeout=600), key=lambda m: m["Body"])
            change(sqs, queue, late, 0)
        broker.restart()
        with gateway_in_thread(broker.bootstrap, [dialect.routes]) as second:
            sqs = connect(second.url)
            delete(sqs, queue, good)
            with pytest.raises(ClientError, match=r"The receipt handle has expired\."):
                delete(sqs, queue, late)
            (left,) = receive(sqs, queue, 10)
            assert left["Body"] == "late"
            assert receive(sqs, queue, wait_s=0) == []
