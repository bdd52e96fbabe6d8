"""`postroad serve --secure`: secured from the first start, whatever interrupts it, and the same later on."""

from __future__ import annotations

import json
import re
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from postroad.broker import secure_start
from postroad.cli import main, serve
from postroad.testing.process import NodeFailed
from tests.clients.wait import until
from tests.secure_node import SecureNode, secure_node

PASSWORD = re.compile(r"^User admin, password: (\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    with secure_node(tmp_path_factory.mktemp("secure")) as running:
        yield running


def status_of(node: SecureNode, path: str, authorization: str = "", url: str = "") -> int:
    request = urllib.request.Request((url or node.http) + path)
    if authorization:
        request.add_header("Authorization", authorization)
    context = ssl.create_default_context(cafile=str(node.ca))
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_first_start_makes_all_that_is_needed(node: SecureNode) -> None:
    admin = node.admin
    assert list(admin) == ["bootstrap", "http", "ca", "user", "password"]
    assert admin["bootstrap"] == f"tls://{node.bootstrap}"
    assert admin["http"] == node.http
    assert node.http.startswith("https://")
    assert (admin["ca"], admin["user"]) == ("tls/ca.pem", "admin")
    for secret in (node.profile, node.data_dir / "master.key", *node.data_dir.glob("tls/*.key")):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600, secret
    assert stat.S_IMODE(node.data_dir.stat().st_mode) == 0o700


def test_the_password_is_printed_once(node: SecureNode) -> None:
    printed = node.log_file.read_text()
    assert PASSWORD.findall(printed) == [node.admin["password"]]
    assert printed.count(node.admin["password"]) == 1


def test_commands_take_who_they_are_from_the_profile(node: SecureNode) -> None:
    node.call("topic", "create", "books")
    assert "books" in node.call("topic", "list").output
    node.call("publish", "books", "one")
    assert node.call("consume", "books", "--count", "1").output == "one\n"
    assert "admin" in node.call("user", "list").output


def test_clients_without_tls_or_a_password_are_not_served(node: SecureNode) -> None:
    password = node.admin["password"]
    wrong = [
        {"bootstrap.servers": node.bootstrap},
        node.client("admin", password) | {"security.protocol": "SASL_PLAINTEXT"},
        node.client("admin", password + "x"),
        node.client("nobody", password, "PLAIN"),
    ]
    for config in wrong:
        with pytest.raises(KafkaException):
            AdminClient(config).list_topics(timeout=1)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_clients_log_in_over_tls(node: SecureNode, mechanism: str) -> None:
    config = node.client("admin", node.admin["password"], mechanism)
    assert AdminClient(config).list_topics(timeout=10).brokers


def test_http_asks_who_comes(node: SecureNode) -> None:
    until(lambda: status_of(node, "/v1/topics") in (401, 403), "the gateway serves")
    assert status_of(node, "/v1/topics", basic("admin", "wrong")) in (401, 403)
    assert status_of(node, "/v1/topics", basic("admin", node.admin["password"])) == 200


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def test_after_four_commands_one_may_write_and_one_may_read(tmp_path: Path) -> None:
    """Those of README.md: the start itself, a topic, one who writes and one who reads."""
    with secure_node(tmp_path) as node:
        node.call("topic", "create", "orders")
        made = [
            json.loads(node.call("user", "create", name, right, "orders", "--json").output)["password"]
            for name, right in (("shop", "--produce"), ("billing", "--consume"))
        ]
        assert sent(node, "shop", made[0], "orders") is None
        settings = {"group.id": "billing", "auto.offset.reset": "earliest"}
        consumer = Consumer(node.client("billing", made[1]) | settings)
        consumer.subscribe(["orders"])
        message = consumer.poll(20)
        assert message is not None
        assert message.value() == b"one"
        consumer.close()
        node.call("topic", "create", "salaries")
        for name, password, topic in (("shop", made[0], "salaries"), ("billing", made[1], "orders")):
            assert sent(node, name, password, topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def sent(node: SecureNode, user: str, password: str, topic: str) -> Any:
    """The error of a message's delivery; None: it is stored."""
    errors: list[Any] = []
    producer = Producer(node.client(user, password))
    producer.produce(topic, "one", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    return errors[0]


def test_a_later_start_keeps_everything_but_the_addresses(tmp_path: Path) -> None:
    first = SecureNode(tmp_path)
    first.start()
    first.stop()
    first.release_ports()
    before = first.admin
    files = {path: path.read_bytes() for path in first.data_dir.glob("tls/*")}
    first.log_file.unlink()
    with secure_node(tmp_path) as node:  # it gets other ports
        assert node.bootstrap != first.bootstrap
        assert node.admin == before | {"bootstrap": f"tls://{node.bootstrap}", "http": node.http}
        assert not PASSWORD.search(node.log_file.read_text())
        assert before["password"] not in node.log_file.read_text()
        assert {path: path.read_bytes() for path in node.data_dir.glob("tls/*")} == files
        node.call("topic", "list")


@pytest.mark.parametrize("last", ["tls/ca.key", "tls/ca.pem", "tls/node.key", "master.key", "node.json"])
def test_a_first_start_that_was_killed_is_completed_by_the_next(tmp_path: Path, last: str) -> None:
    """kill -9 as soon as that file is there."""
    node = SecureNode(tmp_path)
    node.launch()
    until(lambda: (node.data_dir / last).exists(), "it has come so far", pause_s=0.001)
    node.kill()
    node.release_ports()
    with secure_node(tmp_path) as again:
        again.call("topic", "list")
        assert not [path.name for path in (again.data_dir / "tls").iterdir() if path.is_dir()]


def test_a_secured_directory_is_not_opened_by_leaving_the_word_out(tmp_path: Path) -> None:
    with secure_node(tmp_path) as node:
        node.stop()
        done = invoke("serve", "--data", str(node.data_dir), "--kafka", "127.0.0.1:0", "--no-http")
        assert done.exit_code == 1
        assert "was started with --secure" in done.output
        assert serve.PROFILE == secure_start.PROFILE


def test_who_lost_the_profile_gets_another_password(tmp_path: Path) -> None:
    """The state of a start that was killed between the user and the profile is the same."""
    with secure_node(tmp_path) as node:
        node.call("topic", "create", "kept")
        before = node.admin
        node.kill()
        node.profile.unlink()
        node.start()
        assert node.admin["password"] != before["password"]
        assert "kept" in node.call("topic", "list").output
        with pytest.raises(KafkaException):
            AdminClient(node.client("admin", before["password"])).list_topics(timeout=1)


def test_a_certificate_for_new_names_is_made_by_the_same_ca(tmp_path: Path) -> None:
    with secure_node(tmp_path) as node:
        ca, certificate = node.ca.read_bytes(), (node.ca.parent / "node.pem").read_bytes()
        node.stop()
        node.configure({"http.enabled": True, "kafka.advertised_host": "localhost"})
        node.start()
        assert (node.ca.parent / "node.pem").read_bytes() == certificate  # it names this machine already
        node.stop()
        node.configure({"http.enabled": False, "kafka.advertised_host": "kafka.example.com"})
        node.start()
        assert node.ca.read_bytes() == ca
        assert (node.ca.parent / "node.pem").read_bytes() != certificate
        said = subprocess.check_output(
            ["openssl", "x509", "-in", node.ca.parent / "node.pem", "-noout", "-ext", "subjectAltName"]
        )
        assert b"DNS:kafka.example.com" in said


def test_a_missing_key_of_the_ca_is_no_harm_until_it_is_needed(tmp_path: Path) -> None:
    with secure_node(tmp_path) as node:
        node.stop()
        (node.ca.parent / "ca.key").unlink()
        node.start()
        node.stop()
        node.configure({"http.enabled": False, "kafka.advertised_host": "kafka.example.com"})
        with pytest.raises(NodeFailed, match=r"ca\.key is not there to sign it"):
            node.start()


def test_others_may_connect_without_a_warning(tmp_path: Path) -> None:
    node = SecureNode(tmp_path, {"kafka.advertised_host": "localhost"})
    node._listen = "0.0.0.0:0"
    try:
        node.start()
        assert node.bootstrap.startswith("localhost:")
        node.call("topic", "list")
        assert "others can connect" not in node.log_file.read_text()
        node.stop()
    finally:
        node.kill()
        node.release_ports()


def test_several_nodes_share_all_secrets(tmp_path: Path) -> None:
    told, data = tmp_path / "ready.json", tmp_path / "data"
    command = [sys.executable, "-m", "postroad", "serve", "--secure", "--nodes", "3", "--replicas", "3"]
    command += ["--data", str(data), "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    command += ["--ready-file", str(told)]
    log_file = tmp_path / "log"
    with log_file.open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            until(lambda: told.exists() or running.poll() is not None, "the nodes serve", patience_s=90)
            assert running.poll() is None, log_file.read_text()[-4000:]
            for arguments in (["topic", "create", "t"], ["publish", "t", "one"], ["topic", "describe", "t"]):
                done = invoke("--profile", str(data / "admin.profile"), *arguments)
                assert done.exit_code == 0, done.output
            node = SecureNode(tmp_path)
            for address in json.loads(told.read_bytes())["kafka"].split(","):
                node.bootstrap = address
                config = node.client("admin", node.admin["password"])
                assert len(AdminClient(config).list_topics(timeout=10).brokers) == 3
        finally:
            running.terminate()
            running.wait(60)


def test_a_gateway_takes_the_address_of_a_profile_and_logs_in_as_itself(
    node: SecureNode, tmp_path: Path
) -> None:
    refused = invoke("--profile", str(node.profile), "gateway", "--http", "127.0.0.1:0")
    assert refused.exit_code == 1
    assert "security.gateway_key_file" in refused.output
    told, key = tmp_path / "ready.json", node.data_dir / "gateway.key"
    command = [sys.executable, "-m", "postroad", "--profile", str(node.profile), "gateway"]
    command += ["--http", "127.0.0.1:0", "--ready-file", str(told)]
    command += ["--set", "security.enabled=true", "--set", f"security.gateway_key_file={key}"]
    with (tmp_path / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            until(lambda: told.exists() or running.poll() is not None, "the gateway serves")
            assert running.poll() is None, (tmp_path / "log").read_text()[-4000:]
            url = json.loads(told.read_bytes())["url"]
            assert status_of(node, "/v1/topics", url=url) == 401
            assert status_of(node, "/v1/topics", basic("admin", node.admin["password"]), url) == 200
        finally:
            running.terminate()
            running.wait(60)


def test_an_addresss_own_profile_goes_before_the_commands(node: SecureNode, tmp_path: Path) -> None:
    other = tmp_path / "other.profile"
    other.write_text('user = "nobody"\npassword = "x"\n')
    other.chmod(0o600)
    address = f"tls://{node.bootstrap}?profile={node.profile}"
    assert invoke("--profile", str(other), "topic", "list", "-b", address).exit_code == 0


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "security.enabled=false"], "security.enabled is set to false"),
        (["--set", "kafka.tls=false"], "kafka.tls is set to false"),
        (["--set", "http.tls=false"], "http.tls is set to false"),
        (["--store", "etcd://127.0.0.1:1/x"], "nodes on one machine"),
        (["--set", "security.super_users=User:root"], "add User:admin"),
        (["--set", "kafka.advertised_host=a,DNS:b"], "can't be the name of a host"),
    ],
)
def test_settings_that_contradict_it_are_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = invoke("serve", "--secure", "--data", str(tmp_path / "data"), *arguments)
    assert done.exit_code == 1
    assert said in done.output
    assert not (tmp_path / "data" / "admin.profile").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "does not have user 'admin' and a password"),
        ('user = "admin"', "does not have user 'admin' and a password"),
        ("nonsense", "it is no TOML"),
        ('user = "admin"\npassword = "x"\nca = "gone.pem"', "there is no file"),
    ],
)
def test_a_start_with_a_damaged_profile_says_what_to_do(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "admin.profile").write_text(content)
    (tmp_path / "admin.profile").chmod(0o600)
    done = invoke("serve", "--secure", "--data", str(tmp_path))
    assert done.exit_code == 1
    assert said in done.output
    assert "gives user admin another password" in done.output
    assert not (tmp_path / "tls").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('user = "shop"', "has no password"),
        ('password = "x"', "there is a password, but no user"),
        ('bootstrap = "tls://127.0.0.1:1"\nca = "gone.pem"', "there is no file"),
        ('colour = "red"', "is none of bootstrap, http, ca, user, password"),
        ("user = 7", "is none of bootstrap, http, ca, user, password"),
        ('http = "ftp://x"', "must begin with https:// or http://"),
        ('"', "it is no TOML"),
    ],
)
def test_a_wrong_profile_is_said(tmp_path: Path, content: str, said: str) -> None:
    profile = tmp_path / "wrong.profile"
    profile.write_text(content)
    done = invoke("--profile", str(profile), "topic", "list")
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


