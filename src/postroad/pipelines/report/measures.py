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

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HOTTEST_KEYS: Final = 20
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_ACCURACY: Final = 10_000  # of percentile_approx: 1.0 / this is its error in rank


def topics(records: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.rollup("topic")
        .agg(
            F.count("*").alias("messages"),
            F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
            F.min("timestamp").alias("first"),
            F.max("timestamp").alias("last"),
            F.approx_count_distinct("key").alias("keys"),
            F.count_if(F.isnull("key")).alias("without_key"),
            F.count_if("is_tombstone").alias("tombstones"),
            percentiles("bytes").alias("percentiles"),
            F.max("bytes").alias("max_bytes"),
        )
        .select(
            *("topic", "messages", "bytes", "first", "last", "keys", "without_key", "tombstones"),
            *spread("bytes"),
            "max_bytes",
        )
        .orderBy("topic")
        .toArrow()
    )


def minutes(records: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.groupBy("topic", F.date_trunc("minute", "timestamp").alias("minute"))
        .agg(F.count("*").alias("messages"), F.sum("bytes").alias("bytes"))
        .orderBy("topic", "minute")
        .toArrow()
    )


def sizes(records: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.groupBy("topic", power_of_two("bytes").alias("from_bytes"))
        .agg(F.count("*").alias("messages"))
        .orderBy("topic", "from_bytes")
        .toArrow()
    )


def partitions(records: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("messages"),
            F.sum("bytes").alias("bytes"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
        )
        .orderBy("topic", "partition")
        .toArrow()
    )


def keys(records: DataFrame) -> Any:
    """The hottest over all topics. Messages without a key are nobody's."""
    from pyspark.sql import functions as F  # noqa: N812

    return (
        records.where(F.isnotnull("key"))
        .groupBy("topic", "key")
        .agg(F.count("*").alias("messages"), F.sum("bytes").alias("bytes"))
        .orderBy(F.desc("messages"), "topic", "key")
        .limit(HOTTEST_KEYS)
        .toArrow()
    )


def percentiles(column: str) -> Column:
    """An array of them, in the order of PERCENTILES."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.percentile_approx(column, list(PERCENTILES.values()), _ACCURACY)


def spread(unit: str) -> list[Column]:
    """The column `percentiles` as columns of their own: `p50_bytes`, …"""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.col("percentiles")[place].alias(f"{name}_{unit}") for place, name in enumerate(PERCENTILES)]


def power_of_two(column: str) -> Column:
    """The largest that is not above the value; 1 for less. By digits, because logarithms are inexact."""
    from pyspark.sql import functions as F  # noqa: N812

    digits = F.length(F.bin(F.greatest(F.col(column), F.lit(1))))
    return F.pow(F.lit(2), digits - 1).cast("bigint")
