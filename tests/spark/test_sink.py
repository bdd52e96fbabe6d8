"""Rows that Spark writes are what a plain consumer reads; what can't be written is one clear error."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from postroad.client.partitioner import for_key
from postroad.testing import Node
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEADERS = "array<struct<key: string, value: binary>>"


def write(rows: DataFrame, node: Node, **options: str) -> None:
    settings = {"kafka.bootstrap.servers": node.bootstrap, **options}
    rows.write.format("postroad").options(**settings).mode("append").save()


def numbers(spark: SparkSession, count: int, tasks: int = 2, **columns: str) -> DataFrame:
    """Rows whose values are the numbers below `count`, with further columns as SQL."""
    more = [f"{sql} as {name}" for name, sql in columns.items()]
    return spark.range(0, count, 1, tasks).selectExpr("cast(id as string) as value", *more)


def test_a_plain_consumer_reads_what_was_written(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 3)
    when = datetime(2024, 5, 6, 7, 8, 9, 123000, UTC)
    rows = [
        (b"key", b"value", [("a", b"1"), ("a", None)], 2, when),
        (None, b"", None, 0, when),
        (b"", None, [], 1, when),
    ]
    schema = f"key binary, value binary, headers {HEADERS}, partition int, timestamp timestamp"
    write(spark.createDataFrame(rows, schema).coalesce(1), node, topic=topic)
    ms = int(when.timestamp() * 1000)
    assert plain.read_all(node.bootstrap, topic) == [
        plain.Row(topic, 0, 0, None, b"", ms),
        plain.Row(topic, 1, 0, b"", None, ms),
        plain.Row(topic, 2, 0, b"key", b"value", ms, (("a", b"1"), ("a", None))),
    ]


def test_keys_go_where_other_kafka_clients_send_them(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 5)
    write(numbers(spark, 2_000, key="concat('customer-', id % 100)"), node, topic=topic)
    found = plain.read_all(node.bootstrap, topic)
    assert sorted(int(row.value or b"") for row in found) == list(range(2_000))
    assert all(row.partition == for_key(row.key or b"", 5) for row in found)


def test_rows_without_a_key_are_spread_and_dated(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 4)
    before = int(datetime.now(UTC).timestamp() * 1000)
    write(numbers(spark, 4_096), node, topic=topic)
    found = plain.read_all(node.bootstrap, topic)
    assert {row.partition for row in found} == {0, 1, 2, 3}
    assert all(row.time_ms >= before for row in found)


def test_a_column_names_each_rows_topic_and_the_option_wins(
    spark: SparkSession, node: Node, topic: str
) -> None:
    for number in range(3):
        plain.create(node.bootstrap, f"{topic}-{number}", 2)
    rows = numbers(spark, 300, topic=f"concat('{topic}-', id % 3)", partition="cast(id % 2 as int)")
    write(rows, node)
    for number in range(3):
        found = plain.read_all(node.bootstrap, f"{topic}-{number}")
        assert sorted(int(row.value or b"") for row in found) == list(range(number, 300, 3))
        assert all(row.partition == int(row.value or b"") % 2 for row in found)
    write(rows.limit(10), node, topic=f"{topic}-0")
    assert len(plain.read_all(node.bootstrap, f"{topic}-0")) == 110


def test_every_compression_is_understood(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    for compression in ("gzip", "snappy", "lz4", "zstd"):
        write(numbers(spark, 500, tasks=1), node, topic=topic, **{"kafka.compression.type": compression})
    found = [int(row.value or b"") for row in plain.read_all(node.bootstrap, topic)]
    assert found == 4 * list(range(500))


def test_a_topic_that_takes_small_batches_gets_small_batches(
    spark: SparkSession, node: Node, topic: str
) -> None:
    plain.create(node.bootstrap, topic, 1, max_message_bytes="2000")
    write(numbers(spark, 1_000, tasks=1), node, topic=topic)
    assert [int(row.value or b"") for row in plain.read_all(node.bootstrap, topic)] == list(range(1_000))


def test_a_write_with_an_id_is_stored_once_however_often_it_is_repeated(
    spark: SparkSession, node: Node, topic: str
) -> None:
    plain.create(node.bootstrap, topic, 2)
    for batch in ("0", "0", "1", "0"):  # the last comes after its successor: it was stored before
        rows = numbers(spark, 100, more="'not a column of records'")
        write(rows, node, topic=topic, writeId="nightly", writeBatch=batch)
    found = sorted(int(row.value or b"") for row in plain.read_all(node.bootstrap, topic))
    assert found == sorted(2 * list(range(100)))


def test_a_topic_written_to_can_be_copied_as_it_is(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 2)
    plain.create(node.bootstrap, f"{topic}-copy", 2)
    plain.send(node.bootstrap, topic, [*plain.numbered(20), *plain.numbered(10, partition=1)])
    options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic}
    rows = spark.read.format("postroad").options(**options).load()
    write(rows, node, topic=f"{topic}-copy")
    copied = [row._replace(topic=topic) for row in plain.read_all(node.bootstrap, f"{topic}-copy")]
    assert copied == plain.read_all(node.bootstrap, topic)


# An address without a node, and not the whole of the 5 s that one has that was never reached.
NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.delivery.timeout.ms": "500"}

# Columns as SQL and options that differ from what would be right, and what is said. (What is wrong with the
# options or the columns' types alone: test_write_options.py.)
WRONG: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "a key of another type": ({"key": "id"}, {}, "Column key is of type bigint; it must be string or binary"),
    "an unknown option": ({}, {"topik": "x"}, "did you mean topic?"),
    "no such topic": ({}, {"topic": "nowhere"}, "There is no topic nowhere"),
    "no such topic in a row": ({"topic": "'nowhere'"}, {"topic": ""}, "There is no topic nowhere"),
    "a topic that is null": ({"topic": "cast(null as string)"}, {"topic": ""}, "A row has no topic"),
    "no such partition": ({"partition": "cast(9 as int)"}, {}, "has no partition 9: it has 2"),
    "a row that is too large": ({"key": "repeat('x', 1100000)"}, {}, "kafka.max.request.size"),
    "a broker that is down": ({}, NOBODY, "127.0.0.1:1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_written_is_one_clear_error(
    spark: SparkSession, node: Node, topic: str, case: str
) -> None:
    columns, options, said = WRONG[case]
    plain.create(node.bootstrap, topic, 2)
    rows = spark.range(0, 3, 1, 1).selectExpr(
        "'v' as value", *(f"{sql} as {name}" for name, sql in columns.items())
    )
    settings = {name: text for name, text in {"topic": topic, **options}.items() if text}
    with pytest.raises(Exception, match=re.escape(said)):
        write(rows, node, **settings)
    assert plain.read_all(node.bootstrap, topic) == []


def test_a_row_too_large_for_its_topic_is_named(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 1, max_message_bytes="2000")
    with pytest.raises(Exception, match=f"A row is too large for topic {topic}"):
        write(numbers(spark, 10, tasks=1, key="repeat('x', 3000)"), node, topic=topic)


def test_a_topic_is_never_overwritten(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    writing: Any = numbers(spark, 1).write.format("postroad").option("topic", topic)
    with pytest.raises(Exception, match="A topic can't be overwritten: use mode"):
        writing.option("kafka.bootstrap.servers", node.bootstrap).mode("overwrite").save()
