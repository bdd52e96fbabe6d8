"""What `postroad serve --secure` serves by https, with the users that it makes: Celery, boto3, WebSocket."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pytest
import websockets.sync.client

from tests.clients.wait import until
from tests.gateway.security.asking import basic
from tests.gateway.test_celery import Tasks
from tests.secure_node import SecureNode, secure_node

TIMEOUT_S = 60


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    with secure_node(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture(scope="module")
def worker(node: SecureNode) -> dict[str, str]:
    made: dict[str, str] = json.loads(node.call("user", "create", "worker", "--json").output)
    node.call("acl", "allow", "worker", "--queue", "tasks*")
    return made


def sqs(node: SecureNode, user: dict[str, str]) -> Any:
    return boto3.client(
        "sqs", region_name="eu-west-1", endpoint_url=node.http, verify=str(node.ca),
        aws_access_key_id=user["access_key_id"], aws_secret_access_key=user["secret_access_key"],
    )  # fmt: skip


def create(client: Any, name: str) -> str:
    def is_made() -> bool:
        try:
            client.create_queue(QueueName=name)
        except client.exceptions.ClientError:
            return False
        return True

    until(is_made, "the gateway has heard of the rules")
    url: str = client.get_queue_url(QueueName=name)["QueueUrl"]
    return url


def test_a_stream_with_a_users_password(node: SecureNode, worker: dict[str, str]) -> None:
    client = sqs(node, worker)
    client.send_message(QueueUrl=create(client, "tasks-pushed"), MessageBody="pushed")
    where = f"wss{node.http.removeprefix('https')}/v1/subscriptions/tasks-pushed/stream?credit=1"
    with websockets.sync.client.connect(
        where,
        additional_headers=basic("worker", worker["password"]),
        ssl=ssl.create_default_context(cafile=str(node.ca)),
        open_timeout=TIMEOUT_S,
    ) as socket:
        assert json.loads(socket.recv(TIMEOUT_S))["value"] == "pushed"


@pytest.mark.slow
def test_celery_with_a_users_key(
    node: SecureNode, worker: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(node.ca))
    create(sqs(node, worker), "tasks-celery")
    login = f"{quote(worker['access_key_id'])}:{quote(worker['secret_access_key'])}"
    tasks = Tasks(f"https://{login}@{urlsplit(node.http).netloc}", "tasks-celery", tmp_path)
    wanted = [str(number) for number in range(5)]
    with tasks.worker():
        for argument in wanted:
            tasks.send("simple", argument)
        ran = tasks.wait_for("simple", len(wanted))
    assert sorted(run.argument for run in ran) == wanted
