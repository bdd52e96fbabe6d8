"""What the controller decides: elections, the dead in ISRs, unclean elections, internal topics."""

from __future__ import annotations

import pytest

from postroad.cluster import membership
from postroad.cluster.config_changes import ConfigChange, ConfigOperation, alter_config, replace_config
from postroad.cluster.image import NO_LEADER, Image
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.cluster.keys import DRAINING, SERVING, STARTING, PartitionState
from postroad.cluster.partition_rules import min_insync
from postroad.cluster.reconciliation import elect_unclean, heal_internal, reconcile
from postroad.cluster.store import Event
from tests.cluster.applied import commit
from tests.cluster.replicas import THREE, TOPIC, commit_all, image_of, only_state, state, states_of


def reconciled(
    before: PartitionState, nodes: dict[int, str], config: dict[str, str] | None = None
) -> PartitionState:
    image = image_of(before, nodes=nodes, controller=9, config=config)
    commit_all(image, reconcile(image, 9))
    assert reconcile(image, 9) == [], "deciding twice changes nothing more"
    return only_state(image)


def without(*dead: int) -> dict[int, str]:
    return {node: said for node, said in THREE.items() if node not in dead}


# --- elections ---------------------------------------------------------------------------------------


def test_the_first_replica_in_sync_that_lives_is_elected_and_the_dead_leave_the_isr() -> None:
    assert reconciled(state(1, [3, 2, 1]), without(1)) == state(2, [3, 2], epoch=6)
    assert reconciled(state(NO_LEADER, [3, 2]), THREE) == state(2, [3, 2], epoch=6)


def test_a_dead_leader_stays_electable_when_too_few_are_left() -> None:
    assert reconciled(state(1, [1, 2]), without(1)) == state(2, [2], [1], epoch=6)


def test_the_elr_is_asked_when_nobody_in_sync_lives() -> None:
    assert reconciled(state(1, [1], [3, 2]), without(1)) == state(3, [3], [2, 1], epoch=6)


def test_a_leader_that_lost_its_followers_is_elected_last() -> None:
    assert reconciled(state(NO_LEADER, [], [3, 1]), THREE) == state(3, [3], [1], epoch=6)


def test_nobody_outside_isr_and_elr_is_ever_elected() -> None:
    assert reconciled(state(1, [1], [2]), without(1, 2)) == state(NO_LEADER, [1], [2], epoch=6)
    assert reconciled(state(NO_LEADER, [1], [2]), without(1, 2)) == state(NO_LEADER, [1], [2])


def test_all_replicas_of_a_dead_partition_stay_electable() -> None:
    assert reconciled(state(1, [1, 2, 3]), {4: SERVING}) == state(NO_LEADER, [1, 2, 3], epoch=6)


def test_a_leader_that_lives_is_left_alone() -> None:
    for said in (SERVING, DRAINING):
        assert reconciled(state(2, [1, 2, 3]), THREE | {2: said}) == state(2, [1, 2, 3])


def test_a_dead_follower_leaves_the_isr_behind_its_leaders_back() -> None:
    assert reconciled(state(1, [1, 2, 3]), without(3)) == state(1, [1, 2])
    assert reconciled(state(1, [1, 3]), without(3)) == state(1, [1], [3])


def test_a_node_that_starts_is_neither_elected_nor_dropped() -> None:
    starting = THREE | {1: STARTING}
    assert reconciled(state(NO_LEADER, [1, 2, 3]), starting) == state(2, [1, 2, 3], epoch=6)
    assert reconciled(state(2, [1, 2]), starting) == state(2, [1, 2])
    assert reconciled(state(1, [1, 2]), starting) == state(2, [1, 2], epoch=6)
    assert reconciled(state(1, [1]), starting) == state(1, [1])


def test_a_node_of_the_isr_that_starts_comes_before_the_elr() -> None:
    assert reconciled(state(NO_LEADER, [1], [2]), THREE | {1: STARTING}) == state(NO_LEADER, [1], [2])


