"""Dead letters → small tables. A letter tells in its headers what became of the message.

reasons     subscription, topic, reason, messages, first, last (when they were given up)
deliveries  subscription, topic, deliveries, messages
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from postroad.pipelines.report.records import header
from postroad.wire import header_names as names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def letters(records: DataFrame, asked: Sequence[str]) -> DataFrame:
    """One row for each dead letter of these topics: those that died there, and those that lie there."""
    from pyspark.sql import functions as F  # noqa: N812

    told = records.select(
        F.col("topic").alias("lies_in"),
        header(names.DEAD_SUBSCRIPTION).alias("subscription"),
        header(names.DEAD_TOPIC).alias("topic"),
        header(names.DEAD_REASON).alias("reason"),
        _number(names.DEAD_DELIVERIES).alias("deliveries"),
        _number(names.DEAD_TIMESTAMP).alias("published_ms"),
        _number(names.DEAD_FIRST_DELIVERY).alias("first_ms"),
        _number(names.DEAD_LAST_DELIVERY).alias("last_ms"),
        F.col("timestamp").alias("died"),
    )
    is_asked = F.col("topic").isin(*asked) | F.col("lies_in").isin(*asked)
    return told.where(F.isnotnull("reason") & is_asked)


def reasons(found: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        found.groupBy("subscription", "topic", "reason")
        .agg(F.count("*").alias("messages"), F.min("died").alias("first"), F.max("died").alias("last"))
        .orderBy(F.desc("messages"), "subscription", "topic", "reason")
        .toArrow()
    )


def deliveries(found: DataFrame) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        found.groupBy("subscription", "topic", "deliveries")
        .agg(F.count("*").alias("messages"))
        .orderBy("subscription", "topic", "deliveries")
        .toArrow()
    )


def _number(name: str) -> Column:
    return header(name).try_cast("bigint")
