"""Plans that spread replicas and leaders: even, over racks, with few moves."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.cluster.balance import Move, Placed, rebalance, without
from postroad.cluster.placement import place

MB = 1024 * 1024
NO_RACKS = dict.fromkeys(range(1, 6), "")


def placed_on(nodes: int, topics: int = 3, partitions: int = 12, replicas: int = 3) -> list[Placed]:
    return [
        Placed(f"topic{topic}", index, on)
        for topic in range(topics)
        for index, on in enumerate(place(range(1, nodes + 1), range(partitions), replicas, topic))
    ]


def after(partitions: list[Placed], moves: list[Move]) -> list[Placed]:
    moved = {(move.topic, move.index): move for move in moves}
    for move in moves:
        assert len(set(move.after)) == len(move.after) == len(move.before)
    return [
        msgspec.structs.replace(placed, replicas=moved[placed.topic, placed.index].after)
        if (placed.topic, placed.index) in moved
        else placed
        for placed in partitions
    ]


def held(partitions: list[Placed]) -> Counter[int]:
    return Counter(node for placed in partitions for node in placed.replicas)


def led(partitions: list[Placed]) -> Counter[int]:
    return Counter(placed.replicas[0] for placed in partitions)


def spread(counts: Counter[int], nodes: range) -> int:
    return max(counts[node] for node in nodes) - min(counts[node] for node in nodes)


def test_new_nodes_get_their_part_of_replicas_and_leaders_and_no_more_is_moved() -> None:
    before = placed_on(3)
    moves = rebalance(before, NO_RACKS)
    now = after(before, moves)
    assert spread(held(now), range(1, 6)) <= 1
    assert spread(led(now), range(1, 6)) <= 1
    copied = sum(len(set(move.after) - set(move.before)) for move in moves)
    assert copied == sum(held(now)[node] for node in (4, 5)), "what is copied lies on the new nodes"


def test_each_topic_is_spread_over_the_new_nodes() -> None:
    now = after(before := placed_on(3), rebalance(before, NO_RACKS))
    for topic in range(3):
        counts = held([placed for placed in now if placed.topic == f"topic{topic}"])
        assert spread(counts, range(1, 6)) <= 3


def test_a_cluster_that_is_even_stays_as_it_is() -> None:
    even = after(before := placed_on(3), rebalance(before, NO_RACKS))
    assert rebalance(even, NO_RACKS) == []
    assert rebalance(placed_on(1, replicas=1), {1: ""}) == []


def test_replicas_of_a_partition_are_spread_over_racks_first() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}
    now = after(before := placed_on(3), rebalance(before, racks))
    assert all({racks[node] for node in placed.replicas} == {"a", "b", "c"} for placed in now)


def test_what_lies_on_nodes_that_take_no_part_stays_there() -> None:
    before = [Placed("orders", index, (9, 1)) for index in range(6)]
    now = after(before, rebalance(before, {1: "", 2: "", 3: ""}))
    assert all(9 in placed.replicas for placed in now)
    assert held(now) == {9: 6, 1: 2, 2: 2, 3: 2}


def test_a_node_with_far_more_bytes_exchanges_partitions() -> None:
    large = [Placed("large", index, (1,), 1000 * MB) for index in range(4)]
    small = [Placed("small", index, (2,), 10 * MB) for index in range(4)]
    moves = rebalance([*large, *small], {1: "", 2: ""})
    now = after([*large, *small], moves)
    sizes = Counter[int]()
    for placed in now:
        sizes[placed.replicas[0]] += placed.size
    assert sizes[1] == sizes[2]
    assert held(now) == {1: 4, 2: 4}
    assert sum(move.copied for move in moves) == 2 * 1010 * MB


def test_nothing_is_copied_for_a_difference_of_some_megabytes() -> None:
    large = [Placed("large", index, (1,), 10 * MB) for index in range(4)]
    small = [Placed("small", index, (2,), 10) for index in range(4)]
    assert rebalance([*large, *small], {1: "", 2: ""}) == []


def load_of(partitions: list[Placed], leaders_only: bool = False) -> Counter[int]:
    loads = Counter[int]()
    for placed in partitions:
        for node in placed.replicas[: 1 if leaders_only else None]:
            loads[node] += round(placed.load)
    return loads


@pytest.mark.parametrize("rates", [{"bytes_per_s": 50.0 * MB}, {"messages_per_s": 50_000.0}])
def test_busy_partitions_are_spread_over_nodes_and_idle_ones_fill_up(rates: dict[str, float]) -> None:
    busy = [Placed("busy", index, (1,), MB, **rates) for index in range(4)]
    idle = [Placed("idle", index, (2,), MB) for index in range(4)]
    now = after([*busy, *idle], moves := rebalance([*busy, *idle], {1: "", 2: ""}))
    assert load_of(now)[1] == load_of(now)[2]
    assert held(now) == {1: 4, 2: 4}
    assert len(moves) == 4
    assert rebalance(now, {1: "", 2: ""}) == []


@pytest.mark.parametrize("rates", [{"bytes_per_s": 50.0 * MB}, {"messages_per_s": 50_000.0}])
def test_leaderships_of_busy_partitions_are_exchanged_without_a_copy(rates: dict[str, float]) -> None:
    nodes = (1, 2, 3)
    busy = [Placed("busy", index, nodes, MB, **rates) for index in range(3)]
    idle = [Placed("idle", index, (2, 3, 1), MB) for index in range(3)]
    idle += [Placed("idle", index, (3, 1, 2), MB) for index in range(3, 6)]
    now = after([*busy, *idle], moves := rebalance([*busy, *idle], dict.fromkeys(nodes, "")))
    assert len(set(load_of(now, leaders_only=True).values())) == 1
    assert led(now) == {1: 3, 2: 3, 3: 3}
    assert all(move.copied == 0 for move in moves)
    assert rebalance(now, dict.fromkeys(nodes, "")) == []


def test_load_is_not_levelled_at_the_price_of_full_disks() -> None:
    before = [Placed("busy", 0, (1,), 10 * MB, 50.0 * MB), Placed("busy", 1, (1,), 10 * MB, 50.0 * MB)]
    before += [Placed("large", index, (2,), 500 * MB) for index in range(2)]
    before += [Placed("other", index, (1,), 490 * MB) for index in range(2)]
    before += [Placed("small", index, (2,), 0) for index in range(2)]
    now = after(before, rebalance(before, {1: "", 2: ""}))
    sizes = Counter[int]()
    for placed in now:
        sizes[placed.replicas[0]] += placed.size
    assert abs(sizes[1] - sizes[2]) <= 64 * MB
    assert load_of(now)[1] == load_of(now)[2]


def test_partitions_get_more_replicas_where_they_are_wanted_evenly_and_in_other_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    before = [Placed("orders", index, (1,)) for index in range(10)]
    moves = rebalance(before, racks, replicas=3)
    grown = {(move.topic, move.index): move.after for move in moves}
    assert len(grown) == 10
    assert all({racks[node] for node in after} == {"a", "b", "c"} for after in grown.values())
    assert spread(Counter(after[0] for after in grown.values()), range(1, 6)) <= 1
    assert all(len(move.after) == 2 for move in rebalance(before, {1: "", 2: ""}, replicas=3))


def test_leaders_alone_are_evened_out_without_a_copy() -> None:
    before = [Placed("orders", index, (1, 2, 3)) for index in range(9)]
    moves = rebalance(before, {1: "", 2: "", 3: ""})
    assert led(after(before, moves)) == {1: 3, 2: 3, 3: 3}
    assert all(move.copied == 0 and set(move.before) == set(move.after) for move in moves)


def test_leaders_are_evened_out_over_others_where_two_nodes_share_nothing() -> None:
    before = [Placed("orders", index, (1, 2)) for index in range(4)]
    before += [Placed("orders", index, (2, 3)) for index in range(4, 6)]
    moves = rebalance(before, {1: "", 2: "", 3: ""})
    assert spread(led(after(before, moves)), range(1, 4)) <= 1


def test_a_drain_takes_what_lies_on_its_nodes_and_nothing_else() -> None:
    before = placed_on(5)
    moves = without(before, NO_RACKS, {4, 5})
    now = after(before, moves)
    assert not {4, 5} & held(now).keys()
    assert all({4, 5} & set(move.before) for move in moves)
    assert without(before, {1: "", 4: ""}, {4}) != []


def test_a_drain_leaves_what_nobody_else_can_take() -> None:
    before = [Placed("orders", 0, (1, 2, 3))]
    assert without(before, {1: "", 2: "", 3: ""}, {3}) == []


@given(
    st.lists(st.permutations(range(1, 7)).map(lambda nodes: tuple(nodes[:3])), max_size=40),
    st.lists(st.sampled_from("abc"), min_size=6, max_size=6),
    st.lists(st.integers(0, 1000).map(lambda size: size * MB), min_size=40, max_size=40),
    st.lists(st.floats(0, 100.0 * MB), min_size=40, max_size=40),
)
def test_any_plan_keeps_replicas_apart_and_makes_nothing_worse(
    replicas: list[tuple[int, ...]], racks: list[str], sizes: list[int], rates: list[float]
) -> None:
    racks_of = dict(enumerate(racks, 1))
    before = [Placed("orders", index, on, sizes[index], rates[index]) for index, on in enumerate(replicas)]
    moves = rebalance(before, racks_of)
    now = after(before, moves)
    assert spread(led(now), range(1, 7)) <= max(spread(led(before), range(1, 7)), 1)
    for old, new in zip(before, now, strict=True):
        in_racks = [{racks_of[node] for node in placed.replicas} for placed in (old, new)]
        assert len(in_racks[1]) >= len(in_racks[0])
    if len(set(racks)) == 1:
        assert spread(held(now), range(1, 7)) <= 1
    assert sum(len(placed.replicas) for placed in now) == 3 * len(before)