def test_a_node_that_stops_leads_only_what_nobody_else_can() -> None:
    draining = THREE | {1: DRAINING}
    assert reconciled(state(NO_LEADER, [1, 2]), draining) == state(2, [1, 2], epoch=6)
    assert reconciled(state(NO_LEADER, [1]), draining) == state(1, [1], epoch=6)
    image = image_of(state(NO_LEADER, [1, 2]), controller=9)
    commit(image, membership.drain(image, 1))
    commit_all(image, reconcile(image, 9))
    assert only_state(image).leader == 2


def test_two_hundred_partitions_get_their_leaders_in_one_commit() -> None:
    image = image_of(*[state(1, [1, 2, 3])] * 200, nodes=without(1), controller=2)
    (decision,) = reconcile(image, 2)
    assert len(decision.operations) == 2
    commit(image, decision)
    assert set(states_of(image)) == {state(2, [2, 3], epoch=6)}


def test_very_many_partitions_get_their_leaders_within_the_stores_limits() -> None:
    image = image_of(*[state(1, [1, 2])] * 15_000, nodes=without(1), controller=2)
    decisions = reconcile(image, 2)
    assert len(decisions) == 2
    commit_all(image, decisions)
    assert reconcile(image, 2) == []


def test_only_some_topics_are_looked_at_if_told_so() -> None:
    image = image_of(state(1, [1, 2]), nodes=without(1), controller=2)
    assert reconcile(image, 2, []) == []
    assert len(reconcile(image, 2, [image.topics["orders"]])) == 1


# --- fences ------------------------------------------------------------------------------------------


def test_only_the_controller_decides() -> None:
    image = image_of(state(1, [1, 2]), nodes=without(1), controller=2)
    assert reconcile(image, 3) == []
    assert elect_unclean(image, 3, {(TOPIC, 0): {3: (5, 5)}}) == []
    assert heal_internal(image, 3, 3) == []


@pytest.mark.parametrize(
    "event",
    [
        Event("controller", None, 2),
        Event("controller", b'{"node":2}', 2),
        Event("nodes/1", b'{"host":"h","port":1,"incarnation":"x"}', 2),
        Event("nodes/3", b'{"host":"h","port":1,"incarnation":"x"}', 2),
        Event("partitions/AAAAAAAAAAEAAAAAAAAAAQ/0000", None, 2),
    ],
    ids=["lost its key", "claimed it anew", "the leader came back", "a dead follower came back", "changed"],
)
def test_a_controller_with_a_stale_image_writes_nothing(event: Event) -> None:
    image = image_of(state(1, [1, 2, 3]), nodes={2: SERVING}, controller=2)
    (decision,) = reconcile(image, 2)
    revisions = {key: image.key_revision(key) for key, _ in decision.compares}
    assert event.key in revisions
    assert event.revision != revisions[event.key]


# --- unclean elections -------------------------------------------------------------------------------


def test_an_unclean_election_takes_whoever_has_most_of_those_asked() -> None:
    image = image_of(state(1, [1]), nodes=without(1), controller=2)
    commit_all(image, reconcile(image, 2))
    commit_all(image, elect_unclean(image, 2, {(TOPIC, 0): {2: (4, 90), 3: (5, 10)}}))
    assert only_state(image) == state(3, [3], epoch=7)


def test_an_unclean_election_asks_for_nobody_who_is_no_replica_or_does_not_serve() -> None:
    image = image_of(state(1, [1]), nodes={2: STARTING, 4: SERVING}, controller=4)
    assert elect_unclean(image, 4, {(TOPIC, 0): {2: (5, 1), 4: (9, 9)}}) == []


@pytest.mark.parametrize("said", [SERVING, STARTING])
@pytest.mark.parametrize("found", [state(1, [1]), state(NO_LEADER, [1]), state(NO_LEADER, [], [1])])
def test_there_is_no_unclean_election_while_one_that_has_everything_lives(
    found: PartitionState, said: str
) -> None:
    image = image_of(found, nodes=THREE | {1: said}, controller=2)
    assert elect_unclean(image, 2, {(TOPIC, 0): {2: (5, 90)}}) == []


