"""The gateway as a process: beside a node, alone in front of one, and the ways in which either ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from postroad.broker.child_process import child_environment
from postroad.broker.gateway_process import settings_of
from postroad.config import Settings, load
from postroad.gateway.serve import GRACE_S
from postroad.testing import Node, node

from .processes import (
    GATEWAY,
    PATIENCE_S,
    alone,
    ask_for_health,
    children,
    connect,
    eventually,
    gateway_pid,
    get,
    url_of,
)

SERVE = [sys.executable, "-m", "postroad", "serve"]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while we read
        return False


def assert_ready(url: str) -> None:
    """Soon: a node that is slow to answer makes it wait."""
    eventually(lambda: get(url + "/readyz") == (200, "ready\n"), "it is not ready")


def refuses(url: str) -> bool:
    try:
        connect(url).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.fixture
def with_http() -> Iterator[Node]:
    with node({"http.enabled": "true", "http.port": "0"}) as running:
        yield running


def test_node_has_a_gateway_beside_it(with_http: Node) -> None:
    assert_ready(with_http.http)


def test_nodes_of_tests_have_none_unless_asked(postroad_session: Node) -> None:
    assert postroad_session.http == ""
    assert children(postroad_session.pid) == []


def test_request_sent_as_soon_as_the_node_is_ready_is_answered() -> None:
    """The socket listens before the gateway runs: whoever comes early waits."""
    with node({"http.enabled": True}) as running:
        assert get(running.http + "/healthz")[0] == 200


def test_gateway_that_dies_is_started_again_at_the_same_address(with_http: Node) -> None:
    assert get(with_http.http + "/healthz")[0] == 200
    first = gateway_pid(with_http)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: children(with_http.pid) not in ([], [first]), "it stays away")
    assert get(with_http.http + "/healthz")[0] == 200
    assert "starting it again" in with_http.log_file.read_text()


def test_gateway_ends_with_a_node_that_is_killed(with_http: Node) -> None:
    assert get(with_http.http + "/healthz")[0] == 200
    child = gateway_pid(with_http)
    with_http.kill()
    eventually(lambda: not is_alive(child), "the gateway outlives its node")


def test_gateway_ends_with_a_node_that_is_killed_before_the_gateway_serves(with_http: Node) -> None:
    child = gateway_pid(with_http)
    with_http.kill()
    eventually(lambda: not is_alive(child), "the gateway outlives its node")


def test_node_that_was_killed_comes_back_with_its_gateway_on_the_same_port(with_http: Node) -> None:
    url = with_http.http
    assert get(url + "/healthz")[0] == 200  # one that is still starting keeps the port until it has
    with_http.kill()
    with_http.start()
    assert with_http.http == url
    assert_ready(url)


def test_gateway_ends_before_its_node_and_both_end_well(with_http: Node) -> None:
    assert get(with_http.http + "/healthz")[0] == 200
    child = gateway_pid(with_http)
    with_http.stop()
    assert not is_alive(child)
    assert refuses(with_http.http)
    assert "starting it again" not in with_http.log_file.read_text()


def test_port_that_somebody_chose_and_is_taken_refuses_the_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [*SERVE, "--data", str(tmp_path), "--kafka", "127.0.0.1:0", "--http", address]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert refused.returncode == 1
    assert f"can't listen on {address} for HTTP" in refused.stderr
    assert "--no-http" in refused.stderr
    assert "Traceback" not in refused.stderr


def take_port(port: int, stack: contextlib.ExitStack) -> None:
    """If it is taken by somebody else who keeps it, all the better."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return
        time.sleep(0.05)


