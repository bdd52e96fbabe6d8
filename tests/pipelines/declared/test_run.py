"""A declared pipeline runs: each row is in each place once, and steps that fail start again."""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from postroad.pipelines.declared.declaration import Pipeline, parse, read
from postroad.pipelines.declared.run import LOCK, run
from postroad.pipelines.declared.status import Status, read_status
from postroad.pipelines.errors import PipelineError
from postroad.testing import Node
from tests.pipelines.declared.shop import check, create_topics, declare, orders
from tests.spark import plain
from tests.spark.plain import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 180.0


@pytest.mark.slow
def test_rows_go_from_topic_to_tables_to_topic(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    create_topics(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, orders(0, 30))
    pipeline = read(declare(tmp_path, topic))
    found = run(spark, pipeline, node.bootstrap, once=True)
    assert [(status.step, status.state, status.rows) for status in found] == [
        ("orders", "done", 30),
        ("customers", "done", 2),
        ("paid", "done", 30),
        ("revenue", "done", 20),
        ("large", "done", 20),
    ]
    sizes = {status.step: status.bytes for status in found}
    values = [len(each.value or b"") for each in orders(0, 30)]
    assert sum(values) < sizes["orders"] < 2 * sum(values) + 30 * 100
    assert sizes["customers"] == 2 * len(b'a{"name": "Ann"}')
    assert all(sizes[step] > 30 * 8 for step in ("paid", "revenue", "large")), sizes
    check(node.bootstrap, topic, tmp_path, 30)


def test_two_runs_do_not_share_checkpoints(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    pipeline = read(declare(tmp_path, topic))
    pipeline.state.mkdir()
    with (pipeline.state / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match="shop runs already"):
            run(spark, pipeline, node.bootstrap, once=True)


@pytest.mark.spark_slow
def test_another_run_takes_what_is_new(spark: SparkSession, node: Node, topic: str, tmp_path: Path) -> None:
    create_topics(node.bootstrap, topic)
    pipeline = read(declare(tmp_path, topic))
    for first, rows in ((0, [30, 2, 30, 20, 20]), (30, [60, 2, 60, 40, 40]), (60, [90, 2, 90, 60, 60])):
        plain.send(node.bootstrap, topic, orders(first, 30))
        assert [status.rows for status in run(spark, pipeline, node.bootstrap, once=True)] == rows
        check(node.bootstrap, topic, tmp_path, first + 30)


@pytest.mark.spark_slow
def test_step_that_fails_starts_again_and_the_others_go_on(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    create_topics(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, orders(0, 30))
    pipeline = read(declare(tmp_path, topic))
    plain.delete(node.bootstrap, f"{topic}-large")
    has_failed = threading.Event()

    def tell(status: Status) -> None:
        if status.step == "large" and status.state == "waiting":
            has_failed.set()

    with _running(spark, pipeline, node, tell) as ended:
        _until(has_failed.is_set, ended)
        plain.create(node.bootstrap, f"{topic}-large")
        _until(lambda: len(plain.read_all(node.bootstrap, f"{topic}-large")) == 20, ended)
        by_step = {status.step: status for status in read_status(pipeline)}
        assert by_step["large"].restarts >= 1
        assert "large" in (by_step["large"].error or "")
        assert by_step["paid"].restarts == 0
    check(node.bootstrap, topic, tmp_path, 30)
    assert {status.state for status in read_status(pipeline)} == {"stopped"}


@pytest.mark.spark_slow
def test_merged_table_is_seen_as_it_is_when_a_micro_batch_begins(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    create_topics(node.bootstrap, topic)
    pipeline = read(declare(tmp_path, topic))

    def names() -> dict[int, str]:
        rows = DeltaTable(tmp_path / "lake/paid").to_pyarrow_table(columns=["id", "name"]).to_pylist()
        return {row["id"]: row["name"] for row in rows}

    def customers() -> set[str]:
        rows = DeltaTable(tmp_path / "lake/customers").to_pyarrow_table(columns=["name"]).to_pylist()
        return {row["name"] for row in rows}

    with _running(spark, pipeline, node, lambda status: None) as ended:
        _until(lambda: (tmp_path / "lake/customers").exists() and "Ann" in customers(), ended)
        plain.send(node.bootstrap, topic, orders(4, 1))  # the customer is a
        _until(lambda: names() == {4: "Ann"}, ended)
        plain.send(node.bootstrap, f"{topic}-customers", [Message(b'{"name": "Anna"}', b"a")])
        _until(lambda: "Anna" in customers(), ended)
        plain.send(node.bootstrap, topic, orders(8, 1))
        _until(lambda: names() == {4: "Ann", 8: "Anna"}, ended)


@contextmanager
def _running(
    spark: SparkSession, pipeline: Pipeline, node: Node, tell: Callable[[Status], None]
) -> Iterator[threading.Event]:
    """The pipeline runs in the block; gives an event that is set if it ends by itself."""
    stop, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            run(spark, pipeline, node.bootstrap, stop=stop, tell=tell)
        finally:
            ended.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join(PATIENCE_S)


def _until(is_so: Callable[[], bool], done: threading.Event) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert not done.is_set(), "the pipeline ended"
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_sql_that_can_not_be_is_refused_before_anything_runs(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    archive = f'[archive.a]\ntopics = ["{topic}"]\nto = "a"\n'

    def refused(steps: str) -> str:
        with pytest.raises(PipelineError) as caught:
            run(spark, parse(archive + steps, tmp_path / "p.toml"), node.bootstrap, once=True)
        return str(caught.value)

    assert "step b: " in refused('[table.b]\nsql = "select nothing from a"\nto = "b"')
    assert "no column `value`" in refused('[topic.b]\nsql = "select key from a"')
    assert "column x is null, which no table keeps" in refused(
        '[table.b]\nsql = "select null as x from a"\nto = "b"'
    )
    assert "postroad_batch is the table's own" in refused(
        '[table.b]\nsql = "select 1 as postroad_batch from a"\nto = "b"'
    )


@pytest.mark.spark_slow
def test_table_whose_checkpoint_is_gone_is_not_written_twice(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.pipelines.declared.run.ATTEMPTS_ONCE", 1)
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, orders(0, 1)[:1])
    text = f'[archive.a]\ntopics = ["{topic}"]\nto = "a"\n[table.b]\nsql = "select offset from a"\nto = "b"\n'
    pipeline = parse(text, tmp_path / "p.toml")
    run(spark, pipeline, node.bootstrap, once=True)
    shutil.rmtree(pipeline.directory(pipeline.step("b")))
    with pytest.raises(PipelineError, match="a query whose checkpoint is gone or elsewhere"):
        run(spark, pipeline, node.bootstrap, once=True)
