"""Two clusters: what is in one is in the other, once, and consumers find their place again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from pyspark.sql import SparkSession

from postroad.client import Client, subscriptions
from postroad.client import TopicPartition as At
from postroad.errors import PostroadError
from postroad.mirrors.positions import Wanted
from postroad.pipelines.delivery import Span
from postroad.pipelines.mirror import MirrorSettings, mirror
from postroad.pipelines.offset_map import OffsetMap, Translation
from postroad.pipelines.origins import SPANS_MAX, thinned
from postroad.pipelines.running import Progress
from postroad.pipelines.steps import StepState
from postroad.spark.cluster import Cluster
from postroad.testing import Node
from postroad.testing import node as start_node
from postroad.wire import header_names as names
from postroad.wire.subscription_names import TOPICS_CONFIG
from tests import shared_node
from tests.spark import plain
from tests.spark.plain import Message, Row

MESSAGES = [
    Message(b"v%d" % number, b"k%d" % (number % 5), number % 3, [("n", b"%d" % number)], 1_000_000 + number)
    for number in range(60)
]


@pytest.fixture(scope="module")
def other() -> Iterator[Node]:
    """A second cluster, of its own."""
    with start_node(shared_node.SETTINGS) as running:
        yield running


@pytest.fixture
def filled(node: Node, topic: str) -> str:
    plain.create(node.bootstrap, topic, 3, retention_ms="-1", max_message_bytes="2000000")
    plain.send(node.bootstrap, topic, MESSAGES)
    return topic


def settings(node: Node, other: Node, topic: str, **changes: Any) -> MirrorSettings:
    return MirrorSettings(
        node.bootstrap, other.bootstrap, [topic], **{"once": True, "name": topic, **changes}
    )


def plainly(rows: list[Row]) -> list[tuple[Any, ...]]:
    """What a mirror keeps, by partition and order."""
    return [
        (row.partition, row.key, row.value, row.time_ms, [h for h in row.headers if names.ORIGIN not in h[0]])
        for row in rows
    ]


def position(bootstrap: str, group: str, topic: str, partition: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], 30)
        return int(found.offset)
    finally:
        consumer.close()


def commit(bootstrap: str, group: str, topic: str, partition: int, offset: int) -> None:
    with Cluster(bootstrap) as cluster:
        cluster.commit(group, {(topic, partition): offset})


def test_topics_come_with_partitions_settings_and_origin(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    seen: list[Progress] = []
    done = mirror(spark, settings(node, other, filled), report=seen.append)
    assert (done.rows, done.is_complete, seen[-1].done) == (60, True, 60)
    assert sum(each.bytes for each in seen) > 60 * len("k0v0n0")

    rows = plain.read_all(other.bootstrap, filled)
    assert plainly(rows) == plainly(plain.read_all(node.bootstrap, filled))
    with Cluster(node.bootstrap) as source:
        cluster_id = source.id()
    row = rows[7]
    assert dict(row.headers) == {
        "n": row.headers[0][1],
        names.ORIGIN_CLUSTER: cluster_id.encode(),
        names.ORIGIN_TOPIC: filled.encode(),
        names.ORIGIN_PARTITION: b"%d" % row.partition,
        names.ORIGIN_OFFSET: b"%d" % row.offset,
        names.ORIGIN_TIMESTAMP: b"%d" % row.time_ms,
    }
    resource = ConfigResource(ConfigResource.Type.TOPIC, filled)
    admin = AdminClient({"bootstrap.servers": other.bootstrap})
    config = admin.describe_configs([resource])[resource].result(30)
    assert (config["retention.ms"].value, config["max.message.bytes"].value) == ("-1", "2000000")


def test_a_mirror_goes_on_where_it_was_and_follows_new_partitions(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    mirror(spark, settings(node, other, filled))
    plain.add_partitions(node.bootstrap, filled, 4)
    plain.send(node.bootstrap, filled, [Message(b"new", b"k", 3), Message(b"more", b"k", 0)])

    assert mirror(spark, settings(node, other, filled)).rows == 2
    assert mirror(spark, settings(node, other, filled)).rows == 0

    assert plainly(plain.read_all(other.bootstrap, filled)) == plainly(plain.read_all(node.bootstrap, filled))


def test_two_clusters_that_mirror_each_other_send_nothing_back(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    """Each has messages that the other has not yet; a group that reads in the one comes along."""
    plain.create(other.bootstrap, filled, 3)
    plain.send(other.bootstrap, filled, [Message(b"from the other side", b"k")] * 2)
    group = f"g-{filled}"
    commit(node.bootstrap, group, filled, 0, 5)
    there = settings(node, other, filled, groups=[group])
    back = settings(other, node, filled, groups=[group], name=f"{filled} back")
    assert mirror(spark, there).rows == 60
    assert mirror(spark, back).rows == 2
    assert [position(each.bootstrap, group, filled, 0) for each in (node, other)] == [5, 0]

    commit(node.bootstrap, group, filled, 0, 22)
    assert mirror(spark, there).rows == 0
    assert position(other.bootstrap, group, filled, 0) == 22

    both = [plain.read_all(each.bootstrap, filled) for each in (node, other)]
    assert sorted(row.value or b"" for row in both[0]) == sorted(row.value or b"" for row in both[1])
    assert len(both[0]) == 62


def test_groups_find_their_place_though_offsets_differ(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    """The target has messages of its own, and the source has deleted some: no offset is the same."""
    plain.create(other.bootstrap, f"dc1.{filled}", 3)
    plain.send(other.bootstrap, f"dc1.{filled}", [Message(b"own", b"k", 1)] * 7)
    plain.delete_before(node.bootstrap, filled, 1, 4)
    group = f"g-{filled}"
    commit(node.bootstrap, group, filled, 1, 10)
    commit(node.bootstrap, group, filled, 2, 20)

    first = mirror(spark, settings(node, other, filled, prefix="dc1.", group_pattern="g-t-.*"))

    assert first.groups[group] == 2
    target = f"dc1.{filled}"
    there = {(row.partition, row.offset): row for row in plain.read_all(other.bootstrap, target)}
    at = position(other.bootstrap, group, target, 1)
    assert at == 7 + 6
    assert dict(there[1, at].headers)[names.ORIGIN_OFFSET] == b"10"
    assert position(other.bootstrap, group, target, 2) == 20

    commit(other.bootstrap, group, target, 2, 20)  # it has failed over and stays where it is
    commit(node.bootstrap, group, filled, 2, 3)
    mirror(spark, settings(node, other, filled, prefix="dc1.", groups=[group]))
    assert position(other.bootstrap, group, target, 2) == 20


def carry_on(node: Node, name: str, topic: str, starts: dict[int, int], **config: str) -> None:
    """The subscription goes on from these offsets."""

    async def work() -> None:
        async with Client(node.bootstrap) as client:
            if config:
                await subscriptions.alter_config(client, name, {TOPICS_CONFIG: topic, **config})
            await subscriptions.move(client, name, {At(topic, each): at for each, at in starts.items()})

    asyncio.run(work())


def starts_of(node: Node, name: str) -> dict[At, int]:
    async def ask() -> dict[At, int]:
        async with Client(node.bootstrap) as client:
            return {at: each.start for at, each in (await subscriptions.positions(client, name)).items()}

    return asyncio.run(ask())


def config_of(node: Node, name: str) -> dict[str, str | None]:
    async def ask() -> dict[str, str | None]:
        async with Client(node.bootstrap) as client:
            return {each.name: each.value for each in await subscriptions.config(client, name)}

    return asyncio.run(ask())


def test_subscriptions_find_their_place_though_offsets_differ(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    """The target has messages of its own, and the source has deleted some: no offset is the same."""
    target, name = f"dc1.{filled}", f"s-{filled}"
    plain.create(other.bootstrap, target, 3)
    plain.send(other.bootstrap, target, [Message(b"own", b"k", 1)] * 7)
    plain.delete_before(node.bootstrap, filled, 1, 4)
    lock = "share.record.lock.duration.ms"
    carry_on(node, name, filled, {0: 0, 1: 10, 2: 20}, **{lock: "17000"})
    wanted = settings(node, other, filled, prefix="dc1.", subscriptions=Wanted(pattern=f"s-{filled}"))

    first = mirror(spark, wanted)

    assert (first.subscriptions[name].moved, first.subscriptions[name].again) == (3, 0)
    assert starts_of(other, name) == {At(target, 0): 0, At(target, 1): 7 + 6, At(target, 2): 20}
    assert config_of(other, name)[lock] == "17000"
    assert config_of(other, name)[TOPICS_CONFIG] == target

    carry_on(node, name, filled, {0: 9, 1: 5, 2: 20})
    assert mirror(spark, wanted).subscriptions[name].moved == 1
    assert starts_of(other, name) == {At(target, 0): 9, At(target, 1): 13, At(target, 2): 20}


def test_a_step_that_was_interrupted_is_repeated_once_and_its_offsets_are_found(
    spark: SparkSession, node: Node, other: Node, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when all is sent and nothing of the map is noted."""
    group = f"g-{filled}"
    commit(node.bootstrap, group, filled, 0, 12)

    class Crash(Exception):
        pass

    def crash(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(OffsetMap, "add", crash)
        with pytest.raises(Crash):
            mirror(spark, settings(node, other, filled, groups=[group]))
    plain.send(other.bootstrap, filled, [Message(b"in between", b"k", 0)])

    done = mirror(spark, settings(node, other, filled, groups=[group]))

    rows = [row for row in plain.read_all(other.bootstrap, filled) if row.value != b"in between"]
    assert plainly(rows) == plainly(plain.read_all(node.bootstrap, filled))
    assert (done.groups, position(other.bootstrap, group, filled, 0)) == ({group: 1}, 12)


def test_it_runs_until_it_is_stopped(spark: SparkSession, node: Node, other: Node, filled: str) -> None:
    stop = threading.Event()
    sent_more: list[Progress] = []

    def report(progress: Progress) -> None:
        sent_more.append(progress)
        if len(sent_more) == 1:
            plain.send(node.bootstrap, filled, [Message(b"later", b"k")])
        else:
            stop.set()

    endless = settings(node, other, filled, once=False, every_s=0.1, commit_group=f"m-{filled}")
    done = mirror(spark, endless, report=report, stop=stop)

    assert done.rows == 61
    assert position(node.bootstrap, f"m-{filled}", filled, 0) == 21


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"topics": ["missing"]}, "no topic missing"),
        ({"topics": []}, "Name topics"),
        ({"pattern": "("}, "no regular expression"),
        ({"group_pattern": "["}, "no regular expression"),
        ({"subscriptions": Wanted(pattern="[")}, "no regular expression"),
        ({"target": None}, "the same cluster"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    spark: SparkSession, node: Node, other: Node, change: dict[str, Any], text: str
) -> None:
    given = {"source": node.bootstrap, "target": other.bootstrap, "topics": ["any"], "once": True, **change}
    given["target"] = given["target"] or node.bootstrap
    with pytest.raises(PostroadError, match=text):
        mirror(spark, MirrorSettings(**given))


