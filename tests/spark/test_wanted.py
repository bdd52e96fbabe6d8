"""Filters of a query bound what is read, and leave out nothing that they take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from postroad.spark.wanted import EVERYTHING, Wanted, of_filters
from postroad.testing import Node
from tests.spark.plain import Message, create, of_spark, read_all, send
from tests.spark.plans import metrics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
NOON_MS = 1_700_000_000_000
LAST = EVERYTHING.times_ms[1]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([EqualTo(("offset",), 7)], Wanted(offsets=(7, 7))),
        ([GreaterThan(("offset",), 7), LessThan(("offset",), 9)], Wanted(offsets=(8, 8))),
        ([In(("offset",), (9, 3, None))], Wanted(offsets=(3, 9))),
        ([EqualTo(("partition",), 1), In(("partition",), (1, 2))], Wanted(partitions=frozenset({1}))),
        ([EqualTo(("partition",), 1), EqualTo(("partition",), 2)], Wanted(partitions=frozenset())),
        ([EqualNullSafe(("topic",), "a"), In(("topic",), ("a", "b"))], Wanted(topics=frozenset({"a"}))),
        ([EqualNullSafe(("topic",), None)], Wanted(topics=frozenset())),
        (
            [GreaterThanOrEqual(("timestamp",), datetime(1970, 1, 1, 0, 0, 0, 1500, UTC))],
            Wanted(times_ms=(2, LAST)),
        ),
        ([LessThan(("timestamp",), datetime(1970, 1, 1, 0, 0, 0, 1500, UTC))], Wanted(times_ms=(-LAST, 1))),
        ([GreaterThan(("timestamp",), datetime(1970, 1, 1, tzinfo=UTC))], Wanted(times_ms=(1, LAST))),
        ([EqualTo(("timestamp",), datetime(1970, 1, 1, 0, 0, 0, 1500, UTC))], Wanted(times_ms=(2, 1))),
        (
            [LessThanOrEqual(("timestamp",), datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))],
            Wanted(times_ms=(-LAST, 0)),
        ),
        # What says nothing certain leaves everything in.
        ([Not(EqualTo(("offset",), 7))], EVERYTHING),
        ([EqualTo(("value", "offset"), 7), StringStartsWith(("topic",), "a")], EVERYTHING),
        ([EqualTo(("offset",), 7.0), LessThan(("timestamp",), datetime(2020, 1, 1))], EVERYTHING),
        ([EqualTo(("key",), b"7"), In(("partition",), (1, "2"))], EVERYTHING),
    ],
)
def test_filters_are_bounds(filters: list[Filter], wanted: Wanted) -> None:
    assert of_filters(filters) == wanted


@pytest.fixture
def disordered(node: Node, topic: str) -> str:
    """Two partitions of 200 messages, a second apart, of which every tenth is a minute late."""
    create(node.bootstrap, topic, 2)
    for partition in range(2):
        messages = [
            Message(
                b"%d" % number, b"k", partition, time_ms=NOON_MS + 1000 * (number - number % 10 // 9 * 60)
            )
            for number in range(200)
        ]
        send(node.bootstrap, topic, messages)
    return topic


@pytest.mark.parametrize(
    ("where", "rows_read"),
    [
        ("partition = 1 and offset = 17", 1),
        ("offset between 10 and 19", 20),
        ("partition in (0, 5) and offset < 3", 3),
        ("offset >= 200", 0),
        ("topic = 'another'", 0),
        # 40 seconds of each partition, and what is a minute late.
        (
            "timestamp >= timestamp_millis({noon} + 100000) and timestamp<timestamp_millis({noon} + 140000)",
            80,
        ),
        ("timestamp > timestamp_millis({noon} + 999999999)", 0),
        ("timestamp = timestamp_millis({noon} + 5000)", 2),
    ],
)
def test_only_what_the_filters_take_is_read(
    spark: SparkSession, node: Node, disordered: str, where: str, rows_read: int
) -> None:
    where = where.format(noon=NOON_MS)
    everything = of_spark(frame(spark, node, disordered).collect())
    assert everything == read_all(node.bootstrap, disordered)
    plain = of_spark(frame(spark, node, disordered).where(where).collect())
    spark.conf.set(PUSHDOWN, "true")
    try:
        filtered = frame(spark, node, disordered).where(where)
        assert of_spark(filtered.collect()) == plain
        assert sum(metrics(filtered, "BatchScan", "numOutputRows")) == rows_read
    finally:
        spark.conf.unset(PUSHDOWN)


def test_session_without_the_setting_reads_as_ever(spark: SparkSession, node: Node, disordered: str) -> None:
    spark.conf.set(PUSHDOWN, "false")
    found = frame(spark, node, disordered).where("partition = 1 and offset = 17")
    assert [row.offset for row in found.collect()] == [17]


def frame(spark: SparkSession, node: Node, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return spark.read.format("postroad").options(**options).load()
