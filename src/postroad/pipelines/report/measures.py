"""Messages → small tables. Each function is one aggregation; what comes back fits in the driver's memory.

    topics      topic (null: all together), messages, bytes, first, last, keys, without_key, tombstones,
                p50_bytes, p95_bytes, p99_bytes, max_bytes
    minutes     topic, minute, messages, bytes
    sizes       topic, from_bytes (a power of two, up to its double), messages
    partitions  topic, partition, messages, bytes, first_offset, last_offset
    keys        topic, key, messages, bytes: the hottest

Percentiles and the number of different keys are estimates (within 0.01 % of rank, and some 5 %).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HOTTEST_KEYS: Final = 20
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_ACCURACY: Final = 10_000  # of percentile_approx: 1.0 / this is its error in rank


def topics(records: DataFrame) -> Any:
    return collected(
        records.rollup("topic")
        .agg(
            sf.count("*").alias("messages"),
            sf.coalesce(sf.sum("bytes"), sf.lit(0)).alias("bytes"),
            sf.min("timestamp").alias("first"),
            sf.max("timestamp").alias("last"),
            sf.approx_count_distinct("key").alias("keys"),
            sf.count_if(sf.isnull("key")).alias("without_key"),
            sf.count_if("is_tombstone").alias("tombstones"),
            percentiles("bytes").alias("percentiles"),
            sf.max("bytes").alias("max_bytes"),
        )
        .select(
            *("topic", "messages", "bytes", "first", "last", "keys", "without_key", "tombstones"),
            *spread("bytes"),
            "max_bytes",
        ),
        "topic",
    )


def minutes(records: DataFrame) -> Any:
    return collected(
        records.groupBy("topic", sf.date_trunc("minute", "timestamp").alias("minute")).agg(
            sf.count("*").alias("messages"), sf.sum("bytes").alias("bytes")
        ),
        "topic",
        "minute",
    )


def sizes(records: DataFrame) -> Any:
    return collected(
        records.groupBy("topic", power_of_two("bytes").alias("from_bytes")).agg(
            sf.count("*").alias("messages")
        ),
        "topic",
        "from_bytes",
    )


def partitions(records: DataFrame) -> Any:
    return collected(
        records.groupBy("topic", "partition").agg(
            sf.count("*").alias("messages"),
            sf.sum("bytes").alias("bytes"),
            sf.min("offset").alias("first_offset"),
            sf.max("offset").alias("last_offset"),
        ),
        "topic",
        "partition",
    )


def keys(records: DataFrame) -> Any:
    """The hottest over all topics. Messages without a key are nobody's."""
    return collected(
        records.where(sf.isnotnull("key"))
        .groupBy("topic", "key")
        .agg(sf.count("*").alias("messages"), sf.sum("bytes").alias("bytes"))
        .orderBy(sf.desc("messages"), "topic", "key")
        .limit(HOTTEST_KEYS)
    )


def collected(frame: DataFrame, *order: str) -> Any:
    """As an Arrow table, sorted by these columns: here, for Spark would need another shuffle for it.

    Times are UTC's, whatever zone the session has.
    """
    table = frame.toArrow()
    fields = (
        field.with_type(pa.timestamp("us", tz="UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    )
    sound = table.cast(pa.schema(fields))
    return sound.sort_by([(name, "ascending") for name in order]) if order else sound


def percentiles(column: str) -> Column:
    """An array of them, in the order of PERCENTILES."""
    return sf.percentile_approx(column, list(PERCENTILES.values()), _ACCURACY)


def spread(unit: str) -> list[Column]:
    """The column `percentiles` as columns of their own: `p50_bytes`, …"""
    return [
        sf.col("percentiles")[topic_partition].alias(f"{name}_{unit}")
        for topic_partition, name in enumerate(PERCENTILES)
    ]


def power_of_two(column: str) -> Column:
    """The largest that is not above the value; 1 for less. By digits, because logarithms are inexact."""
    digits = sf.length(sf.bin(sf.greatest(sf.col(column), sf.lit(1))))
    return sf.pow(sf.lit(2), digits - 1).cast("bigint")
