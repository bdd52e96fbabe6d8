"""TLS under the simulator: what differs from seed to seed is seen, what differs from run to run is not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from simulator.conditions import Conditions
from simulator.scenario import Result, Scenario
from simulator.workloads import ALL

SECONDS = 5.0


def run(seed: int, nodes: int = 1) -> Result:
    conditions = replace(Conditions.draw(Random(seed)), tls=True)
    workloads = [ALL["logs"]]
    scenario = Scenario(seed, workloads, seconds=SECONDS, nodes=nodes, conditions=conditions)
    with scenario.world:
        return scenario.run()


@pytest.mark.slow
def test_faults_break_nothing_over_tls() -> None:
    for seed in (1, 2):
        assert run(seed).violations == []


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_over_tls() -> None:
    first, again = run(7, nodes=3), run(7, nodes=3)
    assert first.digest == again.digest
    assert first.violations == []  # replicas come into sync: nodes reach each other with TLS
