"""What a node decides about its own partitions: when it starts, leads, hands over and stops."""

from __future__ import annotations

import pytest

from postroad.cluster import keys, leadership
from postroad.cluster.image import NO_LEADER, Image
from postroad.cluster.keys import DRAINING, SERVING, STARTING, PartitionState
from postroad.cluster.leadership import IsrChange, Move
from postroad.cluster.membership import drain
from postroad.cluster.partition_rules import Standing
from postroad.cluster.store import Delete, Event, Put
from postroad.errors import ElectionNotNeeded, LeaderNotAvailable, PreferredLeaderNotAvailable
from tests.cluster.applied import commit
from tests.cluster.replicas import THREE, TOPIC, commit_all, image_of, only_state, state, states_of


def started(
    before: PartitionState, node: int = 1, *, boot: bool = True, clean: bool = False, synced: bool = False
) -> PartitionState:
    """The state after the node has started; `boot`: the machine has not been started since."""
    image = image_of(before, nodes=THREE | {node: STARTING}, controller=None)
    commit_all(
        image,
        leadership.start(image, node, same_boot=boot, clean=clean, is_synced=lambda topic: synced),
    )
    return only_state(image)


# --- start -------------------------------------------------------------------------------------------


def test_a_start_after_a_clean_stop_commits_nothing_for_partitions_without_other_replicas() -> None:
    image = image_of(*[state(1, [1], replicas=[1])] * 300, nodes={1: STARTING}, controller=None)
    assert leadership.start(image, 1, same_boot=False, clean=True, is_synced=lambda topic: False) == []


@pytest.mark.parametrize("boot", [True, False])
def test_the_only_replica_leads_under_a_new_epoch_after_an_unclean_stop(boot: bool) -> None:
    before = state(1, [1], replicas=[1])
    assert started(before, boot=boot) == state(1, [1], replicas=[1], epoch=6)


@pytest.mark.parametrize("clean", [True, False])
def test_a_leader_with_others_resigns_when_it_starts(clean: bool) -> None:
    assert started(state(1, [1, 2]), clean=clean) == state(NO_LEADER, [1, 2], epoch=6)


def test_a_leader_resigns_also_where_the_others_are_in_the_elr() -> None:
    assert started(state(1, [1], [2])) == state(NO_LEADER, [1], [2], epoch=6)


def test_a_follower_of_the_same_boot_stays_in_sync() -> None:
    assert started(state(2, [1, 2])) == state(2, [1, 2])


def test_after_another_boot_a_node_leaves_isr_and_elr_of_what_was_not_synced() -> None:
    assert started(state(2, [1, 2]), boot=False) == state(2, [2])
    assert started(state(2, [2], [1]), boot=False) == state(2, [2])
    assert started(state(1, [1, 2, 3]), boot=False) == state(NO_LEADER, [2, 3], epoch=6)
    assert started(state(1, [1], [2]), boot=False) == state(NO_LEADER, [], [2], epoch=6)


def test_after_another_boot_a_node_stays_in_sync_where_every_write_was_synced() -> None:
    assert started(state(2, [1, 2]), boot=False, synced=True) == state(2, [1, 2])
    assert started(state(1, [1, 2]), boot=False, synced=True) == state(NO_LEADER, [1, 2], epoch=6)


def test_after_a_clean_stop_another_boot_is_no_loss() -> None:
    assert started(state(2, [1, 2]), boot=False, clean=True) == state(2, [1, 2])


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "before", [state(1, [1]), state(NO_LEADER, [1]), state(NO_LEADER, [], [1])], ids=["led", "isr", "elr"]
)
def test_the_last_of_isr_and_elr_stays_whatever_it_lost(before: PartitionState, clean: bool) -> None:
    assert started(before, boot=False, clean=clean) == state(1, [1], epoch=6)


def test_two_replicas_that_lost_their_tails_leave_one_that_can_lead() -> None:
    first = started(state(NO_LEADER, [1], [2]), boot=False)
    assert first == state(NO_LEADER, [], [2])
    assert started(first, 2, boot=False) == state(2, [2], epoch=6)


