"""Redrives and move tasks are every gateway's business: shown, refused, cancelled and carried on by any."""

from __future__ import annotations

import json
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from postroad.client import subscriptions
from postroad.gateway import redrives, rest, sqs
from postroad.testing import Node
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway, gateway_in_thread
from tests.gateway.processes import alone, url_of

DIALECTS = [rest.routes, sqs.routes]
QUICK_GATEWAY = [sys.executable, "-m", "tests.gateway.redrives.quick_gateway"]
PATIENCE_S = 60.0


def eventually(holds: Callable[[], bool], what: str) -> None:
    until(holds, what, PATIENCE_S, pause_s=0.1)


class Side(NamedTuple):
    """One gateway, spoken to in both dialects."""

    url: str
    sqs: Any

    def rest(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def task(self, dead: str) -> Any:
        """The newest move task of that queue."""
        arn = f"arn:aws:sqs:us-east-1:000000000000:{dead}"
        return self.sqs.list_message_move_tasks(SourceArn=arn)["Results"][0]

    def bodies(self, queue: str, count: int) -> set[str]:
        """The bodies of all messages; waits until there are `count` different ones."""
        found: set[str] = set()
        url = self.sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        while True:
            wait_s = 20 if len(found) < count else 0
            answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s)
            if not answer.get("Messages"):
                return found
            found |= {message["Body"] for message in answer["Messages"]}


