"""Partitions that move under every fault: nothing committed is lost, moves end, and each rule is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from postroad.cluster import chunk_changes, keys, leadership, reassignment
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from tests.cluster.moving_model import MOVES, Moving
from tests.cluster.replication_model import OS, TOPICS, Replica, Violation
from tests.cluster.replication_steps import run
from tests.cluster.scenario import Scenario

# --- the rules as they are ---------------------------------------------------------------------------


class MovingMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Moving()

    @rule(name=st.sampled_from(sorted(MOVES)), data=st.data())
    def step(self, name: str, data: st.DataObject) -> None:
        take, _ = MOVES[name]
        take(self.model, lambda choices: data.draw(st.sampled_from(list(choices))))
        self.model.check()

    def teardown(self) -> None:
        self.model.heal()


TestMovingMachine = MovingMachine.TestCase
TestMovingMachine.settings = settings(
    max_examples=25, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_chance_loses_nothing_and_every_move_ends(first: int) -> None:
    run_all(range(first, first + 20))


def test_chance_moves_cancels_and_deletes() -> None:
    """Otherwise the tests above would say little."""
    moves = cancelled = swept = 0
    for seed in range(30):
        model = Moving()
        run(seed, 150, model, MOVES)
        moves, cancelled, swept = moves + model.moves, cancelled + model.cancelled, swept + model.swept
    assert moves >= 10
    assert cancelled >= 5
    assert swept >= 15


def run_all(seeds: range) -> None:
    for seed in seeds:
        run(seed, 150, Moving(), MOVES)


# --- scenarios ---------------------------------------------------------------------------------------


class MovingScenario(Scenario, Moving):
    def move(self, *wanted: int) -> None:
        """The operator moves both partitions to these nodes; it is only begun."""
        for topic in TOPICS:
            self.reassign(self.nodes[1], topic, wanted)
        self.deliver_all()
        self.all_learn()

    def catch_up(self, leader: int, *joiners: int) -> None:
        self.write()
        for joiner in joiners:
            for topic in TOPICS:
                self.change_isr(self.nodes[leader], topic, joiner)
            self.deliver_all()
            self.all_learn()

    def govern(self, node: int) -> None:
        super().govern(node)
        self.control(self.nodes[node])
        self.deliver_all()
        self.all_learn()

    def replicas(self) -> set[tuple[int, ...]]:
        return {self.truth.topics[topic].partitions[0].replicas for topic in TOPICS}


def a_replica_is_removed_and_added_again_while_its_promise_is_remembered() -> None:
    model = MovingScenario()
    model.led_by(1)
    model.write()
    model.move(1, 2)
    model.govern(1)
    assert model.replicas() == {(1, 2)}
    model.sweep(model.nodes[3])
    model.move(1, 2, 3)
    for topic in TOPICS:
        model.change_isr(model.nodes[1], topic, 3)
    model.deliver_all()
    model.all_learn()
    model.down(1, 2)
    model.govern(3)


def a_node_that_is_drained_is_dead() -> None:
    model = MovingScenario()
    model.led_by(1)
    model.write()
    model.down(3)
    model.drain(3, cancel=False)
    model.all_learn()
    for _ in range(3):
        model.govern(1)
        model.catch_up(1, 4)
    if model.replicas() != {(1, 2, 4)}:
        raise Violation(f"the dead node was forgotten: {model.replicas()}")


def the_leader_is_moved_away() -> None:
    model = MovingScenario()
    model.led_by(1)
    model.write()
    model.move(4, 2, 3)
    model.govern(1)
    model.catch_up(1, 4)
    model.govern(1)
    assert model.truth.topics[OS].partitions[0].leader == 1, "a leader that lives hands over by itself"
    model.hand_over(model.nodes[1])
    model.all_learn()
    model.govern(1)
    assert model.replicas() == {(4, 2, 3)}
    model.led_by(4)
    model.write()


def the_new_replica_dies_before_it_has_caught_up() -> None:
    model = MovingScenario()
    model.led_by(1)
    model.write()
    model.move(4, 2, 3)
    model.down(4)
    model.govern(1)
    assert model.replicas() == {(4, 2, 3, 1)}
    model.reassign(model.nodes[1], TOPICS[0], None)
    model.reassign(model.nodes[1], TOPICS[1], None)
    model.deliver_all()
    model.all_learn()
    assert model.replicas() == {(1, 2, 3)}
    assert not any(reassignment.is_moving(t.partitions[0]) for t in model.truth.topics.values())


SCENARIOS = (
    a_replica_is_removed_and_added_again_while_its_promise_is_remembered,
    a_node_that_is_drained_is_dead,
    the_leader_is_moved_away,
    the_new_replica_dies_before_it_has_caught_up,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario.__name__))
def test_nothing_is_lost_when(scenario: Callable[[], None]) -> None:
    scenario()


# --- rules taken away --------------------------------------------------------------------------------

Patch = Callable[[pytest.MonkeyPatch], None]


def logs_are_deleted_under_the_same_broker_epoch(patch: pytest.MonkeyPatch) -> None:
    def fence(model: Moving, node: Replica) -> bool:
        return True

    patch.setattr(Moving, "fence", fence)


def drains_forget_dead_nodes(patch: pytest.MonkeyPatch) -> None:
    right = reassignment.evacuate

    def evacuate(image: Image, controller: int, lost: Collection[int] = (), limit: int = 9) -> list[Decision]:
        alive = Image()
        alive.__dict__.update(image.__dict__)
        alive.drains = {node: None for node in image.drains if node in image.nodes}
        return right(alive, controller, lost, limit)

    patch.setattr(reassignment, "evacuate", evacuate)


def moves_end_before_the_new_replicas_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reassignment, "has_arrived", lambda state: True)


def the_isr_keeps_those_that_left(patch: pytest.MonkeyPatch) -> None:
    right = reassignment.complete

    def complete(topic: Topic, state: PartitionState) -> PartitionState:
        return msgspec.structs.replace(right(topic, state), isr=state.isr)

    patch.setattr(reassignment, "complete", complete)


def a_move_names_another_leader_in_the_same_epoch(patch: pytest.MonkeyPatch) -> None:
    right = reassignment.complete

    def complete(topic: Topic, state: PartitionState) -> PartitionState:
        after = right(topic, state)
        if after.leader in after.replicas or not after.isr:
            return after
        return msgspec.structs.replace(after, leader=after.isr[0])

    def may_complete(topic: Topic, state: PartitionState) -> bool:
        return reassignment.is_moving(state) and reassignment.has_arrived(state)

    patch.setattr(reassignment, "complete", complete)
    patch.setattr(reassignment, "may_complete", may_complete)


def a_move_does_not_compare_the_state_that_it_changes(patch: pytest.MonkeyPatch) -> None:
    right = chunk_changes.commits

    def commits(*arguments: Any) -> list[Decision]:
        return [
            Decision([c for c in made.compares if not c.key.startswith(keys.PARTITIONS)], made.operations)
            for made in right(*arguments)
        ]

    patch.setattr(reassignment, "commits", commits)


def leaders_that_leave_do_not_hand_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leadership, "leaving_moves", lambda image, node: [])


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        (
            logs_are_deleted_under_the_same_broker_epoch,
            a_replica_is_removed_and_added_again_while_its_promise_is_remembered,
        ),
        (drains_forget_dead_nodes, a_node_that_is_drained_is_dead),
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
        moves_end_before_the_new_replicas_are_in_sync,
        the_isr_keeps_those_that_left,
        a_move_names_another_leader_in_the_same_epoch,
        a_move_does_not_compare_the_state_that_it_changes,
        leaders_that_leave_do_not_hand_over,
    ],
    ids=lambda case: str(case.__name__),
)
def test_chance_finds_that_a_rule_is_missing(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):  # a Violation, or an image that contradicts itself
        run_all(range(300))
