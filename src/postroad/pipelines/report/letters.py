"""Dead letters → small tables. A letter tells in its headers what became of the message.

Anybody may write such headers. So names are cut, only those that come up most stand for themselves, and a
number that can't be one is null: whatever the letters say, the tables stay small.

reasons     subscription, topic, reason, messages, first, last (when they were given up)
deliveries  subscription, topic, deliveries, messages
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from postroad.pipelines.report.measures import collected
from postroad.pipelines.report.records import header
from postroad.wire import header_names as names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


NAMES_MAX: Final = 50
NAME_CHARS_MAX: Final = 256  # of a topic at most 249
DELIVERIES_MAX: Final = 32_767  # as Kafka counts them
OTHERS: Final = "(others)"

_NAMES: Final = ("subscription", "topic", "reason")


def letters(records: DataFrame, asked: Sequence[str]) -> DataFrame:
    """One row for each dead letter of these topics: those that died there, and those that lie there."""
    tries = _number(names.DEAD_DELIVERIES)
    told = records.select(
        sf.col("topic").alias("lies_in"),
        _name(names.DEAD_SUBSCRIPTION).alias("subscription"),
        _name(names.DEAD_TOPIC).alias("topic"),
        _name(names.DEAD_REASON).alias("reason"),
        sf.when(tries.between(0, DELIVERIES_MAX), tries).alias("deliveries"),
        _number(names.DEAD_TIMESTAMP).alias("published_ms"),
        _number(names.DEAD_FIRST_DELIVERY).alias("first_ms"),
        _number(names.DEAD_LAST_DELIVERY).alias("last_ms"),
        sf.col("timestamp").alias("died"),
    )
    is_asked = sf.col("topic").isin(*asked) | sf.col("lies_in").isin(*asked)
    return _with_few_names(told.where(sf.isnotnull("reason") & is_asked))


def _with_few_names(found: DataFrame) -> DataFrame:
    most = (
        found.groupBy(*_NAMES).count().orderBy(sf.desc("count"), *_NAMES).limit(NAMES_MAX).select(*_NAMES)
    ).collect()
    few = {}
    for topic_partition, column in enumerate(_NAMES):
        known = sorted({row[topic_partition] for row in most if row[topic_partition] is not None})
        stays = sf.isnull(column) | sf.col(column).isin(known)
        few[column] = sf.when(stays, sf.col(column)).otherwise(OTHERS)
    return found.withColumns(few)


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


def _name(header_name: str) -> Column:
    return sf.left(header(header_name), sf.lit(NAME_CHARS_MAX))


def _number(name: str) -> Column:
    return header(name).try_cast("bigint")
