"""How long messages took, as far as it is written down somewhere.

    created → stored       a header with a creation time, and a topic whose times are the broker's
    created → published    the same where a topic's times are its producers'
    published → delivered  the first delivery, known of dead letters only
    first → last delivery  of dead letters that were delivered more than once
    published → given up   of dead letters

When a message that was accepted had been delivered is written down nowhere.

    latency            step, topic, messages, p50_ms, p95_ms, p99_ms, max_ms, negative
    latency_histogram  step, topic, from_ms (a power of two, up to its double), messages

`negative` are those whose second moment lies before the first, because clocks differ; they are counted
there and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sf

from postroad.pipelines.report.measures import collected, percentiles, power_of_two, spread
from postroad.spark.columns import LOG_APPEND_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STORED: Final = "created → stored"
PUBLISHED: Final = "created → published"
DELIVERED: Final = "published → delivered"
RETRIED: Final = "first → last delivery"
GIVEN_UP: Final = "published → given up"
OF_LETTERS: Final = (DELIVERED, RETRIED, GIVEN_UP)
STEPS: Final = (STORED, PUBLISHED, *OF_LETTERS)


def of_records(records: DataFrame) -> DataFrame:
    """(step, topic, ms) of each message that says when it was created."""
    is_stored = sf.col("timestampType") == LOG_APPEND_TIME
    return records.where(sf.isnotnull("created_ms")).select(
        sf.when(is_stored, STORED).otherwise(PUBLISHED).alias("step"),
        "topic",
        sf.try_subtract(sf.unix_millis("timestamp"), sf.col("created_ms")).alias("ms"),
    )


def of_letters(letters: DataFrame) -> DataFrame:
    """(step, topic, ms) of each dead letter: up to three."""

    def step(name: str, until: str, since: str, condition: str = "true") -> Any:
        took = sf.try_subtract(sf.col(until), sf.col(since))
        return sf.struct(sf.lit(name).alias("step"), sf.when(sf.expr(condition), took).alias("ms"))

    steps = sf.array(
        step(DELIVERED, "first_ms", "published_ms", "first_ms > 0"),
        step(RETRIED, "last_ms", "first_ms", "deliveries > 1"),
        step(GIVEN_UP, "died_ms", "published_ms"),
    )
    return (
        letters.withColumn("died_ms", sf.unix_millis("died"))
        .select("topic", sf.explode(steps).alias("found"))
        .select("found.step", "topic", "found.ms")
    )


def summary(steps: DataFrame) -> Any:
    return collected(
        steps.where(sf.isnotnull("ms"))
        .withColumn("sound", sf.when(sf.col("ms") >= 0, sf.col("ms")))
        .groupBy("step", "topic")
        .agg(
            sf.count("sound").alias("messages"),
            percentiles("sound").alias("percentiles"),
            sf.max("sound").alias("max_ms"),
            sf.count_if(sf.isnull("sound")).alias("negative"),
        )
        .select("step", "topic", "messages", *spread("ms"), "max_ms", "negative"),
        "step",
        "topic",
    )


def histogram(steps: DataFrame) -> Any:
    return collected(
        steps.where("ms >= 0")
        .groupBy("step", "topic", power_of_two("ms").alias("from_ms"))
        .agg(sf.count("*").alias("messages")),
        "step",
        "topic",
        "from_ms",
    )
