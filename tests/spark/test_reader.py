"""The batch reader: row for row what a plain Kafka consumer gets, and one clear error where that can't be."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.data_loss import DataLost
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range
from postroad.testing import Node
from postroad.testing import node as start_node
from tests.clients.wait import until
from tests.spark.plain import Message, create, delete_before, numbered, of_spark, read_all, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")
PARTITIONS = 10
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
# How long what may come back is waited for, and what "soon" is: a session's first job takes many seconds.
FOR_LONG = {"kafka.default.api.timeout.ms": "900000"}
SOON_S = 240.0


@pytest.fixture
def load(spark: SparkSession, node: Node) -> Callable[..., DataFrame]:
    """A DataFrame of the node's topics."""

    def load(schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("postroad").option("kafka.bootstrap.servers", node.bootstrap)
        if schema is not None:
            reader = reader.schema(schema)
        return reader.options(**options).load()

    return load


@pytest.fixture(scope="module")
def varied(node: Node) -> str:
    """Ten partitions with each compression, null keys and values, empty ones, and headers."""
    create(node.bootstrap, "varied", PARTITIONS)
    for number, codec in enumerate(COMPRESSIONS):
        send(
            node.bootstrap,
            "varied",
            [_varied(number * 200 + each) for each in range(200)],
            compression_type=codec,
        )
    return "varied"


def _varied(number: int) -> Message:
    kinds: list[list[tuple[str, bytes | None]]] = [
        [],
        [("a", b"1")],
        [("a", None), ("a", b""), ("ü", b"\xff")],
    ]
    headers = kinds[number % 3]
    key = None if number % 4 == 0 else b"" if number % 4 == 1 else b"key-%d" % number
    value = None if number % 5 == 0 else b"" if number % 5 == 1 else b"value-%d-" % number * (number % 40)
    return Message(value, key, number % PARTITIONS, headers, 1_700_000_000_000 + number)


@pytest.fixture(scope="module")
def timed(node: Node) -> str:
    """Two partitions of ten records, a second apart."""
    create(node.bootstrap, "timed", 2)
    both = [Message(b"%d" % n, partition=p, time_ms=1000 * (n + 1)) for p in (0, 1) for n in range(10)]
    send(node.bootstrap, "timed", both)
    return "timed"


def offsets_of(frame: DataFrame) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in frame.select("partition", "offset").collect():
        found.setdefault(row["partition"], []).append(row["offset"])
    return {partition: sorted(those) for partition, those in sorted(found.items())}


# --- equality ------------------------------------------------------------------------------------


def test_rows_are_those_of_a_plain_consumer(load: Callable[..., DataFrame], node: Node, varied: str) -> None:
    frame = load(subscribe=varied, includeHeaders=True)
    assert of_spark(frame.collect()) == read_all(node.bootstrap, varied)


def test_committed_rows_are_the_same_where_nobody_uses_transactions(
    load: Callable[..., DataFrame], timed: str
) -> None:
    options = {"kafka.isolation.level": "read_committed"}
    assert offsets_of(load(subscribe=timed, **options)) == {0: list(range(10)), 1: list(range(10))}


def test_rows_are_the_same_however_they_are_split(
    load: Callable[..., DataFrame], node: Node, varied: str
) -> None:
    frame = load(subscribe=varied, minPartitions=13, maxRecordsPerPartition=40)
    assert frame.rdd.getNumPartitions() == 30
    expected = [row._replace(headers=()) for row in read_all(node.bootstrap, varied)]
    assert of_spark(frame.collect()) == expected


def test_columns_are_those_of_the_kafka_connector(load: Callable[..., DataFrame], varied: str) -> None:
    kinds = dict(load(subscribe=varied, includeHeaders=True).dtypes)
    assert kinds == {
        "key": "binary",
        "value": "binary",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "headers": "array<struct<key:string,value:binary>>",
    }
    assert "headers" not in load(subscribe=varied).columns


def test_schema_of_the_user_is_the_projection(
    load: Callable[..., DataFrame], node: Node, varied: str
) -> None:
    frame = load("offset bigint, value binary", subscribe=varied)
    assert frame.columns == ["offset", "value"]
    found = sorted((row["offset"], row["value"] or b"") for row in frame.collect())
    assert found == sorted((row.offset, row.value or b"") for row in read_all(node.bootstrap, varied))


def test_several_topics_by_name_pattern_and_partition(
    load: Callable[..., DataFrame], varied: str, timed: str
) -> None:
    def topics(**options: str) -> set[tuple[str, int]]:
        rows = load(**options).select("topic", "partition").distinct().collect()
        return {(row["topic"], row["partition"]) for row in rows}

    both = {(timed, 0), (timed, 1)} | {(varied, number) for number in range(PARTITIONS)}
    assert topics(subscribe=f"{varied},{timed}") == both
    assert topics(subscribePattern="(var|tim).*d") == both
    assert topics(assign=json.dumps({varied: [3], timed: [1]})) == {(varied, 3), (timed, 1)}


# --- where to start and end ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {0: (0, 10), 1: (0, 10)}),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, {0: (0, 10), 1: (0, 10)}),
        ({"startingOffsets": '{"timed": {"0": 3, "1": -2}}'}, {0: (3, 10), 1: (0, 10)}),
        ({"endingOffsets": '{"timed": {"0": 3, "1": -1}}'}, {0: (0, 3), 1: (0, 10)}),
        ({"startingTimestamp": "4500"}, {0: (4, 10), 1: (4, 10)}),
        ({"endingTimestamp": "4000"}, {0: (0, 3), 1: (0, 3)}),
        ({"endingTimestamp": "99000"}, {0: (0, 10), 1: (0, 10)}),
        ({"startingOffsetsByTimestamp": '{"timed": {"0": 9000, "1": 1}}'}, {0: (8, 10), 1: (0, 10)}),
        ({"endingOffsetsByTimestamp": '{"timed": {"0": 9000, "1": 2000}}'}, {0: (0, 8), 1: (0, 1)}),
        ({"startingTimestamp": "99000", "startingOffsetsByTimestampStrategy": "latest"}, {}),
        ({"startingTimestamp": "3000", "endingOffsets": '{"timed": {"0": 5, "1": 2}}'}, {0: (2, 5)}),
    ],
)
def test_each_way_to_start_and_end(
    load: Callable[..., DataFrame], timed: str, options: dict[str, str], expected: dict[int, tuple[int, int]]
) -> None:
    found = offsets_of(load(subscribe=timed, **options))
    assert found == {partition: list(range(*bounds)) for partition, bounds in expected.items()}


