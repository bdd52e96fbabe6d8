"""Passwords and keys are in their files only: not in logs, configs, metrics or lists of processes."""

from __future__ import annotations

import re
import ssl
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource

from postroad.cli import main
from postroad.security.master_key import MACHINES, machine_password, read_key
from tests.clients.wait import until
from tests.secure_node import SecureNode, secure_node

SHOP = "a password that shop has"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    """One that was used with right and wrong passwords, and by HTTP, with debug lines in its log."""
    home = tmp_path_factory.mktemp("secrets")
    with secure_node(home, {"logging.level": "debug", "http.access_log": "all"}) as running:
        (home / "password").write_text(SHOP)
        running.call("user", "create", "shop", "--new-password-file", str(home / "password"))
        running.call("topic", "create", "orders")
        running.call("acl", "allow", "shop", "--produce", "orders")
        for mechanism in ("SCRAM-SHA-256", "PLAIN"):
            AdminClient(running.client("shop", SHOP, mechanism)).list_topics(timeout=10)
            with pytest.raises(KafkaException):
                AdminClient(running.client(SHOP, "wrong", mechanism)).list_topics(timeout=1)
        until(lambda: get(running, "/metrics"), "the gateway answers")
        yield running


def get(node: SecureNode, path: str) -> str:
    admin = node.admin
    request = urllib.request.Request(node.http + path)
    basic = b64encode(f"{admin['user']}:{admin['password']}".encode()).decode()
    request.add_header("Authorization", f"Basic {basic}")
    context = ssl.create_default_context(cafile=str(node.ca))
    with urllib.request.urlopen(request, context=context) as answer:
        return str(answer.read().decode())


def secrets(node: SecureNode) -> list[str]:
    key = (node.data_dir / "master.key").read_text().strip()
    keys = [re.sub(r"-.*-|\s", "", path.read_text())[:60] for path in node.data_dir.glob("tls/*.key")]
    assert len(keys) == 2
    machines = [machine_password(read_key(key), name) for name in MACHINES]
    return [node.admin["password"], SHOP, key, *keys, *machines]


def found_in(text: str, node: SecureNode) -> list[str]:
    text = re.sub(r"\s", "", text)
    return [secret for secret in secrets(node) if re.sub(r"\s", "", secret) in text]


def test_no_secret_is_in_the_log(node: SecureNode) -> None:
    """But for the one line that shows the admin's password, once."""
    log = node.log_file.read_text()
    shown = [line for line in log.splitlines() if line.startswith("User admin, password:")]
    assert len(shown) == 1
    assert '"event": "login failed"' in log
    assert '"event": "login"' in log
    assert found_in(log.replace(shown[0], ""), node) == []


def test_no_secret_is_in_the_metrics(node: SecureNode) -> None:
    page = get(node, "/metrics")
    assert "postroad_" in page
    assert found_in(page, node) == []


def test_no_secret_is_in_what_a_node_tells_of_its_configs(node: SecureNode) -> None:
    admin = AdminClient(node.client("admin", node.admin["password"]))
    told = []
    for kind, name in ((ConfigResource.Type.BROKER, "1"), (ConfigResource.Type.TOPIC, "orders")):
        (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
        told += [f"{entry.name}={entry.value}" for entry in future.result(10).values()]
    assert found_in("\n".join(told), node) == []


def test_no_secret_is_printed_by_config(node: SecureNode, tmp_path: Path) -> None:
    for arguments in ([], ["--json"]):
        done = CliRunner().invoke(main, ["config", "--data", str(node.data_dir), *arguments])
        assert done.exit_code == 0
        assert found_in(done.output, node) == []


def test_no_secret_is_in_the_list_of_processes(node: SecureNode) -> None:
    """What `ps` shows to everybody, of the node and of its gateway."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in family(node.pid)}
    assert any("gateway" in line for line in lines.values())
    assert found_in("\n".join(lines.values()), node) == []


def family(pid: int) -> list[int]:
    """The process and those that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in family(int(child)))]


def test_no_secret_is_in_the_store(node: SecureNode) -> None:
    for file in node.data_dir.glob("coordination.sqlite*"):
        content = file.read_bytes()
        assert not [secret for secret in secrets(node) if secret.encode() in content]


def test_no_value_of_a_config_is_in_the_audit_log(node: SecureNode) -> None:
    node.call("topic", "alter", "orders", "--config", "retention.ms=1234567")
    log = until(
        lambda: text if "config altered" in (text := node.log_file.read_text()) else "", "it is written"
    )
    assert "1234567" not in log
