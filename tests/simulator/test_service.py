"""A node that somebody keeps running: what of it clients may still hear from."""

from __future__ import annotations

from simulator.scenario import Scenario
from simulator.workloads.recreated import Recreated

START_S = 3.0
LEFT_S = 1.0  # a node that can't reach the store takes longer to stop


def test_a_node_that_stops_counts_among_those_that_answer() -> None:
    """It may not have heard what has changed meanwhile: whoever asks it is told what was."""
    scenario = Scenario(1, [Recreated], nodes=3, plan=[])
    with scenario.world:
        for service in scenario.services:
            service.start()
        scenario.world.run_for(START_S)
        stage, first, second = scenario._stages[0], *scenario.services[:2]
        scenario.store.cut(first.machine.host)
        cut_at = scenario.world.now
        scenario.world.run_for(LEFT_S)
        second.kill()  # its lease ends, which the store's image says
        scenario.world.run_for(START_S)
        first.stop()
        scenario.world.run_for(LEFT_S)
        assert first.answers
        assert not first.serves
        assert stage.told_until() < cut_at + LEFT_S + START_S
        scenario.store.heal()
        scenario.world.run_until(lambda: not first.answers, 60.0)