def test_a_start_touches_nothing_of_others() -> None:
    before = [state(2, [2], replicas=[2]), state(NO_LEADER, [2, 3], replicas=[2, 3])]
    image = image_of(*before, controller=2)
    assert leadership.start(image, 1, same_boot=False, clean=False, is_synced=lambda topic: False) == []


def test_a_start_takes_the_controllers_key_from_its_own_dead_process() -> None:
    image = image_of(controller=1)
    (decision,) = leadership.start(image, 1, same_boot=True, clean=True, is_synced=lambda topic: True)
    assert decision.operations == [Delete(keys.CONTROLLER)]
    commit(image, decision)
    assert image.controller is None


def test_a_start_of_very_many_partitions_takes_several_commits() -> None:
    image = image_of(*[state(1, [1, 2, 3])] * 20_000, controller=None)
    decisions = leadership.start(image, 1, same_boot=True, clean=False, is_synced=lambda topic: True)
    assert len(decisions) == 2
    commit_all(image, decisions)
    assert {found.leader for found in states_of(image)} == {NO_LEADER}


def test_what_a_dead_process_sent_late_has_no_effect_on_its_successor() -> None:
    image = image_of(state(1, [1, 2]))
    (late,) = leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 1})])
    image.apply([Event("nodes/1", written_node(image, 1), 2)])
    assert any(image.key_revision(key) != revision for key, revision in late.compares)


# --- the ISR -----------------------------------------------------------------------------------------


def changed(image: Image, *wanted: IsrChange) -> PartitionState:
    commit_all(image, leadership.change_isr(image, 1, wanted))
    return states_of(image)[0]


def test_a_leader_takes_in_who_has_caught_up_in_the_order_of_the_replicas() -> None:
    image = image_of(state(1, [1, 3]))
    assert changed(image, IsrChange(TOPIC, 0, 5, joins={2: 1})) == state(1, [1, 2, 3])


def test_a_leader_drops_who_lags_and_keeps_it_electable_when_too_few_are_left() -> None:
    image = image_of(state(1, [1, 2, 3]))
    assert changed(image, IsrChange(TOPIC, 0, 5, leaves=frozenset({2}))) == state(1, [1, 3])
    assert changed(image, IsrChange(TOPIC, 0, 5, leaves=frozenset({3}))) == state(1, [1], [3])


def test_members_that_leave_at_once_are_all_electable() -> None:
    image = image_of(state(1, [1, 2, 3]))
    assert changed(image, IsrChange(TOPIC, 0, 5, leaves=frozenset({2, 3}))) == state(1, [1], [2, 3])


def test_the_elr_is_emptied_as_soon_as_enough_are_in_sync() -> None:
    image = image_of(state(1, [1], [2]))
    assert changed(image, IsrChange(TOPIC, 0, 5, joins={3: 1})) == state(1, [1, 3])


def test_the_elr_stays_while_too_few_are_in_sync() -> None:
    four = {"min.insync.replicas": "3"}
    image = image_of(state(1, [1], [2], replicas=[1, 2, 3, 4]), config=four, nodes=THREE | {4: SERVING})
    after = changed(image, IsrChange(TOPIC, 0, 5, joins={3: 1}))
    assert after == state(1, [1, 3], [2], replicas=[1, 2, 3, 4])


def test_a_leader_never_drops_itself() -> None:
    image = image_of(state(1, [1, 2]))
    assert leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, leaves=frozenset({1, 9}))]) == []


@pytest.mark.parametrize("epoch", [4, 6])
def test_only_the_leader_of_that_epoch_changes_the_isr(epoch: int) -> None:
    image = image_of(state(1, [1, 2]))
    assert leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, epoch, joins={3: 1})]) == []
    assert leadership.change_isr(image, 2, [IsrChange(TOPIC, 0, 5, joins={3: 1})]) == []


