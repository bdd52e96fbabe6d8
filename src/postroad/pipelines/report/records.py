"""The messages of a report, each reduced to what is measured: no value is kept.

topic, partition, offset, timestampType, key   as the source has them
timestamp    too, but within what Python knows as times: a producer may say anything
bytes        of key, value and headers, before any compression
is_tombstone whether there is no value
created_ms   when it was created, where a header says it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from postroad.pipelines.history import read_archive
from postroad.pipelines.report.settings import ReportSettings
from postroad.wire.header_names import DEAD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# CloudEvents' time: as its Kafka binding writes it, and as its HTTP binding does.
CREATION_HEADERS: Final = ("ce_time", "ce-time")

LATEST_MS: Final = 253_402_300_799_999  # the end of the year 9999

_BYTES: Final = """
    cast(coalesce(octet_length(key), 0) + coalesce(octet_length(value), 0) + aggregate(
        coalesce(headers, array()), 0,
        (sum, header) -> sum + octet_length(header.key) + coalesce(octet_length(header.value), 0)
    ) as bigint)
"""


def read(spark: SparkSession, settings: ReportSettings, topics: Sequence[str]) -> DataFrame:
    """Whole messages of these topics, with headers, of the report's time."""
    if settings.archive is None:
        rows = _of_topics(spark, settings, topics)
    else:
        rows = read_archive(spark, settings.archive).where(sf.col("topic").isin(*topics))
    # A source can only be told from which offset on: times need not rise from message to message.
    if settings.since_ms is not None:
        rows = rows.where(sf.col("timestamp") >= _moment(settings.since_ms))
    if settings.until_ms is not None:
        rows = rows.where(sf.col("timestamp") < _moment(settings.until_ms))
    return rows


def reduced(rows: DataFrame, time_header: str | None) -> DataFrame:
    """What is measured of them."""
    names = (*((time_header,) if time_header else ()), *CREATION_HEADERS)
    return rows.select(
        *("topic", "partition", "offset", "timestampType", "key"),
        sf.least(sf.greatest("timestamp", _moment(0)), _moment(LATEST_MS)).alias("timestamp"),
        sf.expr(_BYTES).alias("bytes"),
        sf.isnull("value").alias("is_tombstone"),
        sf.coalesce(*(_moment_ms(header(name)) for name in names)).alias("created_ms"),
        sf.filter("headers", lambda each: sf.startswith(each["key"], sf.lit(DEAD))).alias("headers"),
    )


def header(name: str) -> Column:
    """The text of the first header of this name; null if there is none. What is no UTF-8 is replaced."""
    found = sf.get(sf.filter("headers", lambda each: each["key"] == sf.lit(name)), sf.lit(0))
    return sf.make_valid_utf8(found["value"].cast("string"))


def _moment(ms: int) -> Column:
    return sf.timestamp_millis(sf.lit(ms))


def _moment_ms(text: Column) -> Column:
    """Milliseconds since 1970, or a time as ISO 8601 writes it; null for anything else."""
    return sf.coalesce(text.try_cast("bigint"), sf.unix_millis(text.try_cast("timestamp")))


def _of_topics(spark: SparkSession, settings: ReportSettings, topics: Sequence[str]) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "kafka.isolation.level": "read_committed",
        "subscribe": ",".join(topics),
        "includeHeaders": "true",
    }
    if settings.since_ms is not None:
        options |= {
            "startingTimestamp": str(settings.since_ms),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    return spark.read.format("postroad").options(**options).load()
