"""`postroad serve --nodes`: several nodes below one process, which outlive a kill, but not their parent."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.client import Client
from postroad.testing import node
from tests.clients import wait

PATIENCE_S = 90.0
until = partial(wait.until, patience_s=PATIENCE_S)


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@contextmanager
def served(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], list[str]]]:
    """The process that has started the nodes, and the address of each, once they serve."""
    ready = home / "ready.json"
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "postroad", "serve", "--data", str(home / "data"), *options]
    command += ["--kafka", "127.0.0.1:0", "--no-http", "--ready-file", str(ready)]
    with (home / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            until(lambda: ready.exists() or running.poll() is not None, "the nodes are ready")
            assert running.poll() is None, (home / "log").read_text()
            yield running, json.loads(ready.read_bytes())["kafka"].split(",")
        finally:
            running.kill()


def pid_of(home: Path, number: int) -> int:
    return int((home / f"data/node-{number}/lock").read_text())


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nodes_share_the_work_outlive_a_kill_and_end_with_their_parent(tmp_path: Path) -> None:
    with served(tmp_path, "--nodes", "2", "--replicas", "2") as (parent, addresses):
        first, second = addresses
        call("publish", "orders", "one", "two", "three", "-b", ",".join(addresses))
        described = json.loads(call("topic", "describe", "orders", "--json", "-b", first).stdout)
        assert [sorted(part["replicas"]) for part in described["partitions"]] == [[1, 2], [1, 2]]
        assert sorted(part["leader"] for part in described["partitions"]) == [1, 2]
        killed = pid_of(tmp_path, 2)
        os.kill(killed, signal.SIGKILL)
        until(lambda: pid_of(tmp_path, 2) != killed, "the node is started again")
        until(lambda: CliRunner().invoke(main, ["topic", "list", "-b", second]).exit_code == 0, "it serves")
        assert "node 2 ended with code -9; starting it again" in (tmp_path / "log").read_text()
        children = [pid_of(tmp_path, number) for number in (1, 2)]
        parent.kill()
        until(lambda: not any(map(is_alive, children)), "children end with their parent")
    with served(tmp_path, "--nodes", "2", "--replicas", "2") as (parent, addresses):
        consumed = call("consume", "orders", "-n", "3", "-b", ",".join(addresses)).stdout
        assert sorted(consumed.split()) == ["one", "three", "two"]
        parent.send_signal(signal.SIGTERM)
        assert parent.wait(PATIENCE_S) == 0
    compared = call("log", "compare", str(tmp_path / "data"), "--json")
    logs = {(log["topic"], log["log"]): log for log in json.loads(compared.stdout)["logs"]}
    assert logs["orders", "messages"]["equal"]
    refused = call("serve", "--data", str(tmp_path / "data"), code=1).stderr
    assert "holds a cluster of several nodes. Start it with --nodes" in refused
    refused = call("serve", "--nodes", "1", "--data", str(tmp_path / "data"), code=1).stderr
    assert "holds a cluster of 2 nodes. Start it with --nodes 2 or more" in refused


def test_a_node_that_can_not_start_ends_all_with_an_error(tmp_path: Path) -> None:
    with node() as taken:
        port = int(taken.bootstrap.rpartition(":")[2]) - 1  # one of the nodes finds its port taken
        command = [sys.executable, "-m", "postroad", "serve", "--nodes", "2", "--no-http"]
        command += ["--kafka", f"127.0.0.1:{port}", "--data", str(tmp_path / "data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1
    assert re.search("node [12] could not be started", done.stderr)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nodes", "2", "--replicas", "3"], "set --replicas to 2 or less"),
        (["--nodes", "2", "--store", "etcd://10.0.0.1:2379"], "Leave cluster.store out"),
        (["--nodes", "2", "--kafka", "127.0.0.1:65535"], "choose a lower one"),
    ],
    ids=lambda given: given[2] if isinstance(given, list) else "",
)
def test_what_can_not_be_is_refused_with_what_to_do(tmp_path: Path, options: list[str], said: str) -> None:
    assert said in call("serve", *options, "--data", str(tmp_path / "data"), code=1).stderr
    assert not (tmp_path / "data").exists()


def test_the_logs_of_a_single_node_are_left_alone(tmp_path: Path) -> None:
    with node(directory=tmp_path):
        pass
    refused = call("serve", "--nodes", "2", "--data", str(tmp_path / "data"), code=1).stderr
    assert "holds the logs of a single node. Start it without --nodes" in refused
    assert not (tmp_path / "data/nodes.json").exists()


def test_no_node_is_no_cluster() -> None:
    assert "is not a whole number from 1 to 100" in call("serve", "--nodes", "0", code=2).stderr


async def test_nodes_and_their_gateway_talk_with_tls(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    call("cert", "make", str(certs))
    call("cert", "make", str(certs), "--user", "shop")
    files = {"certificate": certs / "node.pem", "key": certs / "node.key", "ca": certs / "ca.pem"}
    options = ["--set=kafka.tls=true", "--set=kafka.authentication=certificate", "--set=http.tls=true"]
    options += [f"--set=tls.{name}={file}" for name, file in files.items()]
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "postroad", "serve", "--data", str(tmp_path / "data"), *options]
    command += ["--nodes", "2", "--kafka", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", str(ready)]
    with (tmp_path / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            until(lambda: ready.exists() or running.poll() is not None, "the nodes are ready")
            facts = json.loads(ready.read_bytes())
            own = f"ca={files['ca']}&certificate={certs / 'shop.pem'}&key={certs / 'shop.key'}"
            async with Client(f"tls://{facts['kafka']}?{own}") as client:
                assert await client.nodes() == [1, 2]
            context = ssl.create_default_context(cafile=str(files["ca"]))
            until(lambda: is_up(facts["url"] + "/readyz", context), "the gateway reaches its nodes")
        finally:
            running.terminate()
            running.wait(60)
    assert "shop" not in (tmp_path / "log").read_text()


def is_up(url: str, context: ssl.SSLContext) -> bool:
    try:
        return bool(urllib.request.urlopen(url, context=context, timeout=5).status == 200)
    except OSError:
        return False


def test_further_listeners_are_refused(tmp_path: Path) -> None:
    listeners = "--set=kafka.listeners=a=plain://127.0.0.1:0"
    refused = call("serve", "--nodes", "2", "--data", str(tmp_path / "data"), listeners, code=1)
    assert "Leave kafka.listeners out" in refused.output