@pytest.mark.parametrize("said", [STARTING, DRAINING, None])
def test_a_node_that_does_not_serve_joins_no_isr(said: str | None) -> None:
    nodes = {node: what for node, what in (THREE | {3: said}).items() if what}
    image = image_of(state(1, [1, 2]), nodes=nodes)
    assert leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 1})]) == []


def test_a_node_that_is_to_be_emptied_joins_an_isr_and_leads_nothing_by_it() -> None:
    """What nobody else can take stays there, and is no copy less when the node has been restarted."""
    image = image_of(state(1, [1, 2]))
    commit(image, drain(image, 3))
    (decision,) = leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 1})])
    commit(image, decision)
    assert [found.isr for found in states_of(image)] == [(1, 2, 3)]
    assert leadership.drain_moves(image, 1) == [Move(TOPIC, 0, 5, 2)]


def test_a_join_of_a_node_that_has_registered_anew_is_refused() -> None:
    image = image_of(state(1, [1, 2]))
    (decision,) = leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 1})])
    image.apply([Event("nodes/3", written_node(image, 3), 2)])
    assert image.node_epoch(3) == 2
    assert any(image.key_revision(key) != revision for key, revision in decision.compares)
    assert leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 1})]) == []
    assert len(leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, joins={3: 2})])) == 1


def test_several_partitions_change_in_one_commit() -> None:
    image = image_of(*[state(1, [1, 2])] * 250)
    wanted = [IsrChange(TOPIC, index, 5, joins={3: 1}) for index in (0, 99, 100, 249)]
    (decision,) = leadership.change_isr(image, 1, wanted)
    assert len(decision.operations) == 3
    commit(image, decision)
    assert [index for index, found in enumerate(states_of(image)) if 3 in found.isr] == [0, 99, 100, 249]


def test_a_partition_that_is_gone_is_left_out() -> None:
    image = image_of(state(1, [1, 2]))
    wanted = [IsrChange(b"x" * 16, 0, 5, joins={3: 1}), IsrChange(TOPIC, 700, 5, joins={3: 1})]
    assert leadership.change_isr(image, 1, wanted) == []


def test_a_replica_that_was_being_added_is_a_full_one_when_it_has_joined() -> None:
    image = image_of(state(1, [1], replicas=[1, 2], adding=[2]))
    assert changed(image, IsrChange(TOPIC, 0, 5, joins={2: 1})) == state(1, [1, 2], replicas=[1, 2])


def test_what_keeps_an_elr_compares_the_config_that_it_was_decided_on() -> None:
    image = image_of(state(1, [1, 2, 3]))
    enough, few = (
        leadership.change_isr(image, 1, [IsrChange(TOPIC, 0, 5, leaves=leaves)])[0]
        for leaves in (frozenset({2}), frozenset({2, 3}))
    )
    assert "topics/orders" not in [compare.key for compare in enough.compares]
    assert "topics/orders" in [compare.key for compare in few.compares]


# --- handing over ------------------------------------------------------------------------------------


def resigned(
    before: PartitionState, to: int, standing: Standing = Standing.STAYS, nodes: dict[int, str] = THREE
) -> PartitionState:
    image = image_of(before, nodes=nodes)
    commit_all(image, leadership.resign(image, 1, [Move(TOPIC, 0, 5, to)], standing))
    return only_state(image)


def test_a_leader_hands_over_to_a_named_member_of_the_isr() -> None:
    assert resigned(state(1, [1, 2]), 2) == state(2, [1, 2], epoch=6)
    assert resigned(state(1, [1, 2]), 2, Standing.LEAVES) == state(2, [2], [1], epoch=6)
    assert resigned(state(1, [1, 2, 3]), 2, Standing.LEAVES) == state(2, [2, 3], epoch=6)


def test_where_the_named_one_cannot_lead_the_controller_elects() -> None:
    assert resigned(state(1, [1, 2]), 3) == state(NO_LEADER, [1, 2], epoch=6)
    assert resigned(state(1, [1, 2]), 1) == state(NO_LEADER, [1, 2], epoch=6)
    gone = {1: SERVING, 3: SERVING}
    assert resigned(state(1, [1, 2, 3]), 2, nodes=gone) == state(NO_LEADER, [1, 2, 3], epoch=6)


