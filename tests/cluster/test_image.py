"""The image: the same whichever way the same events reach it, and strict about what it is told."""

from __future__ import annotations

import msgspec
import pytest

from postroad.cluster import keys
from postroad.cluster.controller import add_partitions, create_topic, delete_topic
from postroad.cluster.ids import id_text
from postroad.cluster.image import Image, PartitionChange
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Event, Put, Snapshot, StoreEntry
from postroad.errors import CoordinationError
from tests.cluster.applied import commit, topic_id


@pytest.fixture
def image() -> Image:
    image = Image()
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1], partitions=2))
    return image


def test_events_of_a_topic_may_come_in_any_order() -> None:
    decision = create_topic(Image(), "orders", topic_id(1), nodes=[1], partitions=250)
    events = [Event(put.key, put.value, 1) for put in decision.operations if isinstance(put, Put)]
    one, other = Image(), Image()
    one.apply(events)
    other.apply(events[::-1])
    one.check()
    assert one.topics == other.topics
    assert len(one.topics["orders"].partitions) == 250


def test_catching_up_tells_what_changed_in_between(image: Image) -> None:
    commit(image, create_topic(image, "kept", topic_id(2), nodes=[1]))
    orders, kept = image.topics["orders"], image.topics["kept"]
    ahead = Image()
    commit(ahead, create_topic(ahead, "new", topic_id(3), nodes=[1]))
    entries = [StoreEntry(key, value, 9) for key, value in written(ahead, "new")]
    entries += [StoreEntry(key, value, image.key_revision(key)) for key, value in written(image, "kept")]
    changes = image.catch_up(Snapshot(entries, 9))
    image.check()
    assert changes == ([ahead.topics["new"]], [orders], [], [], [], [], [])
    assert image.topics["kept"] is kept
    assert image.revision == 9


def test_catching_up_tells_which_groups_were_configured_in_between() -> None:
    image = Image()
    old, new = (keys.encode(keys.GroupValue({"postroad.order": order})) for order in ("none", "key"))
    image.apply([Event(f"groups/{group}", old, 1) for group in ("kept", "altered", "gone")])
    entries = [
        StoreEntry("groups/altered", new, 2),
        StoreEntry("groups/kept", old, 1),
        StoreEntry("groups/new", new, 2),
    ]
    changes = image.catch_up(Snapshot(entries, 3))
    image.check()
    assert sorted(changes.groups) == ["altered", "gone", "new"]
    assert {group: config["postroad.order"] for group, config in image.groups.items()} == {
        "kept": "none",
        "altered": "key",
        "new": "key",
    }


def test_a_topic_deleted_and_created_anew_is_both(image: Image) -> None:
    old = image.topics["orders"]
    deletion = [
        Event(op.key, getattr(op, "value", None), 2) for op in delete_topic(image, "orders").operations
    ]
    creation = create_topic(Image(), "orders", topic_id(2), nodes=[1]).operations
    changes = image.apply(deletion + [Event(op.key, getattr(op, "value", None), 3) for op in creation])
    image.check()
    assert changes == ([image.topics["orders"]], [old], [], [], [], [], [])


def test_keys_of_a_newer_postroad_are_passed_over(image: Image) -> None:
    changes = image.apply([Event("later/1", b"whatever", 2), Event("future", b"", 2)])
    assert changes == ([], [], [], [], [], [], [])
    assert image.revision == 2
    assert image.key_revision("future") == 0


def test_fields_of_a_newer_postroad_are_passed_over() -> None:
    image = Image()
    image.apply([Event("cluster", b'{"id": "abc", "colour": "green"}', 1)])
    assert image.cluster_id == "abc"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cluster", b"not json"),
        ("cluster", b"{}"),
        ("topics/x", b'{"name": 5}'),
        ("nodes/x", b'{"host": "h", "port": 1, "incarnation": ""}'),
        ("partitions/short/0000", b'{"states": []}'),
        ("groups/workers", b'{"config": {"share.delivery.count.limit": 5}}'),
        ("deleted/short", b'{"name": "x", "nodes": []}'),
    ],
)
def test_a_value_that_cannot_be_read_is_told_with_its_key(image: Image, key: str, value: bytes) -> None:
    with pytest.raises(CoordinationError, match=key):
        image.apply([Event(key, value, 2)])


