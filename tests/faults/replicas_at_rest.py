"""L12: the replicas of stopped nodes hold the same bytes."""

from __future__ import annotations

import json

from click.testing import CliRunner

from postroad.cli import main
from postroad.testing import RunningCluster

from .load import PARTITIONS


def assert_equal_at_rest(running: RunningCluster) -> None:
    """The replicas of all logs are equal. The nodes are stopped."""
    directories = [str(node.data_dir) for node in running.nodes]
    compared = CliRunner().invoke(main, ["log", "compare", "--json", *directories])
    logs = json.loads(compared.stdout)["logs"]
    assert len(logs) >= PARTITIONS
    assert all(log["replicas"] == len(running.nodes) for log in logs)
    unequal = [log for log in logs if not log["equal"]]
    assert unequal == []
