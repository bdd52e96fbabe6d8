"""L12: the replicas of stopped nodes hold the same bytes."""

from __future__ import annotations

import json

from click.testing import CliRunner

from postroad.cli import main
from postroad.testing import RunningCluster

from .load import PARTITIONS


def assert_equal_at_rest(running: RunningCluster, replicas: int = 3) -> None:
    """All logs of the nodes, which are stopped, have so many replicas, equal up to the same end."""
    directories = [str(node.data_dir) for node in running.nodes]
    compared = CliRunner().invoke(main, ["log", "compare", "--json", *directories])
    assert compared.exit_code == 0, compared.output
    logs = json.loads(compared.stdout)["logs"]
    assert len(logs) >= PARTITIONS
    assert all(log["replicas"] == replicas for log in logs)
