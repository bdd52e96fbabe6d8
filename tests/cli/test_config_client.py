"""`postroad config client`: what is printed works when it is pasted, with the client that it is for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from postroad.cli import main
from postroad.cli.config_client import MECHANISM
from tests.clients import java_client
from tests.secure_node import SecureNode, secure_node
from tests.spark import logins

MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]

# A password with all that needs to be written with care somewhere.
PASSWORD = "a\"b\\c;d'e=f g$h#iö"

PROGRAMS = {
    "confluent": """
        from confluent_kafka import Producer
        producer = Producer(config)
        producer.produce("orders", "from confluent")
        assert producer.flush(20) == 0
    """,
    "aiokafka": """
        import asyncio
        from aiokafka import AIOKafkaProducer
        async def main():
            async with AIOKafkaProducer(**config) as producer:
                await producer.send_and_wait("orders", b"from aiokafka")
        asyncio.run(main())
    """,
    "kafka-python": """
        from kafka import KafkaProducer
        producer = KafkaProducer(**config)
        producer.send("orders", b"from kafka-python").get(timeout=20)
        producer.close()
    """,
    "spark": """
        from postroad.spark.option_values import Values
        from postroad.spark.options import cluster
        with cluster(Values(options)) as found:
            assert list(found.topics()) == ["orders"]
    """,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@pytest.fixture(scope="module")
def node(home: Path) -> Iterator[SecureNode]:
    with secure_node(home) as running:
        (home / "shop.password").write_text(PASSWORD + "\n")
        running.call("user", "create", "shop", "--new-password-file", str(home / "shop.password"))
        running.call("topic", "create", "orders")
        running.call("acl", "allow", "shop", "--produce", "orders", "--consume", "orders")
        yield running


def printed(node: SecureNode, home: Path, client: str) -> str:
    user = ["--user", "shop", "--password-file", str(home / "shop.password")]
    return node.call("config", "client", "--for", client, *user).output


def run(program: str, home: Path, name: str) -> None:
    file = home / f"{name}.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=90, env=os.environ
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("client", list(PROGRAMS))
def test_python_clients_log_in_with_what_is_printed(node: SecureNode, home: Path, client: str) -> None:
    run(printed(node, home, client) + textwrap.dedent(PROGRAMS[client]), home, f"with_{client}")
    if client != "spark":
        assert f"from {client}" in node.call("consume", "orders", "--from-beginning").output


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat_logs_in_with_what_is_printed(node: SecureNode, home: Path, mechanism: str) -> None:
    file = home / "kcat.conf"
    file.write_text(printed(node, home, "kcat").replace(MECHANISM, mechanism))
    command = ["kcat", "-F", str(file), "-P", "-t", "orders"]
    subprocess.run(command, input=f"kcat by {mechanism}\n".encode(), check=True, timeout=60)
    assert f"kcat by {mechanism}" in node.call("consume", "orders", "--from-beginning").output


def test_javas_client_logs_in_with_what_is_printed(node: SecureNode, home: Path) -> None:
    """And its administration client sets quotas."""
    path = java_client.classpath(home, "SecuredClient")

    def java(properties: str, *arguments: str) -> str:
        file = home / "client.properties"
        file.write_text(properties)
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "SecuredClient", str(file)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for mechanism in MECHANISMS:
        properties = printed(node, home, "java").replace(MECHANISM, mechanism)
        if mechanism == "PLAIN":
            properties = properties.replace(logins.SCRAM, logins.PLAIN)
        java(properties, "send", "orders", f"java by {mechanism}")
        assert f"java by {mechanism}" in node.call("consume", "orders", "--from-beginning").output
    quotas = java(node.call("config", "client", "--for", "java").output, "quota", "shop", "1e9")
    assert "producer_byte_rate=1.0E9" in quotas
    assert "shop" in node.call("quota", "list").output


def test_boto3_logs_in_with_what_is_printed(node: SecureNode, home: Path) -> None:
    made = json.loads(node.call("user", "key", "create", "admin", "--json").output)
    (home / "secret").write_text(made["secret_access_key"])
    key = ["--access-key", made["access_key_id"], "--secret-file", str(home / "secret")]
    text = node.call("config", "client", "--for", "boto3", *key).output
    program = text + '\nprint(sqs.create_queue(QueueName="parcels")["QueueUrl"])\n'
    run(program, home, "with_boto3")


def test_the_profiles_own_user_is_meant_unless_another_is_named(node: SecureNode, home: Path) -> None:
    assert node.admin["password"] in node.call("config", "client", "--for", "confluent").output
    text = node.call("config", "client", "--for", "confluent", "--user", "shop").output
    assert '"sasl.password": "PASSWORD OF shop"' in text
    assert node.admin["password"] not in text


@pytest.mark.parametrize("client", [*PROGRAMS, "kcat", "java", "boto3"])
def test_a_node_without_logins_needs_none(client: str) -> None:
    done = CliRunner().invoke(main, ["config", "client", "--for", client, "-b", "kafka.example.com:9092"])
    assert done.exit_code == 0
    assert "sasl" not in done.output
    assert "ssl" not in done.output
    assert client == "boto3" or "kafka.example.com:9092" in done.output


def test_unknown_clients_and_addresses_are_refused() -> None:
    for arguments in (["--for", "cobol"], [], ["--for", "java", "-b", "tls://a?verify=ca"]):
        assert CliRunner().invoke(main, ["config", "client", *arguments]).exit_code == 2


def test_settings_of_a_node_are_printed_as_before() -> None:
    done = CliRunner().invoke(main, ["config", "--kafka", "127.0.0.1:7", "--json"])
    assert json.loads(done.output)["kafka.port"] == {"value": 7, "from": "command line"}
