"""`postroad cluster chaos`: nodes are killed and paused, nothing is lost, and what would be lost is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroad.cli.chaos_run import Position, Published, findings

from .test_serve_nodes import call, served

AT = "postroad-chaos/0 offset"


def test_what_is_stored_where_it_was_said_to_be_is_well() -> None:
    stored = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (0, 2): 4}
    acknowledged = [Published(0, (0, 0)), Published(1, (1, 0)), Published(2, (0, 1))]
    assert findings(acknowledged, stored) == []


@pytest.mark.parametrize(
    ("stored", "finding"),
    [
        ({(0, 0): 0}, f"message 2 was acknowledged at {AT} 1, where nothing is"),
        ({(0, 0): 0, (0, 1): 4}, f"message 2 was acknowledged at {AT} 1, where message 4 is"),
        ({(0, 0): 0, (0, 1): 2, (0, 2): 0}, f"message 0 is at {AT} 0 and at {AT} 2"),
        ({(0, 0): 0, (0, 1): 2, (0, 2): 1}, f"message 1 at {AT} 2 comes after message 2"),
    ],
)
def test_what_is_lost_doubled_or_out_of_order_is_found(stored: dict[Position, int], finding: str) -> None:
    acknowledged = [Published(0, (0, 0)), Published(2, (0, 1))]
    assert finding in findings(acknowledged, stored)


@pytest.mark.slow
def test_three_nodes_are_killed_and_paused_and_nothing_is_lost(tmp_path: Path) -> None:
    with served(tmp_path, "--nodes", "3", "--replicas", "3") as (_, addresses):
        nodes = [f"--data={tmp_path}/data/node-{number}" for number in (1, 2, 3)]
        bootstrap = ["-b", ",".join(addresses)]
        done = call("cluster", "chaos", *nodes, "--minutes", "0.4", "--pause", "3s", "--yes", *bootstrap)
        assert "nothing was lost or doubled" in done.stdout
        assert "killing" in done.stderr
        assert "pausing" in done.stderr
        assert "postroad-chaos" not in call("topic", "list", *bootstrap).stdout
        refused = call("cluster", "chaos", f"--data={tmp_path}", "--yes", *bootstrap, code=1)
        assert "no node runs in" in refused.stderr
        call("cluster", "chaos", *nodes, *bootstrap, code=2)  # nobody agreed
