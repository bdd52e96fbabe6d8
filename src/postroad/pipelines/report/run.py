"""report, from topics to files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as sf

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.report import latency, letters, measures, standing
from postroad.pipelines.report.findings import findings, headline
from postroad.pipelines.report.measured import Measured, Story
from postroad.pipelines.report.page import page
from postroad.pipelines.report.records import read, reduced
from postroad.pipelines.report.settings import ReportSettings
from postroad.pipelines.report.standing import Standing
from postroad.pipelines.report.write import check, write
from postroad.pipelines.tables.location import Location
from postroad.spark.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ReportSettings", "Reported", "report"]


class Reported(NamedTuple):
    """What was written, and what it says on top."""

    page: str  # its path or URL
    messages: int
    headline: str
    findings: tuple[str, ...]


def report(spark: SparkSession, settings: ReportSettings) -> Reported:
    """Reads the messages once, measures them and writes page and tables.

    Before anything is read it is an error if the cluster, a topic or the archive is not there. With an
    archive the cluster is asked for lag only, and the page says so if it can't be reached.
    """
    location = Location(settings.to)
    check(location)
    _check_topics(settings)
    stand = standing.ask(
        settings.bootstrap,
        set(settings.topics),
        settings.dead_letters,
        must_answer=settings.archive is None,
    )
    measured = _measure(spark, settings, stand)
    looked_at = () if settings.archive else stand.dead_letter_topics
    story = Story(settings, measured, stand.unknown, datetime.now(UTC), looked_at)
    written = write(location, page(story), measured)
    return Reported(written, measured.total()["messages"], headline(measured), tuple(findings(measured)))


def _check_topics(settings: ReportSettings) -> None:
    if (
        settings.since_ms is not None
        and settings.until_ms is not None
        and settings.since_ms >= settings.until_ms
    ):
        raise PipelineError("the report's time ends before it begins: --from must be before --until")
    if settings.archive is None:
        with Cluster(settings.bootstrap) as cluster:
            cluster.topics(list(settings.topics))


def _measure(spark: SparkSession, settings: ReportSettings, stand: Standing) -> Measured:
    # All tables are made of one reading: they agree, however fast the topics grow meanwhile.
    rows = read(spark, settings, _topics_to_read(settings, stand))
    records = reduced(rows, settings.time_header).persist()
    try:
        own = records.where(sf.col("topic").isin(*settings.topics))
        return _tables(own, letters.letters(records, settings.topics), stand)
    finally:
        records.unpersist()


def _topics_to_read(settings: ReportSettings, stand: Standing) -> Sequence[str]:
    """Dead letters lie in topics of their own. Of an archive only what was asked for is read."""
    dead = () if settings.archive else stand.dead_letter_topics
    return tuple(dict.fromkeys((*settings.topics, *dead)))


def _tables(records: DataFrame, dead: DataFrame, stand: Standing) -> Measured:
    steps = latency.of_records(records).unionByName(latency.of_letters(dead))
    return Measured(
        topics=measures.topics(records),
        minutes=measures.minutes(records),
        sizes=measures.sizes(records),
        partitions=measures.partitions(records),
        keys=measures.keys(records),
        latency=latency.summary(steps),
        latency_histogram=latency.histogram(steps),
        lag=stand.lag,
        reasons=letters.reasons(dead),
        deliveries=letters.deliveries(dead),
    )
