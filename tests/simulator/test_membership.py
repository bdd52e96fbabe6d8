"""Three and five nodes on one store: seeds that hold, and mutants that the checks must see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.__main__ import main
from simulator.campaign import Campaign, play_all, play_apart
from simulator.faults import Fault

# A workload of each kind that leases matter to; campaigns draw from all of them.
CLUSTER = Campaign(nodes=3, workloads=("logs", "groups", "queues", "membership", "transactions"))
SEEDS = range(1, 9)  # tried until one shows a mutant
LONG_S = 14.0  # longer than a lease
HARDSHIPS = (
    Fault(4.0, "away", node=0, lasts=LONG_S, amount=0.5),
    Fault(8.0, "pause", node=1, lasts=6.0, amount=0.5),
    Fault(13.0, "compact", node=0, lasts=0.0, amount=0.0),
    Fault(24.0, "pause", node=2, lasts=LONG_S, amount=0.5),
    Fault(34.0, "compact", node=0, lasts=0.0, amount=0.0),
    Fault(45.0, "kill", node=0, lasts=0.0, amount=0.5),
)


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_nodes_on_one_store_hold_their_promises_whatever_happens(nodes: int) -> None:
    for result in play_all(replace(CLUSTER, nodes=nodes), [(1, None), (2, None)], 2):
        assert result.violations == [], f"seed {result.seed}"


def test_nodes_that_were_away_for_long_lose_their_leases_and_regain_them() -> None:
    result = play_apart(CLUSTER, 1, HARDSHIPS)
    assert result.violations == []
    assert result.sometimes["membership: a lease was lost and regained"] >= 2
    assert result.sometimes["history compacted"]


@pytest.mark.parametrize(
    ("mutant", "invariant"),
    [("take-any-node-id", "M2"), ("never-register-again", "M1"), ("skip-compacted-history", "M3")],
)
def test_a_mutant_of_membership_is_caught(mutant: str, invariant: str) -> None:
    campaign = replace(CLUSTER, workloads=("membership",), mutant=mutant)
    results = (play_apart(campaign, seed, HARDSHIPS) for seed in SEEDS)
    assert any(invariant in {found.invariant for found in result.violations} for result in results)


def test_a_workload_that_needs_one_node_is_refused_with_several(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--nodes", "3", "--workloads", "damaged"])
    assert ended.value.code == 2
    assert "Workload 'damaged' needs one node: leave out --nodes 3." in capsys.readouterr().err
