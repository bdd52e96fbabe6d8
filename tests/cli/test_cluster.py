"""`postroad cluster`, and what `topic describe` and `log compare` say of replicas, with real nodes."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.testing import cluster
from postroad.testing.process import Setting
from tests.faults.files import flip_bit, segments

from .conftest import Command, read_json


def call(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def test_status_of_a_single_node_is_well(run: Command) -> None:
    shown = run("cluster", "status").stdout.splitlines()
    assert shown[1].split() == ["NODE", "ADDRESS", "RACK", "STATE", "LEADS", "REPLICAS", "CONTROLLER"]
    assert shown[2].split()[0] == "1"
    assert shown[2].split()[3] == "serving"
    assert shown[-1].endswith("partitions: 0 without a leader, 0 under-replicated")


def test_commands_tell_of_leaders_replicas_and_a_node_that_is_down(tmp_path: Path) -> None:
    settings: dict[str, Setting] = {"topics.replicas": 2, "topics.internal_replicas": 2, "node.rack": "here"}
    with cluster(nodes=2, settings=settings, directory=tmp_path) as running:
        call("publish", "orders", *"abc", "-b", running.bootstrap)
        running.wait_until_whole()
        status = read_json(call("cluster", "status", "--json", "-b", running.bootstrap).stdout)
        assert status["well"]
        assert [(node["node"], node["rack"], node["state"]) for node in status["nodes"]] == [
            (1, "here", "serving"),
            (2, "here", "serving"),
        ]
        assert sum(node["leads"] for node in status["nodes"]) == status["partitions"]
        described = read_json(call("topic", "describe", "orders", "--json", "-b", running.bootstrap).stdout)
        (partition,) = described["partitions"]
        leader = running.leader("orders")
        assert (partition["leader"], partition["epoch"]) == (leader.id, 0)
        assert sorted(partition["replicas"]) == sorted(partition["in_sync"]) == [1, 2]

        leader.kill()
        other = running.leader("orders")
        described = read_json(call("topic", "describe", "orders", "--json", "-b", other.bootstrap).stdout)
        (partition,) = described["partitions"]
        assert (partition["leader"], partition["in_sync"]) == (other.id, [other.id])
        assert partition["epoch"] > 0
        shown = call("cluster", "status", "-b", other.bootstrap, code=1).stdout.splitlines()
        assert shown[1 + leader.id].split()[:4] == [str(leader.id), "-", "-", "gone"]
        assert shown[-1].endswith("under-replicated, 1 nodes not serving")
        leader.start()
        running.wait_until_whole()
    data = [str(node.data_dir) for node in running.nodes]
    compared = read_json(call("log", "compare", *data, "--json").stdout)
    (orders,) = [log for log in compared["logs"] if log["topic"] == described["id"]]
    assert (orders["from"], orders["up_to"], orders["equal"], orders["finding"]) == (0, 3, True, "")
    flip_bit(segments(running.nodes[0].data_dir / f"logs/{described['id']}-0")[0], 80)
    said = call("log", "compare", *data, code=1)
    assert "offset 0 differs" in said.stdout
    assert said.stderr.endswith("1 differ\n")


def test_one_directory_is_nothing_to_compare(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "logs")
    assert (
        "name the data directories of two nodes or more"
        in call("log", "compare", str(tmp_path), code=2).stderr
    )