def test_range_within_one_batch_has_its_own_records_only(node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(100), linger_ms=100)
    with Cluster(node.bootstrap) as cluster:
        batches = read_range(cluster, OffsetRange(topic, 0, 17, 23), columns.Columns(("offset",)))
        assert [offset for batch in batches for offset in batch.column(0).to_pylist()] == list(range(17, 23))


def test_small_range_of_large_records_is_read_to_its_end(node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    values = [b"%d" % number * (200_000 if number % 3 else 10) for number in range(10, 40)]
    send(node.bootstrap, topic, [Message(value) for value in values])
    with Cluster(node.bootstrap) as cluster:
        batches = read_range(cluster, OffsetRange(topic, 0, 1, 29), columns.Columns(("value",)))
        assert [value for batch in batches for value in batch.column(0).to_pylist()] == values[1:29]


def test_empty_topic_has_no_rows(load: Callable[..., DataFrame], node: Node, topic: str) -> None:
    create(node.bootstrap, topic, 3)
    assert load(subscribe=topic).count() == 0


def test_gaps_of_compaction_are_passed_over() -> None:
    config = {"cleanup_policy": "compact", "segment_bytes": "5000", "min_cleanable_dirty_ratio": "0.01"}
    with start_node({"storage.compaction_check_ms": 50}) as compacting:
        create(compacting.bootstrap, "gaps", 1, **config)
        again = [Message(b"x" * 100, b"%d" % (number % 5)) for number in range(300)]
        send(compacting.bootstrap, "gaps", again, batch_num_messages=7)
        with Cluster(compacting.bootstrap) as cluster:
            whole = OffsetRange("gaps", 0, 0, cluster.latest([("gaps", 0)])["gaps", 0])
            until(lambda: _is_compacted_and_read(compacting, cluster, whole), "what a plain consumer reads")


def _is_compacted_and_read(node: Node, cluster: Cluster, whole: OffsetRange) -> bool:
    """Both read the same, with gaps. Compaction may go on between the one's look and the other's."""
    batches = read_range(cluster, whole, columns.Columns(("offset",)))
    found = [offset for batch in batches for offset in batch.column(0).to_pylist()]
    return len(found) < whole.size and found == [row.offset for row in read_all(node.bootstrap, whole.topic)]


# --- what can't be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscribe": "timed", "maxOffsetPerTrigger": "5"}, "did you mean maxOffsetsPerTrigger?"),
        ({"subscribe": "timed", "assign": "{}"}, "subscribe and assign contradict each other"),
        ({"subscribe": "timed", "kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"subscribe": "nowhere"}, "There is no topic nowhere"),
        ({"assign": '{"timed": [5]}'}, "timed/5, and there is no such partition"),
        (
            {"subscribe": "timed", "startingOffsets": '{"timed": {"0": 11, "1": 0}}'},
            "The starting offset of timed/0 is 11, but the log ends at 10",
        ),
        (
            {"subscribe": "timed", "endingOffsets": '{"timed": {"0": 5, "1": 1000}}'},
            "The ending offset of timed/1 is 1,000, but the log ends at 10",
        ),
        ({"subscribe": "timed", "startingOffsets": '{"timed": {"0": 5}}'}, "lacks timed/1"),
        ({"subscribe": "timed", "startingTimestamp": "99000"}, "has no record at or after timestamp 99000"),
    ],
)
def test_wrong_options_are_one_clear_error(
    load: Callable[..., DataFrame], timed: str, options: dict[str, str], says: str
) -> None:
    started = time.monotonic()
    with pytest.raises(Exception) as caught:
        load(**FOR_LONG, **options).collect()
    assert says in str(caught.value)
    assert time.monotonic() - started < SOON_S


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("value string", "column value is of type binary, not string"),
        ("amount int", "a topic has no column 'amount'"),
        ("headers array<struct<key string, value binary>>", "includeHeaders=true"),
    ],
)
def test_schema_that_does_not_fit_is_one_clear_error(
    load: Callable[..., DataFrame], timed: str, schema: str, says: str
) -> None:
    with pytest.raises(Exception) as caught:
        load(schema, subscribe=timed).collect()
    assert says in str(caught.value)


