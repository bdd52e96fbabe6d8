"""`postroad serve --nodes`: several nodes below one process, which outlive a kill, but not their parent."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from postroad.cli import main
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
