"""Archive and live topic are one: each record once, whatever happens to either meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroad.errors import UnknownTopicOrPartition
from postroad.pipelines import spool
from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.history import Sources, history, live_date, view
from postroad.pipelines.tables import TableAddress, create_table
from postroad.pipelines.tables.files import archived
from postroad.testing import Node
from tests.pipelines.archives import FORMATS, run, varied
from tests.pipelines.batches import DAY_MS, NOON_MS, record_batch
from tests.spark import plain
from tests.spark.plans import metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("format_", FORMATS)
def test_history_has_each_record_once_on_both_sides_of_the_seam(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, format_: str
) -> None:
    lake = tmp_path / "my lake 50% ü"
    plain.create(node.bootstrap, topic, partitions=3)
    plain.send(node.bootstrap, topic, varied(60, 2))
    run(spark, node.bootstrap, topic, lake, format=format_)
    plain.delete_before(node.bootstrap, topic, 0, 30)  # gone from the topic, and kept by the archive
    everything = plain.of_spark(history(spark, topic, Sources(None, str(lake))).collect())
    plain.send(node.bootstrap, topic, varied(40, 3, first=60))

    sources = Sources(node.bootstrap, str(lake))
    found = view(spark, topic, sources)
    live = [row for row in plain.read_all(node.bootstrap, topic) if row not in everything]
    assert len(live) == 40
    assert plain.of_spark(found.collect()) == sorted(everything + live)
    dates = spark.sql(f"select date, count(*) from `{topic}` group by date order by date").collect()
    assert [str(row[0]) for row in dates] == ["2023-11-14", "2023-11-15", "2023-11-16"]


@pytest.mark.parametrize("spools", [False, True])
def test_live_rows_get_the_archives_json_columns(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, spools: bool
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, [plain.Message(b'{"n": 1}')])
    run(spark, node.bootstrap, topic, tmp_path, json_columns=True)
    plain.send(node.bootstrap, topic, [plain.Message(b'{"n": 2, "new": true}'), plain.Message(b"oops")])
    files = tmp_path / "files"
    files.mkdir()
    found = history(spark, topic, Sources(node.bootstrap, str(tmp_path), spool=files if spools else None))
    assert len(list(files.iterdir())) == spools
    rows = found.orderBy("offset").select("offset", "n", found.bad.isNull()).collect()
    assert [tuple(row) for row in rows] == [(0, 1, True), (1, 2, True), (2, None, False)]


def test_live_rows_have_the_dates_of_an_archive_whatever_the_time_zone(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    midnight_ms = NOON_MS // DAY_MS * DAY_MS
    days = (0, 1, NOON_MS, midnight_ms - 1, midnight_ms, midnight_ms + DAY_MS - 1)
    plain.send(node.bootstrap, topic, [plain.Message(b"v", time_ms=time_ms) for time_ms in days])
    dated = ("offset", "cast(date as string) date")
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    try:
        live = history(spark, topic, Sources(node.bootstrap)).selectExpr(*dated).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    run(spark, node.bootstrap, topic, tmp_path)
    archived = history(spark, topic, Sources(None, str(tmp_path))).selectExpr(*dated).collect()
    assert sorted(live) == sorted(archived)
    assert [row.date for row in sorted(live)[3:]] == ["2023-11-13", "2023-11-14", "2023-11-14"]


@pytest.mark.parametrize(
    ("time_ms", "date"),
    [(-1, "1969-12-31"), (-DAY_MS, "1969-12-31"), (1 << 52, "9999-12-31"), (-(1 << 52), "0001-01-01")],
)
def test_date_of_any_time_is_one_that_can_be_named(spark: SparkSession, time_ms: int, date: str) -> None:
    times = spark.range(1).selectExpr(f"timestamp_millis({time_ms}) as timestamp")
    assert times.selectExpr(f"cast({live_date()} as string)").collect()[0][0] == date
    batch = record_batch(0, 1, times=[time_ms])
    assert str(archived(batch).column("date")[0]) == date


def test_archive_is_read_by_the_dates_that_are_asked_for(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, varied(30, 1))
    run(spark, node.bootstrap, topic, tmp_path)
    found = history(spark, topic, Sources(None, str(tmp_path))).where("date = '2023-11-15'")
    assert found.count() == 10
    assert len(found.collect()) == 10
    assert metrics(found, "Scan parquet", "numFiles") == [1]


def test_small_topic_becomes_a_file_and_a_large_one_does_not(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.create(node.bootstrap, topic, partitions=3)
    plain.send(node.bootstrap, topic, varied(60, 3))
    expected = plain.read_all(node.bootstrap, topic)
    sources = Sources(node.bootstrap, spool=tmp_path)
    assert plain.of_spark(history(spark, topic, sources).collect()) == expected
    (file,) = tmp_path.iterdir()
    file.unlink()
    for name, bound in (("BYTES_MAX", 1000), ("OFFSETS_MAX", 59)):
        monkeypatch.setattr(spool, name, bound)
        assert plain.of_spark(history(spark, topic, sources).collect()) == expected
        assert list(tmp_path.iterdir()) == []


def test_hole_between_archive_and_topic_is_an_error(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(10))
    run(spark, node.bootstrap, topic, tmp_path)
    plain.send(node.bootstrap, topic, plain.numbered(10))
    plain.delete_before(node.bootstrap, topic, 0, 15)
    with pytest.raises(PipelineError, match=f"{topic}/0: offsets 10 to 14 are neither in the archive nor in"):
        history(spark, topic, Sources(node.bootstrap, str(tmp_path)))


def test_topic_that_was_made_anew_is_not_joined_with_the_archive_of_the_old_one(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(10))
    run(spark, node.bootstrap, topic, tmp_path)
    plain.delete(node.bootstrap, topic)
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(15))
    with pytest.raises(PipelineError, match=f"{topic} is not the topic that was archived .it has another id"):
        history(spark, topic, Sources(node.bootstrap, str(tmp_path)))
    with pytest.raises(PipelineError, match=f"{topic} is not the topic that was archived .it has another id"):
        run(spark, node.bootstrap, topic, tmp_path)
    assert history(spark, topic, Sources(None, str(tmp_path))).count() == 10


def test_what_is_not_there_is_told(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopicOrPartition, match=topic):
        history(spark, topic, Sources(node.bootstrap))
    with pytest.raises(WrongTable, match="no archive is at"):
        history(spark, topic, Sources(node.bootstrap, str(tmp_path / "nothing")))
    with pytest.raises(PipelineError, match="an archive or a cluster"):
        history(spark, topic, Sources(None))
    create_table(TableAddress(str(tmp_path), "delta"))
    with pytest.raises(PipelineError, match=f"{topic} is not in the archive .*, which has no topic yet"):
        history(spark, topic, Sources(None, str(tmp_path)))