def test_keys_that_all_users_can_read_are_warned_of(tmp_path: Path) -> None:
    running = SecureNode(tmp_path, {"http.enabled": False})
    try:
        running.start()
        running.stop()
        assert "can read the secret" not in running.log_file.read_text()
        keys = [running.data_dir / name for name in ("master.key", "gateway.key", "tls/node.key")]
        for key in keys:
            assert key.stat().st_mode & 0o777 == 0o600
            key.chmod(0o644)
        running.start()
        running.stop()
        said = running.log_file.read_text()
        assert [key for key in keys if f"can read the secret in {key}: chmod 600" not in said] == []
    finally:
        running.kill()
        running.release_ports()


def test_a_profile_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = invoke("--profile", str(tmp_path / "gone"), "topic", "list")
    assert done.exit_code == 2
    assert "can't be read: No such file" in " ".join(done.output.split())


def test_a_profile_that_others_can_read_is_warned_of(node: SecureNode) -> None:
    node.profile.chmod(0o644)
    try:
        assert f"chmod 600 {node.profile}" in node.call("topic", "list").stderr
    finally:
        node.profile.chmod(0o600)
    assert node.call("topic", "list").stderr == ""


def test_a_wrong_password_in_a_profile_is_said(node: SecureNode, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.profile"
    wrong.write_text(
        f'bootstrap = "tls://{node.bootstrap}"\nca = "{node.ca}"\nuser = "admin"\npassword = "x"\n'
    )
    wrong.chmod(0o600)
    done = invoke("--profile", str(wrong), "topic", "list")
    assert done.exit_code == 1
    assert "The user or the password is wrong" in done.output
