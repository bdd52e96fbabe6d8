"""Partitions that move: begin, change, cancel and complete, drains, and what is refused."""

from __future__ import annotations

import pytest

from postroad.cluster import keys, leadership, membership, partition_rules
from postroad.cluster.image import NO_LEADER, Image
from postroad.cluster.keys import SERVING, STARTING, PartitionState
from postroad.cluster.reassignment import (
    added,
    begin,
    cancel,
    cancel_of,
    check,
    complete,
    evacuate,
    finish,
    has_arrived,
    is_moving,
    may_complete,
    original,
    reassign,
    stuck,
)
from postroad.cluster.store import Event
from postroad.errors import (
    ApiError,
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from tests.cluster.applied import commit
from tests.cluster.replicas import TOPIC, commit_all, image_of, only_state, state, states_of

FIVE = dict.fromkeys(range(1, 6), SERVING)


def moving(
    *states: PartitionState, level: int = keys.LEVEL, nodes: dict[int, str] = FIVE, **more: str
) -> Image:
    image = image_of(*states, nodes=nodes, racks={int(node[1:]): rack for node, rack in more.items()})
    image.apply([Event(keys.LEVEL_KEY, keys.encode(keys.LevelValue(level)), 2)])
    return image


def begun(before: PartitionState, *wanted: int) -> PartitionState:
    image = moving(before)
    commit_all(image, reassign(image, 1, {(TOPIC, 0): wanted}))
    return only_state(image)


WHOLE = state(1, [1, 2, 3])
UNDER_WAY = PartitionState(1, 5, (4, 2, 3, 1), (1, 2, 3), (), (4,), (1,), False, (1, 2, 3))
ARRIVED = PartitionState(1, 5, (4, 2, 3, 1), (1, 2, 3, 4), (), (), (1,), False, (1, 2, 3))


def test_new_replicas_are_added_before_old_ones_go() -> None:
    assert begun(WHOLE, 4, 2, 3) == UNDER_WAY
    assert not has_arrived(UNDER_WAY)
    assert has_arrived(ARRIVED)


def test_another_order_is_no_move() -> None:
    changed = begun(WHOLE, 3, 1, 2)
    assert changed.replicas == (3, 1, 2)
    assert not is_moving(changed)


def test_what_is_asked_for_twice_changes_nothing() -> None:
    image = moving(UNDER_WAY)
    assert reassign(image, 1, {(TOPIC, 0): (4, 2, 3)}) == []


def test_a_move_that_goes_elsewhere_drops_what_has_not_joined_and_knows_where_it_began() -> None:
    changed = begun(UNDER_WAY, 5, 2, 3)
    assert changed.replicas == (5, 2, 3, 1)
    assert changed.adding == (5,)
    assert original(changed) == (1, 2, 3)
    joined = begun(ARRIVED, 5, 2, 3)
    assert joined.replicas == (5, 2, 3, 4, 1)
    assert joined.removing == (4, 1)


def test_a_cancelled_move_ends_where_it_began() -> None:
    image = moving(UNDER_WAY)
    commit_all(image, reassign(image, 1, {(TOPIC, 0): None}))
    assert only_state(image) == WHOLE
    image = moving(ARRIVED)
    commit_all(image, reassign(image, 1, {(TOPIC, 0): None}))
    commit_all(image, finish(image, 1))
    assert only_state(image).replicas == (1, 2, 3)
    assert set(only_state(image).isr) == {1, 2, 3}
    assert not is_moving(only_state(image))


def test_a_leader_that_a_cancelled_move_had_added_stays_until_it_has_handed_over() -> None:
    led_by_new = PartitionState(4, 6, (4, 2, 3, 1), (1, 2, 3, 4), (), (), (1,), False, (1, 2, 3))
    image = moving(led_by_new)
    commit_all(image, reassign(image, 1, {(TOPIC, 0): None}))
    assert finish(image, 1) == []
    (move,) = leadership.leaving_moves(image, 4)
    assert move.to == 1
    commit_all(image, leadership.resign(image, 4, [move]))
    commit_all(image, finish(image, 1))
    assert only_state(image).replicas == (1, 2, 3)


def test_a_move_completes_when_all_that_it_adds_are_in_sync_and_one_that_stays_leads() -> None:
    image = moving(UNDER_WAY)
    assert finish(image, 1) == []
    image = moving(ARRIVED)
    assert finish(image, 1) == [], "its leader leaves"
    (move,) = leadership.leaving_moves(image, 1)
    assert (move.to, move.leader_epoch) == (4, 5)
    commit_all(image, leadership.resign(image, 1, [move]))
    commit_all(image, finish(image, 1))
    assert only_state(image) == PartitionState(4, 6, (4, 2, 3), (2, 3, 4))
    assert finish(image, 1) == []


def test_a_new_replica_that_has_fallen_behind_again_is_waited_for() -> None:
    behind = PartitionState(2, 5, (4, 2, 3, 1), (1, 2, 3), (), (), (1,), False, (1, 2, 3))
    assert added(behind) == (4,)
    assert finish(moving(behind), 1) == []


def test_nobody_goes_while_too_few_of_those_that_stay_are_in_sync() -> None:
    shrinking = PartitionState(2, 5, (2, 3, 1), (1, 2), (), (), (1,), False, (1, 2, 3))
    image = image_of(shrinking, nodes=FIVE, config={"min.insync.replicas": "2"})
    topic = image.topics["orders"]
    assert not may_complete(topic, shrinking)
    assert finish(image, 1) == []


def test_a_move_of_a_partition_without_a_leader_waits_for_one() -> None:
    leaderless = PartitionState(NO_LEADER, 5, (2, 3, 1), (1, 2, 3), (), (), (1,), False, (1, 2, 3))
    assert finish(moving(leaderless), 1) == []
    dead = PartitionState(2, 5, (2, 3, 1), (1, 2, 3), (), (), (1,), False, (1, 2, 3))
    assert finish(moving(dead, nodes={1: SERVING, 3: SERVING}), 1) == []


def test_a_partition_of_one_replica_does_not_stand_still_while_it_moves() -> None:
    image = moving(state(1, [1], replicas=[1]))
    topic = image.topics["orders"]
    one = topic.partitions[0]
    there = begin(topic, one, (2,))
    assert partition_rules.min_insync(topic, there) == 1
    joined = partition_rules.join(topic, there, [2])
    assert partition_rules.min_insync(topic, joined) == 1
    handed_over = partition_rules.resign(topic, joined, 2, partition_rules.Standing.STAYS)
    assert complete(topic, handed_over) == state(2, [2], replicas=[2], epoch=6)


def test_the_least_that_must_be_in_sync_is_the_same_before_in_and_after_a_move() -> None:
    image = moving(WHOLE)
    topic = image.topics["orders"]
    states = [WHOLE, UNDER_WAY, ARRIVED, complete(topic, ARRIVED)]
    assert [partition_rules.min_insync(topic, each) for each in states] == [2, 2, 2, 2]


def test_only_the_controller_completes_and_evacuates() -> None:
    ready = PartitionState(2, 5, (4, 2, 3, 1), (1, 2, 3, 4), (), (), (1,), False, (1, 2, 3))
    image = moving(ready)
    commit(image, membership.drain(image, 3))
    assert finish(image, 2) == []
    assert evacuate(image, 2) == []
    (decision,) = finish(image, 1)
    assert keys.CONTROLLER in {compare.key for compare in decision.compares}


@pytest.mark.parametrize(
    ("index", "wanted", "error"),
    [
        (1, (1,), UnknownTopicOrPartition),
        (0, (), InvalidReplicaAssignment),
        (0, (2, 2), InvalidReplicaAssignment),
        (0, (9, 2), InvalidReplicaAssignment),
        (0, (4, 2), InvalidReplicaAssignment),
        (0, None, NoReassignmentInProgress),
    ],
)
def test_what_can_not_be_moved_is_refused(
    index: int, wanted: tuple[int, ...] | None, error: type[ApiError]
) -> None:
    image = moving(WHOLE, nodes=FIVE | {4: STARTING})
    with pytest.raises(error):
        check(image, image.topics["orders"], index, wanted)


def test_nothing_moves_while_a_node_of_an_older_version_is_there() -> None:
    image = moving(WHOLE, level=keys.MOVES_LEVEL - 1)
    commit(image, membership.drain(image, 3))
    with pytest.raises(PolicyViolation):
        check(image, image.topics["orders"], 0, (4, 2, 3))
    assert evacuate(image, 1) == []


# --- drains and losses -------------------------------------------------------------------------------


def test_a_drained_node_is_replaced_in_its_place_whether_it_lives_or_not() -> None:
    for nodes in (FIVE, {node: said for node, said in FIVE.items() if node != 3}):
        image = moving(WHOLE, nodes=nodes)
        commit(image, membership.drain(image, 3))
        commit_all(image, evacuate(image, 1))
        assert only_state(image).target == (1, 2, 4)
        assert only_state(image).removing == (3,)
        assert evacuate(image, 1) == []


def test_a_lost_node_is_replaced_as_a_drained_one_is() -> None:
    image = moving(WHOLE, nodes={node: said for node, said in FIVE.items() if node != 3})
    assert evacuate(image, 1) == []
    commit_all(image, evacuate(image, 1, lost={3}))
    assert only_state(image).target == (1, 2, 4)


def test_a_new_replica_whose_node_is_lost_is_replaced() -> None:
    image = moving(UNDER_WAY, nodes={node: said for node, said in FIVE.items() if node != 4})
    commit_all(image, evacuate(image, 1, lost={4}))
    assert only_state(image) == WHOLE, "by one that has all of it, if it may stay"
    commit_all(image, reassign(image, 2, {(TOPIC, 0): (4, 2, 3)}))
    commit(image, membership.drain(image, 1))
    commit_all(image, evacuate(image, 1, lost={4}))
    assert only_state(image).target == (5, 2, 3)
    assert original(only_state(image)) == (1, 2, 3)


def test_a_replacement_is_in_another_rack_and_on_the_emptiest_node() -> None:
    image = moving(WHOLE, n1="a", n2="b", n3="c", n4="a", n5="c")
    commit(image, membership.drain(image, 3))
    commit_all(image, evacuate(image, 1))
    assert only_state(image).target == (1, 2, 5)


def test_a_few_partitions_are_evacuated_at_a_time() -> None:
    image = moving(*[WHOLE] * 30)
    commit(image, membership.drain(image, 3))
    commit_all(image, evacuate(image, 1, limit=20))
    assert sum(is_moving(each) for each in states_of(image)) == 20
    assert evacuate(image, 1, limit=20) == []
    targets = [node for each in states_of(image) for node in each.adding]
    assert targets.count(4) == targets.count(5) == 10


def test_new_replicas_whose_node_has_died_hold_up_no_others() -> None:
    """Until it is back, or lost, which takes half an hour."""
    image = moving(WHOLE, WHOLE, WHOLE)
    commit(image, membership.drain(image, 3))
    commit_all(image, evacuate(image, 1, limit=1))
    (dead,) = states_of(image)[0].adding
    image.apply([Event(f"nodes/{dead}", None, image.revision + 1)])
    commit_all(image, evacuate(image, 1, limit=1))
    assert [is_moving(each) for each in states_of(image)] == [True, True, False]
    assert evacuate(image, 1, limit=1) == []


def test_partitions_that_nobody_can_copy_hold_up_no_others() -> None:
    dead = state(3, [3], replicas=[3])
    image = moving(*[dead] * 3, WHOLE, nodes={node: said for node, said in FIVE.items() if node != 3})
    commit(image, membership.drain(image, 3))
    commit_all(image, evacuate(image, 1, limit=1))
    assert [is_moving(each) for each in states_of(image)] == [False, False, False, True]


def test_a_replica_that_can_go_nowhere_stays_and_is_named() -> None:
    image = moving(WHOLE, nodes=dict.fromkeys((1, 2, 3), SERVING))
    commit(image, membership.drain(image, 3))
    assert evacuate(image, 1) == []
    assert [(topic.name, index) for topic, index in stuck(image, 3)] == [("orders", 0)]
    assert stuck(moving(WHOLE), 3) == []


def test_a_partition_that_only_a_dead_node_has_stays_and_is_named() -> None:
    alone, covered = state(3, [3], replicas=[3]), state(1, [1, 3], replicas=[1, 3])
    alive = moving(alone, covered)
    commit(alive, membership.drain(alive, 3))
    assert stuck(alive, 3) == []
    dead = moving(alone, covered, nodes={node: said for node, said in FIVE.items() if node != 3})
    assert [(topic.name, index) for topic, index in stuck(dead, 3)] == [("orders", 0)]


def test_a_cancelled_drain_takes_back_the_moves_that_have_begun() -> None:
    image = moving(WHOLE, state(4, [4, 5], replicas=[4, 5]))
    commit(image, membership.drain(image, 3))
    commit_all(image, evacuate(image, 1))
    commit(image, membership.cancel_drain(image, 3))
    commit_all(image, cancel_of(image, 2, 3))
    assert states_of(image) == [WHOLE, state(4, [4, 5], replicas=[4, 5])]


def test_a_drained_leader_hands_over_before_its_partitions_have_moved() -> None:
    image = moving(state(3, [1, 2, 3]))
    commit(image, membership.drain(image, 3))
    (move,) = leadership.leaving_moves(image, 3)
    assert move.to == 1


def test_cancel_of_a_state_that_an_older_version_wrote_drops_what_never_joined() -> None:
    growing = state(1, [1], replicas=[1, 2], adding=[2])
    topic = moving(growing).topics["orders"]
    assert cancel(topic, growing) == state(1, [1], replicas=[1])
