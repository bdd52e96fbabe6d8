"""Dead letters → small tables. A letter tells in its headers what became of the message.

reasons     subscription, topic, reason, messages, first, last (when they were given up)
deliveries  subscription, topic, deliveries, messages
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from postroad.pipelines.report.measures import collected
from postroad.pipelines.report.records import header
from postroad.wire import header_names as names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def letters(records: DataFrame, asked: Sequence[str]) -> DataFrame:
    """One row for each dead letter of these topics: those that died there, and those that lie there."""
    told = records.select(
        sf.col("topic").alias("lies_in"),
        header(names.DEAD_SUBSCRIPTION).alias("subscription"),
        header(names.DEAD_TOPIC).alias("topic"),
        header(names.DEAD_REASON).alias("reason"),
        _number(names.DEAD_DELIVERIES).alias("deliveries"),
        _number(names.DEAD_TIMESTAMP).alias("published_ms"),
        _number(names.DEAD_FIRST_DELIVERY).alias("first_ms"),
        _number(names.DEAD_LAST_DELIVERY).alias("last_ms"),
        sf.col("timestamp").alias("died"),
    )
    is_asked = sf.col("topic").isin(*asked) | sf.col("lies_in").isin(*asked)
    return told.where(sf.isnotnull("reason") & is_asked)


def reasons(found: DataFrame) -> Any:
    return collected(
        found.groupBy("subscription", "topic", "reason").agg(
            sf.count("*").alias("messages"), sf.min("died").alias("first"), sf.max("died").alias("last")
        ),
        "subscription",
        "topic",
        "reason",
    )


def deliveries(found: DataFrame) -> Any:
    return collected(
        found.groupBy("subscription", "topic", "deliveries").agg(sf.count("*").alias("messages")),
        "subscription",
        "topic",
        "deliveries",
    )


def _number(name: str) -> Column:
    return header(name).try_cast("bigint")
