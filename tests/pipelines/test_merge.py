"""A topic is merged by Spark: what becomes of its keys, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.merge import MergeResult, MergeSettings, merge
from postroad.testing import Node
from tests.pipelines.merges import read_merged, values_of
from tests.spark import plain
from tests.spark.plain import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, node: Node, topic: str, to: Path, **settings: Any) -> MergeResult:
    return merge(
        spark, MergeSettings(node.bootstrap, topic, str(to), **{"once": True, "buckets": 2, **settings})
    )


def test_topic_is_merged_step_by_step_and_goes_on_where_the_table_ends(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    """A new column is whole numbers to one task and fractions to another: both are told what it is."""
    plain.create(node.bootstrap, topic, 2)
    numbers = {b"k%d" % n: n + crc32(b"k%d" % n) % 2 / 2 for n in range(8)}  # fractions are of one task
    rows = [Message(b'{"n": %g}' % n, key, number % 2) for number, (key, n) in enumerate(numbers.items())]
    plain.send(node.bootstrap, topic, rows)
    first = run(spark, node, topic, tmp_path)
    assert (first.upserts, first.deletes, first.ends) == (8, 0, {"0": 4, "1": 4})
    plain.send(
        node.bootstrap,
        topic,
        [Message(None, b"k0"), Message(b'{"n": 9}', b"k2"), Message(b'{"m": true}', b"new")],
    )
    again = run(spark, node, topic, tmp_path)
    assert (again.upserts, again.deletes, again.steps) == (2, 1, 1)
    expected = [{"n": n} for n in (numbers | {b"k0": None, b"k2": 9.0}).values() if n is not None]
    assert values_of(read_merged(tmp_path, "delta")) == sorted([*expected, {"m": True}], key=str)
    assert run(spark, node, topic, tmp_path).steps == 0


def test_what_can_not_be_merged_is_refused(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(
        node.bootstrap, topic, [Message(json.dumps({"id": 1}).encode(), b"k"), Message(b"no JSON", b"k")]
    )
    with pytest.raises(PipelineError, match=rf"^{topic}/0 offset 1: not JSON"):
        run(spark, node, topic, tmp_path / "lake")
    assert run(spark, node, topic, tmp_path / "lake", bad_rows="drop").bad == 1
    with pytest.raises(PipelineError, match="a column is named twice"):
        run(spark, node, topic, tmp_path, key=["id", "ID"])
    with pytest.raises(PipelineError, match="'message_key' can't be the name"):
        run(spark, node, topic, tmp_path, key=["message_key"])
    plain.send(node.bootstrap, topic, [Message(b"{}", b"k")] * 4)
    plain.delete_before(node.bootstrap, topic, 0, 4)
    with pytest.raises(PipelineError, match="offsets 2 to 3 were deleted before they were merged"):
        run(spark, node, topic, tmp_path / "lake")
    assert run(spark, node, topic, tmp_path / "lake", accepts_loss=True).upserts == 1
    plain.delete(node.bootstrap, topic)
    plain.create(node.bootstrap, topic)
    with pytest.raises(PipelineError, match="is not the topic that was merged"):
        run(spark, node, topic, tmp_path / "lake")