def test_broker_that_is_down_is_an_error_soon(spark: SparkSession) -> None:
    started = time.monotonic()
    reader = spark.read.format("postroad").options(**FOR_LONG, **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(Exception) as caught:
        reader.option("subscribe", "orders").load().collect()
    assert "nothing listens on 127.0.0.1:1" in str(caught.value)
    assert time.monotonic() - started < SOON_S


def test_deleted_records_are_lost_data(load: Callable[..., DataFrame], node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    delete_before(node.bootstrap, topic, 0, 4)
    start = json.dumps({topic: {"0": 1}})
    with pytest.raises(Exception) as caught:
        load(subscribe=topic, startingOffsets=start).collect()
    text = str(caught.value)
    assert f"{topic}/0: offsets 1 to 3 (3) are gone: the log begins at 4 (written 20" in text
    assert "failOnDataLoss=false" in text
    assert offsets_of(load(subscribe=topic, startingOffsets=start, failOnDataLoss=False)) == {
        0: list(range(4, 10))
    }


def test_records_that_vanish_while_they_are_read_are_lost_data(node: Node, topic: str) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    delete_before(node.bootstrap, topic, 0, 5)
    wanted, part = columns.Columns(("offset",)), OffsetRange(topic, 0, 2, 10)
    with Cluster(node.bootstrap) as cluster:
        with pytest.raises(DataLost, match=r"offsets 2 to 4 \(3\) are gone"):
            list(read_range(cluster, part, wanted))
        found = [
            offset
            for batch in read_range(cluster, part, wanted, fail_on_data_loss=False)
            for offset in batch.column(0).to_pylist()
        ]
    assert found == list(range(5, 10))


def test_read_survives_a_restart_of_the_broker(postroad: Node, topic: str) -> None:
    create(postroad.bootstrap, topic)
    send(postroad.bootstrap, topic, numbered(2000))
    found: list[int] = []
    with Cluster(postroad.bootstrap) as cluster:
        part = OffsetRange(topic, 0, 0, 2000)
        for batch in read_range(cluster, part, columns.Columns(("offset",)), fetch_bytes=2000):
            if not found:
                postroad.kill()
                starter = threading.Thread(target=postroad.start)
                starter.start()
            found += batch.column(0).to_pylist()
        starter.join()
    assert found == list(range(2000))


def test_plain_consumer_and_spark_agree_about_time(
    load: Callable[..., DataFrame], node: Node, topic: str
) -> None:
    create(node.bootstrap, topic, 1, message_timestamp_type="LogAppendTime")
    send(node.bootstrap, topic, numbered(3))
    rows = load(subscribe=topic).collect()
    assert of_spark(rows) == read_all(node.bootstrap, topic)
    assert {row["timestampType"] for row in rows} == {1}