def test_a_leader_that_lost_its_followers_moves_to_the_end_of_the_elr() -> None:
    assert resigned(state(1, [1], [3, 2]), NO_LEADER, Standing.LEAVES) == state(
        NO_LEADER, [], [3, 2, 1], epoch=6
    )


def test_the_last_replica_that_lives_does_not_leave_the_isr() -> None:
    alone = {1: SERVING}
    assert resigned(state(1, [1], [2]), NO_LEADER, Standing.LEAVES, alone) == state(
        NO_LEADER, [1], [2], epoch=6
    )
    assert resigned(state(1, [1, 2]), NO_LEADER, Standing.FAILED, alone) == state(1, [1, 2])


def test_a_leader_whose_log_failed_leaves_isr_and_elr() -> None:
    assert resigned(state(1, [1, 2]), 2, Standing.FAILED) == state(2, [2], epoch=6)


def test_a_leader_of_another_epoch_hands_nothing_over() -> None:
    image = image_of(state(1, [1, 2]))
    assert leadership.resign(image, 1, [Move(TOPIC, 0, 4, 2)]) == []
    assert leadership.resign(image, 2, [Move(TOPIC, 0, 5, 1)]) == []


def test_leaderships_go_back_to_the_preferred_replica_once_it_is_in_sync_and_serves() -> None:
    states = [state(2, [1, 2]), state(2, [2, 3]), state(1, [1, 2]), state(3, [1, 3])]
    image = image_of(*states)
    assert leadership.preferred_moves(image, 2) == [Move(TOPIC, 0, 5, 1)]
    for said in (STARTING, DRAINING):
        assert leadership.preferred_moves(image_of(*states, nodes=THREE | {1: said}), 2) == []


def test_few_leaderships_move_at_once() -> None:
    image = image_of(*[state(2, [1, 2])] * 120)
    assert len(leadership.preferred_moves(image, 2)) == 50


def test_an_operator_may_ask_for_the_preferred_leader() -> None:
    image = image_of(state(2, [1, 2]), state(1, [1]), state(NO_LEADER, [1]), state(2, [2, 3]))
    topic = image.topics["orders"]
    assert leadership.preferred_move(image, topic, 0) == Move(TOPIC, 0, 5, 1)
    for index, refusal in ((1, ElectionNotNeeded), (2, LeaderNotAvailable), (3, PreferredLeaderNotAvailable)):
        with pytest.raises(refusal):
            leadership.preferred_move(image, topic, index)


# --- stopping ----------------------------------------------------------------------------------------


def test_a_node_that_stops_hands_over_what_another_can_lead() -> None:
    states = [state(1, [1, 2, 3]), state(1, [1, 3]), state(1, [1], [2]), state(2, [1, 2]), state(1, [1])]
    image = image_of(*states, nodes=THREE | {1: DRAINING, 2: DRAINING})
    assert leadership.drain_moves(image, 1) == [Move(TOPIC, 0, 5, 3), Move(TOPIC, 1, 5, 3)]


def test_a_node_that_stops_leaves_the_isrs_of_others() -> None:
    states = [state(2, [1, 2, 3]), state(2, [1, 2]), state(1, [1, 2]), state(NO_LEADER, [1, 2])]
    image = image_of(*states, nodes=THREE | {1: DRAINING})
    commit_all(image, leadership.leave_isrs(image, 1))
    assert states_of(image) == [state(2, [2, 3]), state(2, [2], [1]), *states[2:]]
    assert leadership.leave_isrs(image, 1) == []


def written_node(image: Image, node: int) -> bytes:
    entry = image.nodes[node]
    put = Put("", keys.encode(keys.NodeValue(entry.host, entry.port, "anew", level=keys.LEVEL)))
    return put.value