def test_default_port_that_is_taken_costs_http_only(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    with contextlib.ExitStack() as stack:
        take_port(8080, stack)
        command = [*SERVE, "--data", str(tmp_path / "data"), "--kafka", "127.0.0.1:0"]
        serving = stack.enter_context(
            subprocess.Popen([*command, "--ready-file", str(ready)], stderr=subprocess.PIPE, text=True)
        )
        stack.callback(serving.kill)
        eventually(ready.exists, "the node does not start")
        assert "http" not in json.loads(ready.read_text())
        serving.terminate()
        _, said = serving.communicate(timeout=PATIENCE_S)
    assert serving.returncode == 0
    assert "HTTP is off: port 8080 is taken" in said


def test_files_where_the_node_is_started_are_not_run(tmp_path: Path) -> None:
    """`python -m` looks for modules in the working directory first."""
    (tmp_path / "http.py").write_text("raise SystemExit('run by mistake')")
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-P", "-m", "postroad", "serve", "--data", str(tmp_path / "data")]
    command += ["--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", str(ready)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as serving:
        try:
            eventually(ready.exists, "the node does not start")
            url = f"http://{json.loads(ready.read_text())['http']}"
            assert get(f"{url}/healthz") == (200, "alive\n")
        finally:
            serving.terminate()


def test_gateway_alone_says_where_it_is_and_ends_well_on_sigterm(broker: Node, tmp_path: Path) -> None:
    with alone(tmp_path, "--bootstrap", broker.bootstrap) as gateway:
        url = url_of(tmp_path)
        assert_ready(url)
        assert json.loads((tmp_path / "gateway.json").read_text())["pid"] == gateway.pid
        gateway.send_signal(signal.SIGTERM)
        said, _ = gateway.communicate(timeout=PATIENCE_S)
    assert gateway.returncode == 0
    assert said == f"postroad gateway is ready: {url}\n"


def test_gateway_waits_for_nodes_that_are_not_there_yet(tmp_path: Path) -> None:
    with node() as running:
        running.stop()
        with alone(tmp_path, "--bootstrap", running.bootstrap) as gateway:
            assert gateway.stderr is not None
            assert "no node answers" in gateway.stderr.readline()
            running.start()
            assert_ready(url_of(tmp_path))


def test_gateway_that_waits_for_nodes_can_be_stopped(tmp_path: Path) -> None:
    with alone(tmp_path, "--bootstrap", "127.0.0.1:1") as gateway:
        assert gateway.stderr is not None
        gateway.stderr.readline()
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait(PATIENCE_S) == 0


def test_gateway_says_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    for arguments, code, words in (
        (["--bootstrap", "127.0.0.1:0"], 2, "is not host:port"),
        (["--http", "0.0.0.0:0"], 1, "others could connect"),
        (["--set", "http.enabled=false", "--http", "0.0.0.0:0"], 1, "others could connect"),
        (["--insecure", "--http", "256.0.0.1:80"], 1, "can't listen on 256.0.0.1:80: Name or service"),
    ):
        done = subprocess.run([*GATEWAY, *arguments], capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == code
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_idle_connections_do_not_hold_up_the_end(with_http: Node) -> None:
    def took_s() -> float:
        """From SIGTERM to the end of the node."""
        if not with_http.is_running:
            with_http.start()
        with connect(with_http.http) as idle:
            ask_for_health(idle)
            began = time.monotonic()
            with_http.stop()
            took = time.monotonic() - began
            assert idle.recv(1000) == b""
        return took

    assert any(took_s() < GRACE_S for _ in range(3)), "each time its connection was waited for"


def test_long_poll_is_answered_empty_when_the_gateway_ends(with_http: Node) -> None:
    sqs = boto3.client(
        "sqs",
        endpoint_url=with_http.http,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )
    url = sqs.create_queue(QueueName="waited-for")["QueueUrl"]
    assert 'dialect="sqs",action="CreateQueue",status="200"} 1' in get(with_http.http + "/metrics")[1]
    with ThreadPoolExecutor() as threads:
        polls = [threads.submit(sqs.receive_message, QueueUrl=url, WaitTimeSeconds=20) for _ in range(3)]
        waiting = "postroad_http_requests_in_flight 4"  # they, and the one that asks
        eventually(lambda: waiting in get(with_http.http + "/metrics")[1], "they don't wait")
        began = time.monotonic()
        with_http.stop()
        assert time.monotonic() - began < 15
        for poll in polls:
            assert poll.result(PATIENCE_S).get("Messages", []) == []


def test_requests_while_gateways_die_are_answered_by_the_next(with_http: Node) -> None:
    """Connections that wait in the socket's queue belong to whoever comes."""
    assert get(with_http.http + "/healthz")[0] == 200
    first = gateway_pid(with_http)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_alive(first), "it outlives SIGKILL")
    answers: list[int] = []
    asking = [
        threading.Thread(target=lambda: answers.append(get(with_http.http + "/healthz")[0])) for _ in range(5)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(PATIENCE_S)
    assert answers == [200] * 5


def test_child_is_told_its_settings_and_nothing_else_of_ours() -> None:
    settings = Settings.of(http_port=0, http_access_keys="id:secret", logging_level="debug", kafka_port=1234)
    ours = {"PATH": "/bin", "POSTROAD_CONFIG": "x", "POSTROAD_HTTP_PORT": "99"}
    given = child_environment(ours, settings_of(settings))
    assert given["PATH"] == "/bin"
    assert "POSTROAD_CONFIG" not in given
    assert "POSTROAD_KAFKA_PORT" not in given
    heard = load(environment=given).settings
    assert heard.http == settings.http
    assert heard.logging == settings.logging
