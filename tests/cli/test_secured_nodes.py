"""Nodes that ask who comes: they know each other by the cluster's master key, and so does the gateway."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from click.testing import CliRunner, Result

from postroad.cli import main
from tests.clients.wait import until


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secured")


@pytest.fixture(scope="module")
def ready(home: Path) -> Iterator[dict[str, str]]:
    """Three nodes and their gateway: where they are, once they serve."""
    config = home / "postroad.toml"
    config.write_text('[security]\nenabled = true\n[http]\naccess_keys = "key:secret:admin"\n')
    told = home / "ready.json"
    command = [sys.executable, "-m", "postroad", "serve", "--config", str(config)]
    command += ["--nodes", "3", "--replicas", "3", "--data", str(home / "data")]
    command += ["--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", str(told)]
    with (home / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            until(lambda: told.exists() or running.poll() is not None, "the nodes are ready", patience_s=90)
            assert running.poll() is None, (home / "log").read_text()[-4000:]
            yield json.loads(told.read_bytes())
        finally:
            running.terminate()
            running.wait(60)


def call(ready: dict[str, str], home: Path, *arguments: str, code: int = 0) -> Result:
    key = ["--master-key", str(home / "data" / "master.key")]
    result = CliRunner().invoke(main, [*key, *arguments, "-b", ready["kafka"]])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def test_three_nodes_replicate_and_coordinate_among_themselves(ready: dict[str, str], home: Path) -> None:
    call(ready, home, "topic", "create", "orders", "--partitions", "3")
    call(ready, home, "publish", "orders", "one", "two", "three")
    described = json.loads(call(ready, home, "topic", "describe", "orders", "--json").stdout)
    assert [sorted(part["in_sync"]) for part in described["partitions"]] == [[1, 2, 3]] * 3
    assert sorted(part["leader"] for part in described["partitions"]) == [1, 2, 3]
    consumed = call(ready, home, "consume", "orders", "--group", "g", "--count", "3").stdout
    assert sorted(consumed.split()) == ["one", "three", "two"]
    call(ready, home, "subscription", "create", "jobs", "--topic", "orders")
    assert "jobs" in call(ready, home, "subscription", "list").stdout


def test_who_has_not_logged_in_is_not_served(ready: dict[str, str]) -> None:
    result = CliRunner().invoke(main, ["topic", "list", "-b", ready["kafka"], "--timeout", "2"])
    assert result.exit_code == 1


def test_the_gateway_logs_in_by_itself(ready: dict[str, str]) -> None:
    sqs: Any = boto3.client(
        "sqs",
        endpoint_url=f"http://{ready['http']}",
        region_name="us-east-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=Config(retries={"max_attempts": 10}),
    )
    queue = sqs.create_queue(QueueName="parcels")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="a book")
    received = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=10)["Messages"]
    assert [message["Body"] for message in received] == ["a book"]
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=received[0]["ReceiptHandle"])


def test_the_master_key_is_the_node_users_alone(ready: dict[str, str], home: Path) -> None:
    assert (home / "data" / "master.key").stat().st_mode & 0o777 == 0o600


def test_no_secret_is_in_the_log(ready: dict[str, str], home: Path) -> None:
    from postroad.security.master_key import MACHINES, machine_password, read_key

    key = (home / "data" / "master.key").read_text()
    log = (home / "log").read_text()
    secrets = [key.strip(), *(machine_password(read_key(key), name) for name in MACHINES)]
    assert not any(secret in log for secret in secrets)
