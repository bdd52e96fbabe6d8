"""The commands on three nodes: partitions that different nodes lead, and one node that is dead."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.testing import RunningCluster, cluster
from tests.clients.wait import until

from .conftest import PATIENCE_S, read_json

MESSAGES = [str(number) for number in range(12)]
SETTINGS = {"topics.replicas": 3, "topics.partitions": 3}


class Shell:
    """Commands against the cluster."""

    def __init__(self, running: RunningCluster) -> None:
        self._environment = {"POSTROAD_BOOTSTRAP": running.bootstrap}

    def __call__(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(main, list(arguments), env=self._environment)
        assert result.exit_code == code, f"{arguments}: {result.output}\n{result.exception!r}"
        return result

    def consume(self, count: int) -> list[str]:
        """Take and accept that many messages of the subscription; their values."""
        options = ["--max", str(count), "--wait", "60s"]
        return sorted(self("subscription", "consume", "workers", *options).stdout.split(), key=int)

    def lag(self) -> int:
        described = read_json(self("subscription", "describe", "workers", "--json").stdout)
        return sum(int(position["lag"]) for position in described["partitions"])

    def letters(self) -> int:
        """How many dead letters there ever were."""
        described = read_json(self("topic", "describe", "workers.dead", "--json").stdout)
        return sum(int(partition["end"]) for partition in described["partitions"])


def publish(shell: Shell) -> None:
    """Four messages to each partition."""
    for partition in range(3):
        shell("publish", "jobs", "-p", str(partition), *MESSAGES[4 * partition : 4 * partition + 4])


def work_with_a_subscription(shell: Shell) -> None:
    publish(shell)
    assert shell.lag() == 12
    assert len(shell("subscription", "peek", "workers", "-n", "100").stdout.splitlines()) == 1 + 12
    assert shell.consume(12) == MESSAGES
    assert shell.lag() == 0
    shell("subscription", "seek", "workers", "--to", "-2")
    assert shell.lag() == 6
    shell("subscription", "purge", "workers", "--yes")
    assert shell.lag() == 0
    publish(shell)
    letters = shell.letters() + len(MESSAGES)
    shell("subscription", "consume", "workers", "--max", "12", "--wait", "60s", "--ack", "reject")
    until(lambda: shell.letters() == letters, "all letters are copied", PATIENCE_S)
    redriven = shell("redrive", "workers")
    assert "12" in redriven.output
    assert shell.consume(12) == MESSAGES


def work_with_a_group(shell: Shell, group: str) -> None:
    shell("consume", "jobs", "--group", group, "--count", "5")
    described = read_json(shell("group", "describe", group, "--json").stdout)
    assert len(described["partitions"]) == 3
    shell("group", "reset", group, "--to", "beginning")
    shell("consume", "jobs", "--group", group, "--count", "5")
    assert group in shell("group", "list").stdout


def test_commands_work_on_three_nodes_and_on_two_of_them(tmp_path: Path) -> None:
    with cluster(nodes=3, settings=SETTINGS, directory=tmp_path) as running:
        shell = Shell(running)
        shell("topic", "create", "jobs")
        shell("topic", "create", "workers.dead")
        shell("subscription", "create", "workers", "--topic", "jobs")
        described = read_json(shell("topic", "describe", "jobs", "--json").stdout)
        assert {partition["leader"] for partition in described["partitions"]} == {1, 2, 3}
        work_with_a_subscription(shell)
        work_with_a_group(shell, "first")
        measured = read_json(
            shell("bench", "-n", "100", "--latency-messages", "5", "-p", "3", "--json").stdout
        )
        assert measured
        running.wait_until_whole()
        assert read_json(shell("cluster", "status", "--json").stdout)["well"]

        running.node(1).kill()
        work_with_a_subscription(shell)
        work_with_a_group(shell, "second")
        described = read_json(shell("topic", "describe", "jobs", "--json").stdout)
        assert {partition["leader"] for partition in described["partitions"]} == {2, 3}
        status = read_json(shell("cluster", "status", "--json", code=1).stdout)
        assert [node["state"] for node in status["nodes"]] == ["gone", "serving", "serving"]
        assert status["without_leader"] == 0
