"""Three nodes and their replicas: seeds that break nothing, and checks that see what is wrong."""

from __future__ import annotations

import pytest

from postroad.cluster import keys
from postroad.cluster.ids import id_text
from postroad.cluster.image import Image
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Compare, Put
from simulator.campaign import Campaign, play_apart
from simulator.checkers import a2_whole, l12_replicas, l13_one_leader
from simulator.checkers.l12_replicas import Batch, Copy
from simulator.cluster_history import ClusterHistory, Stated
from simulator.store import StoreServer
from simulator.world import World
from tests.simulator.caught import is_caught

TOPIC = bytes(16)
SEEDS = (1, 5, 7, 9, 16, 20)  # with 5 a key that holds many partitions was written while a follower caught up


CAUGHT_BY = {  # the faults that show a mutant soon; the others of replication need more seeds
    "join-below-start": ("falter",),
    "keep-isr-after-reboot": ("power",),
    "truncate-to-watermark": ("kill", "cut", "stop", "pause"),
    "never-part": ("kill", "cut", "pause", "power"),
    "promise-ahead": ("power", "sag", "kill"),
    "shrink-unconfirmed": ("cut", "pause", "lossy", "store", "away"),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_of_three_nodes_breaks_no_promise(seed: int) -> None:
    campaign = Campaign(nodes=3, workloads=("logs", "groups"))
    assert [str(violation) for violation in play_apart(campaign, seed).violations] == []


@pytest.mark.parametrize("name", sorted(CAUGHT_BY))
def test_a_mutant_of_replication_is_caught(name: str) -> None:
    assert is_caught(Campaign(nodes=3, kinds=CAUGHT_BY[name], workloads=("logs",), mutant=name))


def state(leader: int, epoch: int, isr: tuple[int, ...], elr: tuple[int, ...] = ()) -> PartitionState:
    return PartitionState(leader, epoch, (1, 2, 3), isr, elr)


def stated(*states: PartitionState) -> list[str]:
    history = {(TOPIC, 0): [Stated(float(at), each) for at, each in enumerate(states)]}
    return [violation.text for violation in l13_one_leader.check(history)]


def test_two_leaders_of_one_epoch_are_seen() -> None:
    assert stated(state(1, 1, (1, 2)), state(-1, 2, (1, 2)), state(2, 3, (1, 2))) == []
    assert len(stated(state(1, 1, (1, 2)), state(2, 1, (1, 2)))) == 1


def test_a_leader_that_was_not_in_sync_is_seen() -> None:
    assert stated(state(1, 1, (1,), (2,)), state(2, 2, (2,))) == []
    assert len(stated(state(1, 1, (1,)), state(2, 2, (2,)))) == 1


def test_an_epoch_that_falls_is_seen() -> None:
    assert len(stated(state(1, 2, (1,)), state(1, 1, (1,)))) == 1


def copy(node: int, watermark: int, *batches: tuple[int, int, bytes]) -> Copy:
    return Copy(node, 0, watermark, [Batch(*batch) for batch in batches])


def test_replicas_are_compared_up_to_the_lowest_watermark() -> None:
    one, two = copy(1, 2, (0, 1, b"a"), (1, 1, b"b")), copy(2, 1, (0, 1, b"a"), (1, 1, b"other"))
    assert not list(l12_replicas.check_equal("topic-0", [one, two]))
    assert list(l12_replicas.check_equal("topic-0", [one, two._replace(watermark=2)]))


def test_a_replica_that_lacks_a_batch_is_seen() -> None:
    one, two = copy(1, 2, (0, 1, b"a"), (1, 1, b"b")), copy(2, 2, (1, 1, b"b"))
    assert list(l12_replicas.check_equal("topic-0", [one, two]))


def test_epochs_that_fall_along_a_log_are_seen() -> None:
    assert not list(l12_replicas.check_epochs("topic-0", [copy(1, 2, (0, 1, b"a"), (1, 2, b"b"))]))
    assert list(l12_replicas.check_epochs("topic-0", [copy(1, 2, (0, 2, b"a"), (1, 1, b"b"))]))


def put_states(store: StoreServer, *states: PartitionState) -> None:
    """The states of one partition, one after the other."""
    for each in states:
        put_partitions(store, each)


def put_partitions(store: StoreServer, *states: PartitionState) -> None:
    value = keys.TopicValue("topic", id_text(TOPIC), len(states), {})
    chunk = keys.encode(keys.ChunkValue(states))
    store.commit(
        [],
        [Put(keys.topic_key("topic"), keys.encode(value)), Put(keys.chunk_key(id_text(TOPIC), 0), chunk)],
    )


def test_something_is_lost_only_when_the_power_fails_on_all_that_are_in_sync() -> None:
    with World(1) as world:
        store = StoreServer(world)
        history = ClusterHistory(store)
        put_partitions(store, state(1, 1, (1, 2)), state(1, 1, (1, 2)))
        history.lost_power(3)
        history.lost_power(1)
        assert history.losses() == []
        history.lost_power(2)
        assert history.losses(["topic"]) == [world.now]
        assert [history.has_lost(TOPIC, index) for index in (0, 1)] == [True, True]


def test_something_is_lost_if_all_others_go_before_the_lack_of_power_is_known() -> None:
    """The leader is killed before the other one of two in sync is known to have lost power."""
    with World(1) as world:
        store = StoreServer(world)
        history = ClusterHistory(store)
        put_states(store, state(2, 1, (1, 2)))
        history.lost_power(1)
        failed_at = world.now
        world.run_for(1.0)
        assert history.losses() == []
        put_states(store, state(1, 2, (1,)))
        assert history.losses(["topic"]) == [failed_at]


def test_a_replica_that_came_back_into_sync_has_everything() -> None:
    with World(1) as world:
        store = StoreServer(world)
        history = ClusterHistory(store)
        put_states(store, state(1, 1, (1, 2)))
        history.lost_power(1)
        put_states(store, state(2, 2, (2,)), state(2, 2, (1, 2)))
        history.lost_power(2)
        assert history.losses() == []


def test_another_leader_of_the_same_epoch_is_none() -> None:
    with World(1) as world:
        store = StoreServer(world)
        history = ClusterHistory(store)
        put_states(store, state(1, 1, (1, 2, 3)))
        since = world.now
        world.run_for(1.0)
        put_states(store, state(1, 1, (1, 2)))
        assert not history.is_led_anew((TOPIC, 0), since)
        put_states(store, state(2, 2, (2,)))
        assert history.is_led_anew((TOPIC, 0), since)
        assert not history.is_led_anew((TOPIC, 0), world.now)


def test_what_the_store_refuses_is_an_event() -> None:
    with World(1) as world:
        store = StoreServer(world)
        ClusterHistory(store)
        chunk = Put(keys.chunk_key(id_text(TOPIC), 0), b"")
        assert store.commit([Compare(keys.node_key(2), 7)], [chunk]) is None
        assert list(world.seen) == ["cluster: a joiner that had registered anew was refused"]
        assert store.commit([Compare(keys.node_key(2), 7)], [Put(keys.node_key(2), b"")]) is None
        assert len(world.seen) == 1, "no change of a partition"


def test_a_partition_without_a_leader_or_with_too_few_in_sync_is_seen() -> None:
    with World(1) as world:
        for each, is_whole in (
            (state(1, 1, (1, 2, 3)), True),
            (state(1, 1, (1, 2)), False),
            (state(-1, 2, (1, 2, 3)), False),
        ):
            store = StoreServer(world)
            put_states(store, each)
            image = Image()
            image.catch_up(store.list(""))
            assert (not list(a2_whole.check(image))) == is_whole


def events_of(*states: PartitionState, serving: tuple[int, ...] = (1, 2, 3)) -> set[str]:
    """What happened between the first of these states and the last."""
    with World(1) as world:
        store = StoreServer(world)
        ClusterHistory(store)
        for node in range(1, 4):
            entry = keys.NodeValue(
                "host", 1, "life", state=keys.SERVING if node in serving else keys.STARTING
            )
            store.commit([], [Put(keys.node_key(node), keys.encode(entry))])
        put_states(store, *states)
        return {event.removeprefix("cluster: ") for event in world.seen}


def test_events_of_partitions_are_told_apart() -> None:
    elected = "a leader was elected"
    first = state(1, 1, (1, 2, 3))
    assert events_of(first, state(1, 1, (1, 2))) == {"a replica left the ISR"}
    assert events_of(state(1, 1, (1, 2)), first) == {"a replica came into sync"}
    assert events_of(first, state(2, 2, (1, 2, 3))) == {elected, "a leader handed over"}
    assert events_of(first, state(-1, 2, (1, 2, 3)), state(2, 3, (1, 2, 3))) == {elected}
    from_elr = {elected, "a leader was elected from the ELR"}
    assert events_of(state(-1, 1, (), (2,)), state(2, 2, (2,))) == {*from_elr, "a replica came into sync"}
    alone = state(1, 1, (1,), (2,))
    assert events_of(alone, state(-1, 2, (), (2, 1))) == {
        "a replica left the ISR",
        "a leader without followers resigned",
    }
    last = "the last one in sync led on when it had started"
    assert events_of(state(1, 1, (1,)), state(1, 2, (1,)), serving=(2, 3)) == {last}


def test_a_state_that_another_node_loads_has_moved() -> None:
    with World(1) as world:
        store = StoreServer(world)
        history = ClusterHistory(store)
        put_states(store, state(1, 1, (1, 2, 3)))
        history.ledger_loaded("topic", 0)
        assert not world.seen
        put_states(store, state(1, 2, (1, 2, 3)))
        history.ledger_loaded("topic", 0)
        assert list(world.seen) == ["cluster: a ledger was loaded again"]
        put_states(store, state(2, 3, (1, 2, 3)))
        history.ledger_loaded("topic", 0)
        assert world.seen["cluster: a ledger moved to another node"] == 1
