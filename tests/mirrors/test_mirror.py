"""Mirrors between two real clusters, each of one node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from postroad.client import Client, TopicPartition, subscriptions, topics
from postroad.client.append import append as append_batch
from postroad.errors import PostroadError
from postroad.mirrors import partition as partitions
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.notes import Notes
from postroad.mirrors.positions import Wanted
from postroad.testing import Node
from postroad.wire import header_names as names
from postroad.wire.subscription_names import TOPICS_CONFIG
from tests.clients.wait import until_async
from tests.spark import plain
from tests.spark.plain import Message

from .runs import (
    commit,
    copied,
    fill,
    mirror_once,
    mirroring,
    named,
    plainly,
    position,
    read_all,
    send,
    starts,
    values,
)

VARIED = [
    Message(b"%d" % number, None if number % 5 == 0 else b"k%d" % number, number % 3, [("n", b"%d" % number)],
            1_700_000_000_000 + number)
    for number in range(60)
]  # fmt: skip


async def test_copies_are_as_their_originals_and_tell_where_they_come_from(
    west: Node, east: Node, topic: str
) -> None:
    plain.create(west.bootstrap, topic, 3, retention_ms="-1", max_message_bytes="2000000")
    plain.send(west.bootstrap, topic, [*VARIED, Message(None, b"a tombstone")])
    await mirror_once(west, east, topic)

    rows, originals = await read_all(east, topic), await read_all(west, topic)
    assert plainly(rows) == plainly(originals)
    async with Client(west.bootstrap) as client, Client(east.bootstrap) as there:
        cluster_id = (await client.cluster([])).id or ""
        configs = {entry.name: entry.value for entry in await topics.describe_config(there, topic)}
    assert [dict(row.headers)[names.ORIGIN_OFFSET] for row in rows] == [
        b"%d" % row.offset for row in originals
    ]
    assert {dict(row.headers)[names.ORIGIN_CLUSTER] for row in rows} == {cluster_id.encode()}
    assert configs["retention.ms"] == "-1"
    assert int(configs["max.message.bytes"] or 0) > 2_000_000  # a copy is larger than its original


async def test_what_came_from_a_cluster_is_not_sent_back_to_it(west: Node, east: Node, topic: str) -> None:
    fill(west, topic, count=5, text=b"west ")
    fill(east, topic, count=3, text=b"east ")
    async with mirroring(west, east, topic) as there, mirroring(east, west, topic) as back:
        await until_async(lambda: (copied(there), copied(back)) == (5, 3), "both are mirrored")
        send(west, topic, 2, b"later ")
        await until_async(lambda: copied(there) == 7, "later ones are mirrored")
        await asyncio.sleep(0.5)
        assert (copied(there), copied(back)) == (7, 3)
    both = [sorted(values(await read_all(node, topic))) for node in (west, east)]
    assert both[0] == both[1]
    assert len(both[0]) == 10


async def test_a_mirror_that_is_started_again_goes_on_where_it_was(
    west: Node, east: Node, topic: str
) -> None:
    fill(west, topic, count=10)
    assert copied(await mirror_once(west, east, topic)) == 10
    send(west, topic, 4, b"more ")
    assert copied(await mirror_once(west, east, topic)) == 4
    assert copied(await mirror_once(west, east, topic)) == 0
    assert values(await read_all(east, topic)) == values(await read_all(west, topic))


async def test_what_was_stored_and_not_noted_is_found_in_the_log(
    west: Node, east: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror dies before it notes anything of what it has copied; others write there meanwhile."""
    fill(west, topic, count=10)
    await mirror_once(west, east, topic)
    send(west, topic, 10, b"more ")

    async def crash(*_: Any) -> None:
        raise PostroadError("it is dead")

    with monkeypatch.context() as patched:
        patched.setattr(Notes, "put", crash)
        await mirror_once(west, east, topic)
    send(east, topic, 3, b"own ")
    await commit(west, f"g-{topic}", topic, 0, 15)
    done = await mirror_once(west, east, topic, groups=named(f"g-{topic}"))
    assert copied(done) == 0
    assert values(await read_all(east, topic))[:20] == values(await read_all(west, topic))
    assert await position(east, f"g-{topic}", topic) == 15


