"""Ids, placement and the bounded history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.cluster.history import History
from postroad.cluster.ids import id_bytes, id_text, make_id
from postroad.cluster.placement import place
from postroad.cluster.store import Event
from postroad.errors import HistoryCompacted


@given(st.binary(min_size=16, max_size=16))
def test_an_id_and_its_text_are_one(raw: bytes) -> None:
    text = id_text(raw)
    assert len(text) == 22
    assert id_bytes(text) == raw


@given(st.binary(min_size=16, max_size=16).filter(lambda raw: any(raw[:15])))
def test_a_made_id_never_looks_like_a_flag(random: bytes) -> None:
    assert not id_text(make_id(bytes([random[0] | 1]) + random[1:])).startswith("-")


@pytest.mark.parametrize("text", ["", "short", "x" * 23, "!" * 22, "é" * 22, "AAAAAAAAAAAAAAAAAAAAAB"])
def test_text_that_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no id"):
        id_bytes(text)


@given(
    nodes=st.lists(st.integers(0, 50), min_size=1, max_size=8, unique=True),
    partitions=st.integers(1, 60),
    start=st.integers(0, 2**32),
    data=st.data(),
)
def test_placement_is_even_and_never_puts_two_replicas_on_one_node(
    nodes: list[int], partitions: int, start: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(1, len(nodes)))
    placed = place(nodes, range(partitions), replicas, start)
    assert all(len(set(found)) == replicas and set(found) <= set(nodes) for found in placed)
    leads = [sum(found[0] == node for found in placed) for node in nodes]
    assert max(leads) - min(leads) <= 1


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    partitions=st.integers(1, 60),
    start=st.integers(0, 2**32),
    data=st.data(),
)
def test_replicas_are_striped_over_racks(
    racks: list[str], partitions: int, start: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(1, len(racks)))
    rack_of = dict(enumerate(racks))
    placed = place(list(rack_of), range(partitions), replicas, start, rack_of)
    assert placed == place(list(rack_of), range(partitions), replicas, start, rack_of)
    leads = [sum(found[0] == node for found in placed) for node in rack_of]
    assert max(leads) - min(leads) <= 1
    for found in placed:
        assert len(set(found)) == replicas
        assert len({rack_of[node] for node in found}) == min(replicas, len(set(racks)))


def test_followers_are_even_where_racks_are() -> None:
    rack_of = dict(enumerate("aabbcc"))
    placed = place(list(rack_of), range(60), 3, 7, rack_of)
    assert all(29 <= sum(node in found for found in placed) <= 31 for node in rack_of)


def test_the_partitions_of_one_leader_have_different_followers() -> None:
    placed = place([1, 2, 3, 4], range(12), 2, 0)
    assert sorted(followed for led, followed in placed if led == 1) == [2, 3, 4]


def test_history_keeps_the_newest_revisions_within_its_bounds() -> None:
    history = History(10, revisions_max=3, bytes_max=100)
    for revision in range(11, 16):
        history.append(revision, [Event("k", b"v", revision)])
    assert (history.compacted, history.revision) == (12, 15)
    assert history.at(13) == [Event("k", b"v", 13)]
    with pytest.raises(HistoryCompacted, match="from revision 13 on; 12 was asked for"):
        history.at(12)


def test_history_keeps_one_revision_however_large() -> None:
    history = History(0, bytes_max=10)
    history.append(1, [Event("a", b"x", 1)])
    history.append(2, [Event("b", b"x" * 1000, 2)])
    assert history.compacted == 1
    assert history.at(2) == [Event("b", b"x" * 1000, 2)]


def test_history_has_no_gaps() -> None:
    with pytest.raises(AssertionError):
        History(5).append(7, [])
