"""What members tell each other: readable by other clients, and shared out evenly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client import TopicPartition
from postroad.client.protocol import (
    assign_range,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from postroad.errors import ProtocolError

topics = st.lists(st.text("abc", min_size=1, max_size=3), unique=True, min_size=1, max_size=4)


@given(topics)
def test_subscription_comes_back(names: list[str]) -> None:
    assert read_subscription(write_subscription(names)) == sorted(names)


@given(st.sets(st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 20))))
def test_assignment_comes_back(places: set[TopicPartition]) -> None:
    assert read_assignment(write_assignment(list(places))) == sorted(places)


def test_subscription_of_a_later_version_is_read_up_to_what_we_know() -> None:
    later = b"\0\3" + write_subscription(["t"])[2:] + b"\0\0\0\0\xff\xff\xff\xff\xff\xff"
    assert read_subscription(later) == ["t"]


@pytest.mark.parametrize("data", [b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x09", b"\0\0"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_subscription(data)


def test_range_gives_runs_in_order_and_the_rest_to_the_first() -> None:
    got = assign_range({"b": ["t"], "a": ["t"]}, {"t": 5})
    assert got == {
        "a": [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)],
        "b": [TopicPartition("t", 3), TopicPartition("t", 4)],
    }


@given(
    members=st.dictionaries(st.text("xyz", min_size=1, max_size=3), topics, min_size=1, max_size=5),
    counts=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 12)),
)
def test_each_partition_has_one_owner_who_wants_it(
    members: dict[str, list[str]], counts: dict[str, int]
) -> None:
    assigned = assign_range(members, counts)
    given_out = [place for places in assigned.values() for place in places]
    wanted = {topic for names in members.values() for topic in names}
    assert sorted(given_out) == sorted(
        TopicPartition(topic, n) for topic in wanted for n in range(counts.get(topic, 0))
    )
    for member, places in assigned.items():
        assert all(place.topic in members[member] for place in places)