@pytest.mark.parametrize("batch", [3, 10, 50])
async def test_a_batch_that_comes_late_from_a_dead_mirror_doubles_nothing(
    west: Node, east: Node, topic: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was sent, and is stored when the next run has looked already and copies the same; however the two
    cut their batches."""
    fill(west, topic, count=5)
    await mirror_once(west, east, topic)
    send(west, topic, 20, b"more ")
    late: list[tuple[Any, ...]] = []

    async def lose(client: Client, place: Any, data: Any, **_: Any) -> Any:
        if place.topic == topic:
            late.append((place, data))
            raise PostroadError("no answer")
        return await append_batch(client, place, data)

    with monkeypatch.context() as patched:
        patched.setattr(partitions, "append", lose)
        async with mirroring(west, east, topic):
            await until_async(lambda: late, "a batch is on its way")
    monkeypatch.setattr(partitions, "BATCH_RECORDS", batch)
    is_late = True

    async def store_late(client: Client, place: Any, data: Any, **_: Any) -> Any:
        nonlocal is_late
        if is_late and place.topic == topic:
            is_late = False
            await append_batch(client, *late[0])
        return await append_batch(client, place, data)

    monkeypatch.setattr(partitions, "append", store_late)
    await mirror_once(west, east, topic)
    assert not is_late
    assert values(await read_all(east, topic)) == values(await read_all(west, topic))


async def test_two_runs_at_the_same_time_copy_each_message_once(west: Node, east: Node, topic: str) -> None:
    fill(west, topic, partitions=2)
    async with mirroring(west, east, topic), mirroring(west, east, topic):
        for number in range(8):
            await asyncio.to_thread(send, west, topic, 60, b"%d " % number)
        await mirror_once(west, east, topic)
    assert values(await read_all(east, topic)) == values(await read_all(west, topic))
    assert copied(await mirror_once(west, east, topic)) == 0


async def test_new_topics_partitions_and_configs_follow(west: Node, east: Node, topic: str) -> None:
    fill(west, f"{topic}-one", count=2)
    async with mirroring(west, east, pattern=f"{topic}-.*") as mirror:
        await until_async(lambda: copied(mirror) == 2, "the first topic is mirrored")
        fill(west, f"{topic}-two", count=3, retention_ms="7777")
        plain.add_partitions(west.bootstrap, f"{topic}-one", 2)
        plain.send(west.bootstrap, f"{topic}-one", [Message(b"new", partition=1)])
        await until_async(lambda: copied(mirror) == 6, "all of it is mirrored")
        async with Client(west.bootstrap) as here, Client(east.bootstrap) as there:

            async def retention() -> str | None:
                found = await topics.describe_config(there, f"{topic}-two")
                return next(entry.value for entry in found if entry.name == "retention.ms")

            assert await retention() == "7777"
            await topics.alter_config(here, f"{topic}-two", {"retention.ms": "8888"})
            await until_async(lambda: is_it(retention, "8888"), "the config is carried over")
            await topics.alter_config(there, f"{topic}-two", {"retention.ms": "9999"})
            await asyncio.sleep(0.6)
            assert await retention() == "9999"  # what was changed at the target alone stays


async def test_a_topic_that_is_deleted_holds_up_no_other(west: Node, east: Node, topic: str) -> None:
    for name in ("one", "two"):
        fill(west, f"{topic}-{name}", count=2)
    async with mirroring(west, east, pattern=f"{topic}-.*") as mirror:
        await until_async(lambda: copied(mirror) == 4, "both are mirrored")
        plain.delete(west.bootstrap, f"{topic}-one")
        send(west, f"{topic}-two", 3, b"more ")
        await until_async(lambda: len(mirror.watched) == 1 and copied(mirror) == 5, "the other goes on")
    assert len(await read_all(east, f"{topic}-one")) == 2  # the copy stays


async def is_it(asked: Any, expected: object) -> bool:
    return await asked() == expected


async def test_clusters_that_mirror_each_other_under_prefixes_copy_no_copies(
    west: Node, east: Node, topic: str
) -> None:
    for node, text in ((west, b"west "), (east, b"east ")):
        fill(node, topic, count=4, text=text)
    pattern = rf".*{topic}"
    for _ in range(2):
        await mirror_once(west, east, pattern=pattern, prefix="west.")
        await mirror_once(east, west, pattern=pattern, prefix="east.")
    for node in (west, east):
        async with Client(node.bootstrap) as client:
            found = [each.name for each in await topics.list_all(client) if topic in each.name]
        assert len(found) == 2
    assert values(await read_all(east, f"west.{topic}")) == values(await read_all(west, topic))
    assert values(await read_all(west, f"east.{topic}")) == values(await read_all(east, topic))


async def test_groups_go_on_at_the_same_message_though_offsets_differ(
    west: Node, east: Node, topic: str
) -> None:
    """The source has deleted some, and the target has messages of its own."""
    group = f"g-{topic}"
    fill(west, topic, count=20)
    plain.delete_before(west.bootstrap, topic, 0, 4)
    fill(east, f"dc.{topic}", count=3, text=b"own ")
    await commit(east, group, f"dc.{topic}", 0, 3)
    await commit(west, group, topic, 0, 10)
    done = await mirror_once(west, east, topic, prefix="dc.", groups=named(group))
    assert await position(east, group, f"dc.{topic}") == 3  # own messages were not read at the source
    assert done.carriage.groups[group].again == 6

    fill(east, f"alone.{topic}")
    done = await mirror_once(west, east, topic, prefix="alone.", groups=named(group))
    assert await position(east, group, f"alone.{topic}") == 6
    assert done.carriage.groups[group].again == 0
    await commit(west, group, topic, 0, 4)
    await mirror_once(west, east, topic, prefix="alone.", groups=named(group))
    assert await position(east, group, f"alone.{topic}") == 6  # never back


async def test_a_group_that_works_at_the_target_is_left_alone(west: Node, east: Node, topic: str) -> None:
    from confluent_kafka import Consumer

    group = f"g-{topic}"
    fill(west, topic, count=10)
    await mirror_once(west, east, topic)
    consumer = Consumer(
        {"bootstrap.servers": east.bootstrap, "group.id": group, "auto.offset.reset": "earliest",
         "enable.auto.commit": False}
    )  # fmt: skip
    consumer.subscribe([topic])
    assert await asyncio.to_thread(consumer.poll, 30) is not None
    await commit(west, group, topic, 0, 7)
    done = await mirror_once(west, east, topic, groups=named(group))
    assert done.carriage.groups[group].is_active_there
    assert await position(east, group, topic) is None
    consumer.close()


async def test_a_group_that_is_refused_holds_up_no_other(west: Node, east: Node, topic: str) -> None:
    """The target has a subscription of its name."""
    strange, usual = f"a-{topic}", f"b-{topic}"
    fill(west, topic, count=5)
    async with Client(east.bootstrap) as there:
        await subscriptions.alter_config(there, strange, {TOPICS_CONFIG: topic})
    for group in (strange, usual):
        await commit(west, group, topic, 0, 3)
    done = await mirror_once(west, east, topic, groups=named(strange, usual))
    assert done.carriage.groups[strange].refused
    assert await position(east, usual, topic) == 3


async def test_subscriptions_go_on_with_their_configs(west: Node, east: Node, topic: str) -> None:
    name = f"s-{topic}"
    fill(west, topic, count=8)
    async with Client(west.bootstrap) as here, Client(east.bootstrap) as there:
        await subscriptions.alter_config(
            here, name, {TOPICS_CONFIG: topic, "share.record.lock.duration.ms": "17000"}
        )
        await subscriptions.move(here, name, {TopicPartition(topic, 0): 5})
        await mirror_once(west, east, topic, subscriptions=named(name))
        assert await starts(east, name) == {0: 5}
        found = {entry.name: entry.value for entry in await subscriptions.config(there, name)}
        assert found["share.record.lock.duration.ms"] == "17000"

        await subscriptions.move(here, name, {TopicPartition(topic, 0): 7})
        await mirror_once(west, east, topic, subscriptions=named(name))
        assert await starts(east, name) == {0: 7}
        await subscriptions.delete(there, name)
        await mirror_once(west, east, topic, subscriptions=named(name))
        assert name not in [each.group for each in await subscriptions.list_all(there)]


async def test_a_position_that_is_unknown_for_the_moment_is_not_moved(
    west: Node, east: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The subscription works at the target, and its partition has no leader when the mirror looks."""
    name = f"s-{topic}"
    at = TopicPartition(topic, 0)
    fill(west, topic, count=8)
    async with Client(west.bootstrap) as here, Client(east.bootstrap) as there:
        await subscriptions.alter_config(here, name, {TOPICS_CONFIG: topic})
        await subscriptions.move(here, name, {at: 3})
        await mirror_once(west, east, topic, subscriptions=named(name))
        await subscriptions.move(here, name, {at: 5})
        await subscriptions.move(there, name, {at: 7})

        async def unknown_in_the_east(client: Client, group: str) -> Any:
            found = await asked(client, group)
            return found if next(iter(found.values())).start == 5 else {}

        asked = subscriptions.positions
        with monkeypatch.context() as patched:
            patched.setattr(subscriptions, "positions", unknown_in_the_east)
            await mirror_once(west, east, topic, subscriptions=named(name))
        assert await starts(east, name) == {0: 7}


async def test_what_the_source_deleted_too_early_halts_its_partition_only(
    west: Node, east: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.mirrors.mirror.HALTED_PAUSE_S", 0.05)
    fill(west, topic, partitions=2, count=10)
    await mirror_once(west, east, topic)
    send(west, topic, 10, b"more ")
    plain.delete_before(west.bootstrap, topic, 0, 13)
    plain.send(west.bootstrap, topic, [Message(b"other", partition=1)])
    with pytest.raises(MirrorError, match="offsets 10 to 12 were deleted"):
        await mirror_once(west, east, topic)
    assert b"other" in values(await read_all(east, topic))
    assert copied(await mirror_once(west, east, topic, accepts_loss=True)) == 7


async def test_a_topic_that_was_made_anew_is_not_taken_for_the_old_one(
    west: Node, east: Node, topic: str
) -> None:
    fill(west, topic, count=5)
    await mirror_once(west, east, topic)
    plain.delete(west.bootstrap, topic)
    fill(west, topic, count=9, text=b"new ")
    with pytest.raises(MirrorError, match="created anew"):
        await mirror_once(west, east, topic)
    assert len(await read_all(east, topic)) == 5

    await mirror_once(west, east, topic, prefix="again.")
    plain.delete(east.bootstrap, f"again.{topic}")
    await mirror_once(west, east, topic, prefix="again.")  # the copy is gone: it is made anew
    assert values(await read_all(east, f"again.{topic}")) == values(await read_all(west, topic))


async def test_a_topic_that_is_made_anew_between_two_looks_is_noticed(
    west: Node, east: Node, topic: str
) -> None:
    """It is longer than the old one when it is read next: offsets alone would not show it."""
    fill(west, topic, count=5)
    async with mirroring(west, east, topic, every_s=3600) as mirror:
        await until_async(lambda: copied(mirror) == 5, "it is mirrored")
        plain.delete(west.bootstrap, topic)
        fill(west, topic, count=9, text=b"new ")
        await until_async(lambda: topic in mirror.halted_topics, "it is halted")
        assert "created anew" in mirror.halted_topics[topic]
        assert not mirror.watched
    assert values(await read_all(east, topic)) == [b"a%d" % n for n in range(5)]


async def test_numbers_begin_anew_where_the_target_has_deleted_copies(
    west: Node, east: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can count them any more."""
    fill(west, topic, count=5)
    await mirror_once(west, east, topic)
    send(east, topic, 4, b"own ")
    plain.delete_before(east.bootstrap, topic, 0, 8)
    send(west, topic, 3, b"more ")
    await mirror_once(west, east, topic)
    send(west, topic, 3, b"last ")
    await mirror_once(west, east, topic)
    assert values(await read_all(east, topic)) == [
        b"own 3", b"more 0", b"more 1", b"more 2", b"last 0", b"last 1", b"last 2",
    ]  # fmt: skip


async def test_a_lost_data_centre_loses_what_was_not_mirrored_until_it_is_back(
    postroad: Node, east: Node, topic: str
) -> None:
    """What docs/data-centres.md says of it, message by message."""
    group, west = f"g-{topic}", postroad
    plain.create(east.bootstrap, f"{topic}-other")  # the east has topics of its own, too
    fill(west, topic, count=100)
    await commit(west, group, topic, 0, 60)
    await mirror_once(west, east, topic, groups=named(group))
    send(west, topic, 10, b"late ")
    await commit(west, group, topic, 0, 105)  # neither is mirrored
    west.kill()

    assert await position(east, group, topic) == 60
    assert len(await read_all(east, topic)) == 100
    send(east, topic, 5, b"east ")
    await commit(east, group, topic, 0, 103)

    west.start()
    await mirror_once(west, east, topic, groups=named(group))
    assert values(await read_all(east, topic))[100:] == [
        *(b"east %d" % number for number in range(5)), *(b"late %d" % number for number in range(10))
    ]  # fmt: skip
    back = await mirror_once(east, west, topic, groups=named(group))
    assert back.carriage.groups[group].again > 0  # both sides have the last ones in another order
    await commit(east, group, topic, 0, 115)
    back = await mirror_once(east, west, topic, groups=named(group))
    assert back.carriage.groups[group].again == 0
    assert await position(west, group, topic) == 115
    assert sorted(values(await read_all(west, topic))) == sorted(values(await read_all(east, topic)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topics": ["missing"]}, "no topic missing"),
        ({"topics": []}, "Name topics"),
        ({"topics": [], "pattern": "("}, "no regular expression"),
        ({"groups": Wanted(pattern="[")}, "no regular expression"),
    ],
)
async def test_what_is_wrong_is_said_at_once(
    west: Node, east: Node, topic: str, change: dict[str, Any], text: str
) -> None:
    fill(west, topic)
    given = {"topics": [topic], **change}
    with pytest.raises(PostroadError, match=text):
        await mirror_once(west, east, *given.pop("topics"), **given)


async def test_a_cluster_is_no_mirror_of_itself(west: Node, topic: str) -> None:
    fill(west, topic)
    with pytest.raises(MirrorError, match="same cluster"):
        await mirror_once(west, west, topic)


@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
async def test_a_cluster_that_is_away_when_a_mirror_starts_is_waited_for(
    west: Node, postroad: Node, topic: str, is_source: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sides = (postroad, west) if is_source else (west, postroad)
    fill(sides[0], topic, count=3)
    await asyncio.to_thread(postroad.stop)
    async with mirroring(*sides, topic):
        await until_async(lambda: "waited for" in caplog.text, "it says so")  # and ends when it is told to
    async with mirroring(*sides, topic) as mirror:
        await asyncio.to_thread(postroad.start)
        await until_async(lambda: copied(mirror) == 3, "all is copied", 60)