# --- min.insync.replicas -----------------------------------------------------------------------------


def lowered(image: Image, config: str) -> None:
    commit(image, alter_config(image, "orders", [ConfigChange(MIN, ConfigOperation.SET, config)]))


MIN = "min.insync.replicas"


def test_the_commit_that_lowers_the_minimum_empties_elrs_that_it_makes_needless() -> None:
    states = [state(1, [1], [2]), state(NO_LEADER, [], [1, 2]), state(1, [1, 2])]
    image = image_of(*states, config={MIN: "2"})
    lowered(image, "1")
    assert states_of(image) == [state(1, [1]), state(NO_LEADER, [], [1, 2]), state(1, [1, 2])]


def test_a_higher_minimum_changes_no_state() -> None:
    image = image_of(state(1, [1], [2]), config={MIN: "2"})
    lowered(image, "3")
    assert only_state(image) == state(1, [1], [2])


def test_a_minimum_that_is_no_longer_set_is_that_of_the_rule() -> None:
    image = image_of(state(1, [1, 2], [3]), config={MIN: "3"})
    commit(image, replace_config(image, "orders", {"retention.ms": "5"}))
    assert image.topics["orders"].config == {"retention.ms": "5", MIN: "2"}
    assert only_state(image) == state(1, [1, 2])


def test_a_state_that_was_decided_on_the_old_minimum_is_refused() -> None:
    image = image_of(state(1, [1, 2]), nodes=without(2), config={MIN: "2"})
    (stale,) = reconcile(image, 1)
    lowered(image, "1")
    assert any(image.key_revision(key) != revision for key, revision in stale.compares)
    commit_all(image, reconcile(image, 1))
    assert only_state(image) == state(1, [1])


def test_a_minimum_above_the_number_of_replicas_counts_as_that() -> None:
    two = {MIN: "5"}
    assert reconciled(state(1, [1, 2], replicas=[1, 2]), without(2), config=two) == state(
        1, [1], [2], replicas=[1, 2]
    )


# --- internal topics ---------------------------------------------------------------------------------


def healed(image: Image, target: int = 3) -> list[PartitionState]:
    commit_all(image, heal_internal(image, 1, target))
    return states_of(image, OFFSETS_TOPIC)


def test_internal_topics_get_replicas_as_nodes_come_one_at_a_time() -> None:
    alone = state(1, [1], replicas=[1])
    image = image_of(alone, alone, name=OFFSETS_TOPIC)
    states = healed(image)
    assert states == [
        state(1, [1], replicas=[1, 2], adding=[2]),
        state(1, [1], replicas=[1, 3], adding=[3]),
    ]
    assert healed(image) == states, "one step at a time"


def test_internal_topics_get_no_more_replicas_than_wanted_or_than_there_are_nodes() -> None:
    whole = state(1, [1, 2], replicas=[1, 2])
    assert healed(image_of(whole, name=OFFSETS_TOPIC), 2) == [whole]
    assert healed(image_of(whole, name=OFFSETS_TOPIC, nodes=without(3))) == [whole]
    assert healed(image_of(whole, name=OFFSETS_TOPIC, nodes=THREE | {3: DRAINING})) == [whole]
    other = image_of(whole)
    assert heal_internal(other, 1, 3) == []


def test_a_new_replica_is_of_another_rack_if_there_is_one() -> None:
    image = image_of(
        state(1, [1], replicas=[1]), name=OFFSETS_TOPIC, racks={1: "a", 2: "a", 3: "b"}, config={}
    )
    assert healed(image) == [state(1, [1], replicas=[1, 3], adding=[3])]


def test_a_replica_that_is_being_added_does_not_raise_what_must_be_in_sync() -> None:
    two = state(1, [1], replicas=[1, 2, 3], adding=[3])
    image = image_of(two, name=OFFSETS_TOPIC)
    assert min_insync(image.topics[OFFSETS_TOPIC], two) == 1
