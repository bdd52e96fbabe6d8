"""Decisions about replicas under every fault: nothing committed is lost, and each rule is needed.

Chance takes the steps, by Hypothesis and by seeds. Then rules are taken away one by one: by a scenario, or by
seeds, it must show that something is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from postroad.cluster import (
    chunk_changes,
    config_changes,
    keys,
    leadership,
    partition_rules,
    reconciliation,
)
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.leadership import IsrChange
from postroad.cluster.store import ABSENT, Compare, Put
from tests.cluster.replication_model import OS, SYNC, Replication, Violation
from tests.cluster.replication_steps import STEPS, run
from tests.cluster.scenario import Scenario

# --- the rules as they are ---------------------------------------------------------------------------


class ReplicationMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Replication()

    @rule(name=st.sampled_from(sorted(STEPS)), data=st.data())
    def step(self, name: str, data: st.DataObject) -> None:
        take, _ = STEPS[name]
        take(self.model, lambda choices: data.draw(st.sampled_from(list(choices))))
        self.model.check()

    def teardown(self) -> None:
        self.model.heal()


TestReplicationMachine = ReplicationMachine.TestCase
TestReplicationMachine.settings = settings(
    max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_chance_loses_nothing_and_everything_becomes_whole_again(first: int) -> None:
    _run_all(range(first, first + 20))


def test_chance_commits_elects_and_uses_the_elr() -> None:
    """Otherwise the tests above would say little."""
    seen = {"committed": 0, "elections": 0, "electable": 0}

    class Watched(Replication):
        def check(self) -> None:
            super().check()
            state = self.truth.topics[OS].partitions[0]
            seen["committed"] = max(seen["committed"], len(self.committed[OS]))
            seen["elections"] = max(seen["elections"], state.leader_epoch)
            seen["electable"] += bool(state.elr)

    for seed in range(20):
        run(seed, model=Watched())
    assert seen["committed"] >= 3
    assert seen["elections"] >= 5
    assert seen["electable"] >= 20


# --- scenarios ---------------------------------------------------------------------------------------


def a_replica_that_missed_what_was_committed_since_comes_back_first() -> None:
    model = Scenario()
    model.one_and_elr()
    model.up(3)
    model.propose_joins(1, 3)
    model.deliver_all()
    model.all_learn()
    model.write()
    model.down(1, 3)
    model.up(2)
    model.ends_leaderless()


def the_last_two_replicas_lose_their_tails() -> None:
    model = Scenario()
    model.one_and_elr()
    for node in (1, 2):
        model.cut_power(model.nodes[node], lambda length: 0)
        model.down(node)
    model.heal()


def a_follower_restarts_empty_between_its_fetch_and_its_join() -> None:
    model = Scenario()
    model.led_by(1)
    model.write()
    model.down(3)
    model.govern(1)
    model.up(3)
    model.propose_joins(1, 3)
    model.cut_power(model.nodes[3], lambda length: 0)
    model.up(3)
    model.deliver_all()
    model.all_learn()
    model.down(1, 2)
    model.govern(3)


def the_minimum_is_lowered_while_a_replica_may_be_elected() -> None:
    model = Scenario()
    model.one_and_elr()
    model.change_minimum(1)
    model.all_learn()
    model.write()
    model.down(1)
    model.up(2)
    model.ends_leaderless()


def the_minimum_is_lowered_before_a_late_decision_arrives() -> None:
    model = Scenario()
    model.led_by(1)
    model.write()
    model.down(3)
    model.govern(1)
    model.down(2)
    model.learn(model.nodes[1])
    model.reconcile(model.nodes[1])
    model.change_minimum(1)
    model.deliver_all()
    model.all_learn()
    model.write()
    model.down(1)
    model.up(2)
    model.govern(2)


def a_leader_restarts_with_a_cut_tail_before_its_lease_ends() -> None:
    model = Scenario()
    model.led_by(1)
    one, two = model.nodes[1], model.nodes[2]
    model.produce(one, SYNC)
    model.send_fetch(two, SYNC)
    model.handle_fetch(two)
    model.cut_power(one, lambda length: 0)
    model.up(1)
    model.all_learn()
    model.produce(one, SYNC)
    model.check()


SCENARIOS = (
    a_replica_that_missed_what_was_committed_since_comes_back_first,
    the_last_two_replicas_lose_their_tails,
    a_follower_restarts_empty_between_its_fetch_and_its_join,
    the_minimum_is_lowered_while_a_replica_may_be_elected,
    the_minimum_is_lowered_before_a_late_decision_arrives,
    a_leader_restarts_with_a_cut_tail_before_its_lease_ends,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.__name__))
def test_nothing_is_lost_when(scenario: Callable[[], None]) -> None:
    scenario()


# --- rules taken away --------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def starting_leaders_do_not_resign(patch: pytest.MonkeyPatch) -> None:
    right = partition_rules.restart

    def restart(state: PartitionState, node: int, *, lost: bool, clean: bool) -> PartitionState:
        leads = state.leader == node and not lost and not partition_rules.is_last(state, node)
        return state if leads else right(state, node, lost=lost, clean=clean)

    patch.setattr(partition_rules, "restart", restart)


def the_elr_is_kept_when_enough_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    def elr_after(isr: Any, elr: Any, gone: Any, minimum: int) -> tuple[int, ...]:
        kept = (*elr, *gone) if len(isr) < minimum else elr
        return tuple(node for node in dict.fromkeys(kept) if node not in isr)

    patch.setattr(partition_rules, "elr_after", elr_after)


def only_the_last_of_the_isr_stays(patch: pytest.MonkeyPatch) -> None:
    def is_last(state: PartitionState, node: int) -> bool:
        return state.isr == (node,) and set(state.elr) <= {node}

    patch.setattr(partition_rules, "is_last", is_last)


def another_boot_stays_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    right = partition_rules.restart

    def restart(state: PartitionState, node: int, *, lost: bool, clean: bool) -> PartitionState:
        return right(state, node, lost=False, clean=clean)

    patch.setattr(partition_rules, "restart", restart)


def joins_do_not_compare_the_broker_epoch(patch: pytest.MonkeyPatch) -> None:
    right = leadership.change_isr

    def change_isr(image: Image, node: int, wanted: list[IsrChange]) -> list[Decision]:
        trusting = [
            msgspec.structs.replace(one, joins={joiner: image.node_epoch(joiner) for joiner in one.joins})
            for one in wanted
        ]
        return [without(decision, keys.NODES) for decision in right(image, node, trusting)]

    patch.setattr(leadership, "change_isr", change_isr)


def a_lower_minimum_keeps_the_elr(patch: pytest.MonkeyPatch) -> None:
    def none(topic: Topic) -> Iterator[Put]:
        return iter(())

    patch.setattr(config_changes, "_without_needless_elrs", none)


def an_elr_does_not_compare_the_topics_config(patch: pytest.MonkeyPatch) -> None:
    right = chunk_changes.commits

    def commits(*arguments: Any) -> list[Decision]:
        return [without(decision, keys.TOPICS) for decision in right(*arguments)]

    patch.setattr(reconciliation, "commits", commits)


def a_controller_does_not_compare_its_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "is_controller", lambda image, node: Compare("nobody", ABSENT))


def an_election_does_not_compare_who_is_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciliation, "_replaced", lambda before, after: ())


def without(decision: Decision, prefix: str) -> Decision:
    compares = [compare for compare in decision.compares if not compare.key.startswith(prefix)]
    return Decision(compares, decision.operations)


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        (starting_leaders_do_not_resign, a_leader_restarts_with_a_cut_tail_before_its_lease_ends),
        (
            the_elr_is_kept_when_enough_are_in_sync,
            a_replica_that_missed_what_was_committed_since_comes_back_first,
        ),
        (only_the_last_of_the_isr_stays, the_last_two_replicas_lose_their_tails),
        (joins_do_not_compare_the_broker_epoch, a_follower_restarts_empty_between_its_fetch_and_its_join),
        (a_lower_minimum_keeps_the_elr, the_minimum_is_lowered_while_a_replica_may_be_elected),
        (an_elr_does_not_compare_the_topics_config, the_minimum_is_lowered_before_a_late_decision_arrives),
    ],
    ids=lambda case: str(case.__name__),
)
def test_a_rule_that_is_taken_away_is_missed(
    mutant: Patch, scenario: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(Violation):
        scenario()


@pytest.mark.parametrize(
    "mutant",
    [
        another_boot_stays_in_the_isr,
        a_controller_does_not_compare_its_key,
        an_election_does_not_compare_who_is_dead,
    ],
    ids=lambda case: str(case.__name__),
)
def test_chance_finds_that_a_rule_is_missing(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(Violation):
        _run_all(range(300))


def _run_all(seeds: range) -> None:
    for seed in seeds:
        run(seed)
