from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.groups.assignors import ASSIGNORS, Assignment, Assignor, Subscriber, range_, uniform
from postroad.groups.requests import TopicPartition

TOPICS = [bytes([n]) * 16 for n in range(4)]


def member(name: str, *topics: bytes, previous: frozenset[TopicPartition] = frozenset()) -> Subscriber:
    return Subscriber(name, None, frozenset(topics), previous)


def again(subscribers: list[Subscriber], assignment: Assignment) -> list[Subscriber]:
    return [s._replace(previous=assignment[s.member_id]) for s in subscribers if s.member_id in assignment]


def sizes(assignment: Assignment) -> list[int]:
    return sorted(len(owned) for owned in assignment.values())


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[Subscriber], dict[bytes, int]]:
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 12)))
    topics = st.frozensets(st.sampled_from(TOPICS))
    everyone = draw(topics)
    previous = st.frozensets(
        st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 12)), max_size=8
    )
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8))
    subscribers = [
        Subscriber(
            name, draw(st.none() | st.just(f"i{name}")), everyone if alike else draw(topics), draw(previous)
        )
        for name in names
    ]
    return subscribers, counts


@pytest.mark.parametrize("assign", ASSIGNORS.values(), ids=list(ASSIGNORS))
@given(group=groups())
@settings(max_examples=60)
def test_every_partition_that_someone_reads_has_one_owner_that_reads_it(
    assign: Assignor, group: tuple[list[Subscriber], dict[bytes, int]]
) -> None:
    subscribers, counts = group
    assignment = assign(subscribers, counts)
    assert assignment.keys() == {s.member_id for s in subscribers}
    owners = Counter(tp for owned in assignment.values() for tp in owned)
    read = {topic for s in subscribers for topic in s.topics}
    assert owners == Counter(
        TopicPartition(t, p) for t, count in counts.items() if t in read for p in range(count)
    )
    for s in subscribers:
        assert {tp.topic_id for tp in assignment[s.member_id]} <= s.topics


@given(group=groups(alike=True))
@settings(max_examples=60)
def test_uniform_is_even_where_all_read_the_same(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    subscribers, counts = group
    owned = sizes(uniform(subscribers, counts))
    assert not owned or owned[-1] - owned[0] <= 1


@given(group=groups())
@settings(max_examples=60)
def test_uniform_can_not_be_improved_by_one_move(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    subscribers, counts = group
    assignment = uniform(subscribers, counts)
    for giver, owned in assignment.items():
        for s in subscribers:
            could_take = any(tp.topic_id in s.topics for tp in owned)
            assert not could_take or len(assignment[giver]) - len(assignment[s.member_id]) < 2


@given(group=groups())
@settings(max_examples=60)
def test_uniform_moves_nothing_without_need(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    subscribers, counts = group
    assignment = uniform(subscribers, counts)
    assert uniform(again(subscribers, assignment), counts) == assignment


@given(st.integers(1, 30), st.integers(2, 8))
def test_uniform_takes_nothing_from_those_who_stay_when_one_leaves(count: int, size: int) -> None:
    subscribers = [member(f"m{n}", TOPICS[0]) for n in range(size)]
    counts = {TOPICS[0]: count}
    before = uniform(subscribers, counts)
    after = uniform(again(subscribers, before)[1:], counts)
    assert all(before[member_id] <= after[member_id] for member_id in after)


@given(st.integers(1, 30), st.integers(1, 8))
def test_uniform_moves_only_the_newcomers_share(count: int, size: int) -> None:
    subscribers = [member(f"m{n}", TOPICS[0]) for n in range(size)]
    counts = {TOPICS[0]: count}
    before = uniform(subscribers, counts)
    after = uniform([*again(subscribers, before), member("new", TOPICS[0])], counts)
    moved = sum(len(before[member_id] - after[member_id]) for member_id in before)
    assert moved == len(after["new"])


def test_range_gives_the_same_numbers_of_each_topic() -> None:
    a, b = TOPICS[:2]
    assignment = range_([member("y", a, b), member("x", a, b)], {a: 3, b: 3})
    assert assignment["x"] == {TopicPartition(t, p) for t in (a, b) for p in (0, 1)}
    assert assignment["y"] == {TopicPartition(t, 2) for t in (a, b)}


def test_range_orders_static_members_by_instance() -> None:
    topic = TOPICS[0]
    first = Subscriber("z", "i1", frozenset([topic]), frozenset())
    second = Subscriber("a", "i2", frozenset([topic]), frozenset())
    assignment = range_([second, first], {topic: 2})
    assert assignment["z"] == {TopicPartition(topic, 0)}


def test_ten_thousand_partitions_among_a_thousand_members_are_quick() -> None:
    """Some tens of milliseconds; a quadratic slip would take minutes."""
    counts = {TOPICS[0]: 5_000, TOPICS[1]: 5_000}
    mixed = [member(f"m{n}", *(TOPICS[:2] if n % 2 else TOPICS[:1])) for n in range(1_000)]
    assert sizes(uniform(mixed, counts)) == [10] * 1_000
    alike = [member(f"m{n}", *TOPICS[:2]) for n in range(1_000)]
    assert sizes(uniform(alike, counts)) == [10] * 1_000