def test_a_topic_without_its_partitions_is_refused() -> None:
    value = keys.TopicValue("orders", id_text(topic_id(1)), 3, {})
    with pytest.raises(CoordinationError, match="has 0 partitions of topic orders, not 3"):
        Image().apply([Event("topics/orders", keys.encode(value), 1)])


def test_a_leader_epoch_never_falls_and_names_one_leader(image: Image) -> None:
    chunk = keys.chunk_key(image.topics["orders"].id_text, 0)
    for wrong in (PartitionState(1, -1, (1,), (1,)), PartitionState(2, 0, (1, 2), (2,))):
        value = keys.encode(keys.ChunkValue((wrong, wrong)))
        with pytest.raises(AssertionError, match="orders"):
            image.apply([Event(chunk, value, 2)])


def test_an_apply_tells_which_partitions_changed_and_from_what() -> None:
    image = Image()
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1, 2], partitions=250, replicas=2))
    before = image.topics["orders"]
    states = list(before.partitions[100:200])
    states[7] = PartitionState(-1, 1, (1, 2), (), (1,))
    chunk = keys.chunk_key(before.id_text, 1)
    changes = image.apply([Event(chunk, keys.encode(keys.ChunkValue(tuple(states))), 2)])
    after = image.topics["orders"]
    assert changes.altered == [(before, after)]
    assert changes.partitions == [PartitionChange(after, 107, before.partitions[107], states[7])]
    changes = commit(image, add_partitions(image, "orders", 260, nodes=[1, 2]))
    assert changes.partitions == []


def test_a_whole_partition_is_written_as_older_versions_wrote_it() -> None:
    whole = keys.ChunkValue((PartitionState(1, 0, (1,), (1,)),))
    assert keys.encode(whole) == b'{"states":[{"leader":1,"leader_epoch":0,"replicas":[1],"isr":[1]}]}'


@pytest.mark.parametrize(
    "wrong",
    [
        PartitionState(1, 0, (1, 2), (1,), (1,)),
        PartitionState(1, 0, (1, 2), (1,), (2,)),
        PartitionState(1, 0, (1, 2), (1,), (3,)),
        PartitionState(1, 0, (1, 2), (1,), (2, 2)),
        PartitionState(1, 0, (1, 2), (1,), (), (1,)),
        PartitionState(1, 0, (1, 2), (1,), (), (2,), (2,)),
        PartitionState(1, 0, (1, 2), (1,), (), (), (3,)),
    ],
)
def test_a_state_that_contradicts_itself_is_found(wrong: PartitionState) -> None:
    image = Image()
    commit(image, create_topic(image, "orders", topic_id(1), nodes=[1, 2], replicas=2))
    chunk = keys.chunk_key(image.topics["orders"].id_text, 0)
    later = msgspec.structs.replace(wrong, leader_epoch=1)
    image.apply([Event(chunk, keys.encode(keys.ChunkValue((later,))), 2)])
    with pytest.raises(AssertionError):
        image.check()


def test_applying_nothing_changes_nothing(image: Image) -> None:
    before = image.revision
    assert image.apply([]) == ([], [], [], [], [], [], [])
    assert image.revision == before


def test_a_widened_topic_keeps_its_place_among_the_others(image: Image) -> None:
    commit(image, create_topic(image, "later", topic_id(2), nodes=[1]))
    commit(image, add_partitions(image, "orders", 3, nodes=[1]))
    assert list(image.topics) == ["orders", "later"]


def written(image: Image, name: str) -> list[tuple[str, bytes]]:
    topic = image.topics[name]
    value = keys.TopicValue(name, topic.id_text, len(topic.partitions), topic.config)
    chunks = [
        (keys.chunk_key(topic.id_text, number), keys.encode(keys.ChunkValue(states)))
        for number, states in keys.chunks(topic.partitions)
    ]
    return [(keys.topic_key(name), keys.encode(value)), *chunks]
