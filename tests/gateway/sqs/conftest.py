"""A gateway with the SQS dialect for the tests of each module, and boto3 in front of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config

from postroad.gateway import sqs as dialect
from tests.gateway.conftest import RunningGateway, StartGateway

MakeQueue = Callable[..., str]

WAIT_S = 20  # the longest that SQS takes: for what is sure to come


def connect(url: str, key: str = "key", secret: str = "secret", **more: Any) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}, max_pool_connections=50, **more),
    )


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([dialect.routes], auto_create=False)


@pytest.fixture(scope="module")
def sqs(gateway: RunningGateway) -> Any:
    return connect(gateway.url)


@pytest.fixture
def new_queue(sqs: Any, name: str) -> MakeQueue:
    """The URL of a queue with these attributes; `suffix` makes it another one."""

    def create(suffix: str = "", **attributes: str) -> str:
        url: str = sqs.create_queue(QueueName=name + suffix, Attributes=attributes)["QueueUrl"]
        return url

    return create


@pytest.fixture
def queue(new_queue: MakeQueue) -> str:
    return new_queue()


def arn_of(sqs: Any, queue: str) -> str:
    arn: str = attributes_of(sqs, queue, "QueueArn")["QueueArn"]
    return arn


def attributes_of(sqs: Any, queue: str, *names: str) -> dict[str, str]:
    answer = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=list(names) or ["All"])
    found: dict[str, str] = answer.get("Attributes", {})
    return found


def receive(sqs: Any, queue: str, count: int = 1, wait_s: int = WAIT_S, **more: Any) -> list[dict[str, Any]]:
    answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=count, WaitTimeSeconds=wait_s, **more)
    messages: list[dict[str, Any]] = answer.get("Messages", [])
    return messages


def receive_all(sqs: Any, queue: str, count: int, **more: Any) -> list[dict[str, Any]]:
    """Receive `count` messages, in as many calls as it takes."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        some = receive(sqs, queue, min(10, count - len(found)), **more)
        assert some, f"only {len(found)} of {count} came"
        found += some
    return found


def delete(sqs: Any, queue: str, message: dict[str, Any]) -> None:
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