def side(url: str) -> Side:
    client = boto3.client(
        "sqs", endpoint_url=url, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y",
        config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip
    return Side(url, client)


@pytest.fixture(autouse=True)
def pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways in threads look often, and wait for each other for long."""
    monkeypatch.setattr(redrives.redrives, "LOOK_S", 0.5)
    monkeypatch.setattr(redrives.redrives, "CANCEL_S", PATIENCE_S / 2)
    monkeypatch.setattr(redrives.runner, "BEAT_S", 0.5)


@pytest.fixture
def two(broker: Node, pace: None) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:

        def start() -> RunningGateway:
            running = gateway_in_thread(broker.bootstrap, DIALECTS, contexts=[redrives.context])
            return stack.enter_context(running)

        yield side(start().url), side(start().url)


def begin_move(at: Side, name: str, messages: int, per_second: int) -> tuple[str, str]:
    """Messages of the queue `<name>-dead` go to `<name>`; the source's ARN and the task's handle."""
    dead = at.sqs.create_queue(QueueName=f"{name}-dead")["QueueUrl"]
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
    policy = json.dumps({"deadLetterTargetArn": f"{arn}-dead", "maxReceiveCount": 1})
    at.sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})
    for first in range(0, messages, 10):
        numbers = range(first, min(first + 10, messages))
        entries = [{"Id": str(number), "MessageBody": str(number)} for number in numbers]
        assert len(at.sqs.send_message_batch(QueueUrl=dead, Entries=entries)["Successful"]) == len(numbers)
    handle = at.sqs.start_message_move_task(
        SourceArn=f"{arn}-dead", DestinationArn=arn, MaxNumberOfMessagesPerSecond=per_second
    )["TaskHandle"]
    return f"{arn}-dead", handle


def begin_redrive(at: Side, name: str, messages: int, rate: float) -> str:
    """Dead letters of the subscription go back to its topic; the redrive's id."""
    at.rest("/v1/topics", {"name": name})
    at.rest("/v1/subscriptions", {"name": name, "topics": [name], "start": "earliest"})
    at.rest(f"/v1/topics/{name}/messages", [{"value": str(number)} for number in range(messages)])
    rejected = 0
    while rejected < messages:
        found = at.rest(f"/v1/subscriptions/{name}/receive", {"max": messages, "wait_ms": 10_000})["messages"]
        at.rest(f"/v1/subscriptions/{name}/reject", {"receipts": [message["receipt"] for message in found]})
        rejected += len(found)
    path = f"/v1/subscriptions/{name}/dead-letters"
    eventually(lambda: len(at.rest(path)["letters"]) == messages, "all letters are there")
    return str(at.rest(f"{path}/redrive", {"rate": rate})["id"])


def test_another_gateway_shows_a_task_refuses_a_second_one_and_cancels_it(
    two: tuple[Side, Side], name: str
) -> None:
    here, there = two
    redrive = begin_redrive(here, f"{name}-r", 40, 1)
    source, handle = begin_move(here, name, 40, 1)
    assert there.rest(f"/v1/redrives/{redrive}")["state"] == "running"
    assert there.task(f"{name}-dead")["TaskHandle"] == handle
    with pytest.raises(urllib.error.HTTPError) as refused:
        there.rest(f"/v1/subscriptions/{name}-r/dead-letters/redrive", {})
    assert refused.value.code == 409
    with pytest.raises(ClientError, match="There is already a task running"):
        there.sqs.start_message_move_task(SourceArn=source)
    eventually(lambda: there.task(f"{name}-dead")["ApproximateNumberOfMessagesMoved"] > 0, "some are moved")

    assert there.rest(f"/v1/redrives/{redrive}/cancel", method="POST")["state"] == "cancelled"
    there.sqs.cancel_message_move_task(TaskHandle=handle)
    for gateway in two:
        assert gateway.rest(f"/v1/redrives/{redrive}")["state"] == "cancelled"
        assert gateway.task(f"{name}-dead")["Status"] == "CANCELLED"
    with pytest.raises(there.sqs.exceptions.ResourceNotFoundException):
        there.sqs.cancel_message_move_task(TaskHandle=handle)
    assert there.rest(f"/v1/subscriptions/{name}-r/dead-letters/redrive", {})["state"] == "running"


def test_a_queue_can_be_deleted_while_another_gateway_moves_its_messages(
    two: tuple[Side, Side], name: str
) -> None:
    here, there = two
    begin_move(here, name, 40, 1)
    dead = there.sqs.get_queue_url(QueueName=f"{name}-dead")["QueueUrl"]
    there.sqs.delete_queue(QueueUrl=dead)
    there.sqs.create_queue(QueueName=f"{name}-dead")
    arn = f"arn:aws:sqs:us-east-1:000000000000:{name}-dead"
    assert here.sqs.list_message_move_tasks(SourceArn=arn)["Results"] == []


def test_a_gateway_that_is_stopped_hands_its_tasks_over(broker: Node, name: str) -> None:
    with gateway_in_thread(broker.bootstrap, DIALECTS, contexts=[redrives.context]) as left:
        there = side(left.url)
        with gateway_in_thread(broker.bootstrap, DIALECTS, contexts=[redrives.context]) as stopped:
            here = side(stopped.url)
            redrive = begin_redrive(here, f"{name}-r", 15, 3)
            begin_move(here, name, 15, 3)
        assert there.task(f"{name}-dead")["Status"] == "RUNNING"
        eventually(lambda: there.rest(f"/v1/redrives/{redrive}")["state"] == "completed", "it is completed")
        assert there.rest(f"/v1/redrives/{redrive}")["sent"] == 15
        eventually(lambda: there.task(f"{name}-dead")["Status"] == "COMPLETED", "its task too")
        assert there.task(f"{name}-dead")["ApproximateNumberOfMessagesMoved"] == 15
        assert there.bodies(name, 15) == {str(number) for number in range(15)}


def test_a_record_that_makes_no_sense_is_shown_and_fails(broker: Node, name: str) -> None:
    task = {"id": "feedfeedfeedfeed", "kind": "rest", "began_ms": 0, "wish": {"rate": "fast"}}
    with gateway_in_thread(broker.bootstrap, DIALECTS, contexts=[redrives.context]) as running:
        here = side(running.url)
        here.rest("/v1/topics", {"name": name})
        here.rest("/v1/subscriptions", {"name": name, "topics": [name]})
        written = {"postroad.redrives": json.dumps([task])}
        running.run(subscriptions.alter_config(running.gateway.client, name, written))
        assert here.rest(f"/v1/redrives/{task['id']}")["dead_letter_topic"] == ""
        eventually(lambda: here.rest(f"/v1/redrives/{task['id']}")["state"] == "failed", "it has failed")


@pytest.mark.slow
def test_tasks_of_a_gateway_that_is_killed_are_carried_on_to_their_end(
    broker: Node, name: str, tmp_path: Path
) -> None:
    homes = tmp_path / "a", tmp_path / "b"
    for home in homes:
        home.mkdir()
    with (
        alone(homes[0], "--bootstrap", broker.bootstrap, program=QUICK_GATEWAY) as killed,
        alone(homes[1], "--bootstrap", broker.bootstrap, program=QUICK_GATEWAY),
    ):
        here, there = (side(url_of(home)) for home in homes)
        redrive = begin_redrive(here, f"{name}-r", 20, 5)
        begin_move(here, name, 20, 5)
        eventually(lambda: there.rest(f"/v1/redrives/{redrive}")["sent"] > 0, "some are sent")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert there.rest(f"/v1/redrives/{redrive}")["state"] == "running"
        assert there.task(f"{name}-dead")["Status"] == "RUNNING"
        eventually(lambda: there.rest(f"/v1/redrives/{redrive}")["state"] == "completed", "it is completed")
        eventually(lambda: there.task(f"{name}-dead")["Status"] == "COMPLETED", "its task too")
        everything = {str(number) for number in range(20)}
        assert there.bodies(name, 20) == everything
        assert there.bodies(f"{name}-r", 20) == everything
        assert there.rest(f"/v1/subscriptions/{name}-r/dead-letters")["letters"] == []