def test_what_the_source_deleted_too_early_is_told(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    mirror(spark, settings(node, other, filled))
    plain.send(node.bootstrap, filled, plain.numbered(5))
    plain.delete_before(node.bootstrap, filled, 0, 23)
    with pytest.raises(PostroadError, match="offsets 20 to 22 were deleted"):
        mirror(spark, settings(node, other, filled))
    assert mirror(spark, settings(node, other, filled, accepts_loss=True)).rows == 2


def test_a_step_that_was_begun_is_repeated_without_partitions_that_lost_messages() -> None:
    """The others' messages may be stored already, and are known by the number of the step."""
    one, other = ("orders", 0), ("orders", 1)
    state = StepState.new({}, {one: 0, other: 0}, {one: 9, other: 9})
    begun = replace(state, until={one: 5, other: 5}, step=3, extra={"target_ends": {}})
    assert begun.without({one: 2}) == replace(begun, at={one: 2, other: 0}, until={one: 2, other: 5})
    assert begun.without({one: 7, other: 2}).step == 4
    assert not begun.without({one: 7, other: 2}).is_planned
    assert state.without({one: 7}).step == 0


def test_another_prefix_is_another_copy_and_another_topic_of_the_name_is_refused(
    spark: SparkSession, node: Node, other: Node, filled: str
) -> None:
    mirror(spark, settings(node, other, filled))
    second = settings(node, other, filled, name=f"{filled} two", prefix="dc1.")
    assert mirror(spark, second).rows == 60

    plain.delete(node.bootstrap, filled)
    plain.create(node.bootstrap, filled, 3)
    plain.send(node.bootstrap, filled, MESSAGES * 2)
    with pytest.raises(PostroadError, match="created anew"):
        mirror(spark, settings(node, other, filled))
    assert len(plain.read_all(other.bootstrap, filled)) == 60


def test_translated_offsets_are_never_ahead(other: Node, topic: str) -> None:
    with Cluster(other.bootstrap) as cluster:
        made = OffsetMap(cluster, topic, "")
        topic_partition = ("orders", 0)
        assert made.translate(topic_partition, 5) is None
        made.add({topic_partition: [Span(10, 19, 100), Span(20, 24, 110), Span(40, 49, 200)]})
        made.add({topic_partition: [Span(20, 24, 110), Span(45, 54, 205)]})  # known already, and partly so
        for known in (made, OffsetMap(cluster, topic, "")):
            assert known.end(topic_partition) == 55
            wanted = {9: None, 10: 100, 15: 105, 24: 114, 30: 115, 40: 200, 54: 214, 99: 215}
            assert {offset: known.translate(topic_partition, offset) for offset in wanted} == wanted
        made.prune({topic_partition: 115})
        assert OffsetMap(cluster, topic, "").translate(topic_partition, 30) is None
        assert OffsetMap(cluster, topic, "").translate(topic_partition, 41) == 201


def test_mirrors_with_different_prefixes_have_maps_of_their_own(other: Node, topic: str) -> None:
    topic_partition = ("orders", 0)
    with Cluster(other.bootstrap) as cluster:
        OffsetMap(cluster, topic, "").add({topic_partition: [Span(0, 999, 0)]})
        assert OffsetMap(cluster, topic, "dc1.").end(topic_partition) is None
        OffsetMap(cluster, topic, "dc1.").add({topic_partition: [Span(0, 4, 70)]})
        assert OffsetMap(cluster, topic, "").translate(topic_partition, 3) == 3
        assert OffsetMap(cluster, topic, "dc1.").translate(topic_partition, 3) == 73


def test_a_map_knows_a_topic_from_another_of_its_name(other: Node, topic: str) -> None:
    with Cluster(other.bootstrap) as cluster:
        OffsetMap(cluster, topic, "").claim({"orders": "1", "paid": "2"})
        OffsetMap(cluster, topic, "").claim({"orders": "1", "more": "3"})
        with pytest.raises(PostroadError, match=r"orders was deleted at the source .* created anew"):
            OffsetMap(cluster, topic, "").claim({"orders": "9"})
        OffsetMap(cluster, topic, "dc1.").claim({"orders": "9"})


def test_where_clusters_mirror_each_other_a_position_is_before_all_that_is_unread(
    node: Node, other: Node, topic: str
) -> None:
    """The source has a1 a2 b1 b2, the target b1 b2 a1 a2."""
    topic_partition = ("orders", 0)
    with Cluster(node.bootstrap) as source, Cluster(other.bootstrap) as target:
        there, back = OffsetMap(target, topic, ""), OffsetMap(source, topic, "")
        there.add({topic_partition: [Span(0, 1, 2)]})
        alone = Translation(there, {topic_partition: 0}, lambda: None)
        assert [alone(topic_partition, offset) for offset in range(5)] == [0] * 5
        back.add({topic_partition: [Span(0, 1, 2)]})
        both = Translation(there, {topic_partition: 0}, lambda: back)
        assert [both(topic_partition, offset) for offset in range(5)] == [0, 0, 0, 1, 4]
        assert Translation(there, {topic_partition: 2}, lambda: back)(topic_partition, 1) == 3
        there.add(
            {topic_partition: [Span(0, 1, 4), Span(4, 5, 6)]}
        )  # a step that was stored twice, then another
        assert Translation(there, {topic_partition: 0}, lambda: back)(topic_partition, 6) == 8
        assert Translation(there, None, lambda: back)(topic_partition, 1) == 3


def test_a_map_of_many_gaps_becomes_coarser_and_keeps_both_ends() -> None:
    spans = [Span(2 * number, 2 * number, number) for number in range(5_000)]
    found = thinned(spans)
    assert len(found) == SPANS_MAX
    assert (found[0][:3], found[-1]) == (spans[0][:3], spans[-1])
    assert {span.reach for span in found} == {5_000}


def test_a_coarse_map_tells_where_the_target_has_messages_of_its_own() -> None:
    spans = [Span(2 * number, 2 * number, number + (number >= 700)) for number in range(1_000)]
    assert {span.reach for span in thinned(spans)} == {700, 1_001}
