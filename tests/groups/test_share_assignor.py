from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.groups.assignors import Assignment, Subscriber
from postroad.groups.requests import Partitions, TopicPartition
from postroad.groups.share_assignor import spread

TOPICS = [bytes([n]) * 16 for n in range(4)]
NOTHING: Partitions = frozenset()
SLACK = 2  # partitions that may move besides those that must


def members(count: int, *topics: bytes, before: Assignment | None = None) -> list[Subscriber]:
    """m0, m1, …, all with the same subscription and what they had before."""
    names = [f"m{n}" for n in range(count)]
    return [Subscriber(name, None, frozenset(topics), (before or {}).get(name, NOTHING)) for name in names]


def again(subscribers: list[Subscriber], assignment: Assignment) -> list[Subscriber]:
    return [s._replace(previous=assignment[s.member_id]) for s in subscribers]


def holders(assignment: Assignment) -> Counter[TopicPartition]:
    return Counter(tp for held in assignment.values() for tp in held)


def loads(assignment: Assignment) -> list[int]:
    return [len(held) for held in assignment.values()]


def gained(before: Assignment, after: Assignment) -> int:
    """Partitions that someone has to start with."""
    return sum(len(held - before.get(member_id, NOTHING)) for member_id, held in after.items())


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[list[Subscriber], dict[bytes, int]]:
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9)))
    topics = st.frozensets(st.sampled_from(TOPICS))
    everyone = draw(topics)
    previous = st.frozensets(
        st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 9)), max_size=12
    )
    names = draw(st.lists(st.integers(0, 99).map(str), unique=True, max_size=25))
    subscribers = [
        Subscriber(name, None, everyone if alike else draw(topics), draw(previous)) for name in names
    ]
    return subscribers, counts


@given(group=groups())
@settings(max_examples=150)
def test_each_partition_is_looked_after_by_two_of_its_subscribers_where_there_are_two(
    group: tuple[list[Subscriber], dict[bytes, int]],
) -> None:
    subscribers, counts = group
    assignment = spread(subscribers, counts)
    assert assignment.keys() == {s.member_id for s in subscribers}
    for s in subscribers:
        assert {tp.topic_id for tp in assignment[s.member_id]} <= s.topics
    readers = Counter(topic_id for s in subscribers for topic_id in s.topics)
    found = holders(assignment)
    expected = {TopicPartition(t, n) for t, count in counts.items() if readers[t] for n in range(count)}
    assert found.keys() == expected
    assert all(number >= min(2, readers[tp.topic_id]) for tp, number in found.items())


@given(group=groups())
@settings(max_examples=100)
def test_nobody_who_subscribes_to_a_partition_idles(group: tuple[list[Subscriber], dict[bytes, int]]) -> None:
    subscribers, counts = group
    assignment = spread(subscribers, counts)
    for s in subscribers:
        assert assignment[s.member_id] or not any(counts.get(topic_id) for topic_id in s.topics)


@given(group=groups(alike=True))
@settings(max_examples=150)
def test_members_and_partitions_of_one_subscription_differ_by_one_at_most(
    group: tuple[list[Subscriber], dict[bytes, int]],
) -> None:
    subscribers, counts = group
    assignment = spread(subscribers, counts)
    for numbers in (loads(assignment), list(holders(assignment).values())):
        assert not numbers or max(numbers) - min(numbers) <= 1


@given(group=groups())
@settings(max_examples=100)
def test_assignment_depends_on_nothing_but_its_arguments_and_is_at_rest(
    group: tuple[list[Subscriber], dict[bytes, int]],
) -> None:
    subscribers, counts = group
    assignment = spread(subscribers, counts)
    backwards = dict(reversed(counts.items()))
    assert spread(subscribers[::-1], backwards) == assignment
    assert spread(again(subscribers, assignment), counts) == assignment


@given(group=groups(), data=st.data())
@settings(max_examples=60)
def test_who_does_not_subscribe_to_a_topic_any_more_does_not_keep_it(
    group: tuple[list[Subscriber], dict[bytes, int]], data: st.DataObject
) -> None:
    subscribers, counts = group
    before = spread(subscribers, counts)
    fewer = [
        s._replace(
            topics=data.draw(st.frozensets(st.sampled_from(sorted(s.topics)))) if s.topics else s.topics
        )
        for s in again(subscribers, before)
    ]
    after = spread(fewer, counts)
    for s in fewer:
        assert {tp.topic_id for tp in after[s.member_id]} <= s.topics


@pytest.mark.parametrize("partitions", [1, 2, 3, 10])
def test_lone_member_looks_after_everything(partitions: int) -> None:
    assignment = spread(members(1, TOPICS[0], TOPICS[1]), {TOPICS[0]: partitions, TOPICS[1]: partitions})
    assert loads(assignment) == [2 * partitions]


def test_more_members_than_partitions_share_them_evenly() -> None:
    assignment = spread(members(10, TOPICS[0]), {TOPICS[0]: 3})
    assert loads(assignment) == [1] * 10
    assert sorted(holders(assignment).values()) == [3, 3, 4]


@pytest.mark.parametrize(("partitions", "count"), [(10, 3), (8, 8), (3, 4), (12, 5), (2, 9), (100, 7)])
def test_newcomer_gets_its_share_and_hardly_anything_else_moves(partitions: int, count: int) -> None:
    counts = {TOPICS[0]: partitions}
    before = spread(members(count, TOPICS[0]), counts)
    after = spread(members(count + 1, TOPICS[0], before=before), counts)
    assert gained(before, after) <= len(after[f"m{count}"]) + SLACK


@pytest.mark.parametrize(("partitions", "count"), [(10, 3), (8, 8), (3, 4), (12, 5), (2, 9), (100, 7)])
def test_what_a_member_leaves_is_nearly_all_that_others_take_up(partitions: int, count: int) -> None:
    counts = {TOPICS[0]: partitions}
    before = spread(members(count, TOPICS[0]), counts)
    after = spread(members(count - 1, TOPICS[0], before=before), counts)
    assert gained(before, after) <= len(before[f"m{count - 1}"]) + SLACK


def test_new_partitions_are_added_to_what_members_have() -> None:
    before = spread(members(4, TOPICS[0]), {TOPICS[0]: 4})
    after = spread(members(4, TOPICS[0], before=before), {TOPICS[0]: 8})
    assert all(before[member_id] <= after[member_id] for member_id in before)
    assert loads(after) == [4] * 4
