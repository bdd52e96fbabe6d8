"""An archive holds what the topic holds, row for row, whoever reads it."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postroad.errors import PostroadError, UnknownTopicOrPartition
from postroad.pipelines.archive import kinds_of_ddl
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.history import read_archive
from postroad.pipelines.tables import compaction, find_table, merging
from postroad.spark import router
from postroad.testing import Node
from tests.pipelines.archives import FORMATS, offsets_of, read_plainly, rows_of, run, unused_files, varied
from tests.pipelines.batches import DAY_MS
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("format_", FORMATS)
def test_archive_equals_the_topic_for_every_reader_though_a_batch_is_repeated(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, format_: str
) -> None:
    plain.create(node.bootstrap, topic, partitions=3)
    plain.send(node.bootstrap, topic, varied(300, 3))
    halves = {"maxOffsetsPerTrigger": "150"}
    assert run(spark, node.bootstrap, topic, tmp_path, format=format_, source=halves).rows == 300
    for note in (tmp_path / "_postroad" / "checkpoint" / "commits").glob("*1*"):
        note.unlink()  # as if the driver had died between the table's commit and Spark's note of it
    plain.send(node.bootstrap, topic, varied(30, 3, first=300))
    again = run(spark, node.bootstrap, topic, tmp_path, format=format_)

    expected = plain.read_all(node.bootstrap, topic)
    assert (again.rows, len(expected)) == (180, 330), "the finished batch was not repeated"
    assert again.ends == {topic: {0: 110, 1: 110, 2: 110}}
    found = read_plainly(tmp_path, format_)
    assert rows_of(found) == expected
    assert {row["date"] for row in found} == {date(2023, 11, day) for day in (14, 15, 16)}
    assert plain.of_spark(read_archive(spark, str(tmp_path)).collect()) == expected


def test_lost_checkpoint_costs_nothing(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    plain.send(node.bootstrap, topic, plain.numbered(20))
    run(spark, node.bootstrap, topic, tmp_path)
    shutil.rmtree(tmp_path / "_postroad" / "checkpoint")
    plain.send(node.bootstrap, topic, plain.numbered(5, partition=1))
    assert run(spark, node.bootstrap, topic, tmp_path).rows == 5
    assert len(set(offsets_of(read_plainly(tmp_path, "delta")))) == 25


def test_checkpoint_of_a_deleted_table_is_refused(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(3))
    checkpoint = str(tmp_path / "notes")
    run(spark, node.bootstrap, topic, tmp_path / "lake", checkpoint=checkpoint)
    shutil.rmtree(tmp_path / "lake")
    with pytest.raises(PipelineError, match="Delete it, or name another"):
        run(spark, node.bootstrap, topic, tmp_path / "lake", checkpoint=checkpoint)


def test_checkpoint_that_is_ahead_of_its_table_is_refused(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    """The table is a copy from before."""
    lake, copy, checkpoint = tmp_path / "lake", tmp_path / "copy", str(tmp_path / "notes")
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, plain.numbered(3))
    run(spark, node.bootstrap, topic, lake, checkpoint=checkpoint)
    shutil.copytree(lake, copy)
    plain.send(node.bootstrap, topic, plain.numbered(3))
    run(spark, node.bootstrap, topic, lake, checkpoint=checkpoint)
    with pytest.raises(PipelineError, match="is an older copy"):
        run(spark, node.bootstrap, topic, copy, checkpoint=checkpoint)
    shutil.rmtree(checkpoint)
    assert run(spark, node.bootstrap, topic, copy, checkpoint=checkpoint).rows == 3


def test_several_topics_share_a_table(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> None:
    names = [f"{topic}.a", f"{topic}-b"]
    for number, name in enumerate(names):
        plain.create(node.bootstrap, name)
        plain.send(node.bootstrap, name, plain.numbered(10 + number))
    run(spark, node.bootstrap, names, tmp_path, format="parquet")
    found = Counter(row["topic"] for row in read_plainly(tmp_path, "parquet"))
    assert found == {names[0]: 10, names[1]: 11}
    assert set(find_table(str(tmp_path)).snapshot().topics) == set(names)


def test_json_columns_grow_and_bad_rows_stay_with_the_reason(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    _send_json(node, topic, [{"id": 1, "amount": 2}, {"id": 2, "amount": 2.5, "tags": ["a"]}])
    kinds = kinds_of_ddl("amount double")
    run(spark, node.bootstrap, topic, tmp_path, json_columns=True, json_kinds=kinds)
    _send_json(node, topic, [{"id": 3, "Offset": True}, {"id": "four"}])
    run(spark, node.bootstrap, topic, tmp_path, json_columns=True)

    expected = [
        (0, 1, 2.0, None, None, None),
        (1, 2, 2.5, '["a"]', None, None),
        (2, 3, None, None, True, None),
        (3, None, None, None, None, "field id is string, and its column bigint"),
    ]
    columns = ("offset", "id", "amount", "tags", "json_Offset", "bad")
    plainly = read_plainly(tmp_path, "delta")
    assert sorted(tuple(row[name] for name in columns) for row in plainly) == expected
    by_spark = read_archive(spark, str(tmp_path)).select(*columns).collect()
    assert sorted(tuple(row) for row in by_spark) == expected


def test_tasks_that_disagree_about_a_new_column_are_reconciled(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic, partitions=3)
    a_task_each = {"minPartitions": "3"}
    contents: list[dict[str, object]] = [{"a": 1, "b": 1}, {"a": 1.5, "B": 2}, {"a": 2, "b": "two"}]
    for partition, content in enumerate(contents):
        _send_json(node, topic, [content], partition=partition)
    done = run(spark, node.bootstrap, topic, tmp_path, json_columns=True, source=a_task_each)
    assert (done.rows, done.ends) == (3, {topic: {0: 1, 1: 1, 2: 1}})
    assert unused_files(find_table(str(tmp_path))) == [], "what disagreed is gone"
    found = {
        row["partition"]: (row["a"], row["b"], row["bad"] is None) for row in read_plainly(tmp_path, "delta")
    }
    assert found == {0: (1.0, 1, True), 1: (1.5, 2, True), 2: (None, None, False)}


def test_bad_row_fails_the_run_if_asked_for(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, [plain.Message(b'{"a": 1}'), plain.Message(b"[]")])
    with pytest.raises(PipelineError, match=rf"^{topic}/0 offset 1: JSON, but no object"):
        run(spark, node.bootstrap, topic, tmp_path, json_columns=True, bad_rows="fail")
    assert read_plainly(tmp_path, "delta") == []


def test_upkeep_compacts_small_files_and_deletes_old_dates(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    plain.send(node.bootstrap, topic, [*plain.numbered(10), *plain.numbered(10, partition=1), *varied(10, 1)])
    two = {"minPartitions": "2"}
    upkeep = {"optimize": True, "retention_ms": 30 * DAY_MS}
    done = run(spark, node.bootstrap, topic, tmp_path, format="parquet", source=two, **upkeep)
    assert done.files_deleted == 3
    assert done.optimized == (2, 1)
    assert done.ends == {topic: {0: 20, 1: 10}}
    assert len(read_plainly(tmp_path, "parquet")) == 20


def test_many_partitions_that_have_little_are_few_files(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic, partitions=1000)
    messages = [plain.Message(b"v", partition=number % 1000) for number in range(3000)]
    plain.send(node.bootstrap, topic, messages)
    done = run(spark, node.bootstrap, topic, tmp_path)
    assert done.rows == 3000
    assert done.ends == {topic: dict.fromkeys(range(1000), 3)}
    assert rows_of(read_plainly(tmp_path, "delta")) == plain.read_all(node.bootstrap, topic)
    dates = {row["date"] for row in read_plainly(tmp_path, "delta")}
    assert len(find_table(str(tmp_path)).snapshot().files) == len(dates)


def test_compaction_is_a_job_of_the_executors(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    plain.send(node.bootstrap, topic, varied(60, 2))
    run(spark, node.bootstrap, topic, tmp_path, source={"minPartitions": "6"})
    monkeypatch.setattr(merging, "HERE_BYTES", 0)
    monkeypatch.setattr(compaction, "merged_here", None)
    done = run(spark, node.bootstrap, topic, tmp_path, optimize=True)
    assert done.optimized is not None
    assert done.optimized.files_before > done.optimized.files_after == 3
    assert rows_of(read_plainly(tmp_path, "delta")) == plain.read_all(node.bootstrap, topic)


def test_place_that_cannot_be_written_is_told_in_one_line(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    (tmp_path / "file").touch()
    for format_ in FORMATS:
        with pytest.raises(PipelineError, match="lake can't be read or written") as raised:
            run(spark, node.bootstrap, topic, tmp_path / "file" / "lake", format=format_)
        assert "\n" not in str(raised.value)


def test_missing_topic_writes_nothing(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopicOrPartition, match=topic):
        run(spark, node.bootstrap, topic, tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


@pytest.mark.parametrize("option", [("maxOffsetPerTrigger", "5"), ("valueFormat", "json")])
def test_option_that_the_source_does_not_have_is_named_and_nothing_is_written(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, option: tuple[str, str]
) -> None:
    plain.create(node.bootstrap, topic)
    with pytest.raises(PostroadError, match=f"(?i){option[0]}"):
        run(spark, node.bootstrap, topic, tmp_path / "lake", source=dict([option]))
    assert not (tmp_path / "lake").exists()


def test_broker_that_is_down_is_named_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "FIRST_CONTACT_S", 0.5)
    with pytest.raises(PostroadError, match=r"127\.0\.0\.1:1\b"):
        run(spark, "127.0.0.1:1", "orders", tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


def _send_json(node: Node, topic: str, contents: list[dict[str, object]], partition: int = 0) -> None:
    messages = [plain.Message(json.dumps(content).encode(), partition=partition) for content in contents]
    plain.send(node.bootstrap, topic, messages)
