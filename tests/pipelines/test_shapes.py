"""No list that is null goes from the JVM to Python: there it costs the square of the rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from postroad.pipelines.delivery import Delivery, Span
from postroad.pipelines.history import Sources, history
from postroad.pipelines.letters import letters
from postroad.spark.columns import HEADERS
from postroad.spark.router import TopicPartition
from postroad.spark.write_options import WriteOptions
from postroad.testing import Node
from tests.pipelines.archives import run
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COALESCED = "coalesce(headers"


class Nulls:
    """An account of the headers that came as null: how many, as the end of a span."""

    def __init__(self) -> None:
        self._count = 0

    def begin(self, options: WriteOptions, topic_partition: TopicPartition) -> None: ...

    def see(self, batch: Any) -> None:
        self._count += batch.column(HEADERS).null_count

    def spans(self) -> list[Span]:
        return [Span(0, self._count)]


def test_messages_without_headers_are_delivered_as_lists_that_are_empty(
    spark: SparkSession, node: Node, topic: str
) -> None:
    plain.create(node.bootstrap, topic)
    plain.create(node.bootstrap, f"{topic}.copy")
    plain.send(node.bootstrap, topic, [*plain.numbered(5), plain.Message(b"v", headers=[("h", b"1")])])
    rows = read(spark, node, topic).selectExpr(
        "topic source_topic", "partition source_partition", "offset source_offset", "value", "headers"
    )
    options = {"kafka.bootstrap.servers": node.bootstrap, "topic": f"{topic}.copy"}
    (done,) = Delivery(options, f"test {topic}", 0, account=Nulls).run(rows)
    assert (done.rows, done.spans) == (6, [Span(0, 0)])
    copied = plain.read_all(node.bootstrap, f"{topic}.copy")
    assert [row.headers for row in copied] == [()] * 5 + [(("h", b"1"),)]


def test_headers_that_are_null_are_null_again_where_python_has_added_json_columns(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    plain.create(node.bootstrap, topic)
    plain.send(node.bootstrap, topic, [plain.Message(b'{"n": 1}')])
    run(spark, node.bootstrap, topic, tmp_path, json_columns=True)
    plain.send(
        node.bootstrap, topic, [plain.Message(b'{"n": 2}', headers=[("h", None)]), plain.Message(b"{}")]
    )
    found = history(spark, topic, Sources(node.bootstrap, str(tmp_path)))
    assert COALESCED in plan(found)
    assert [row.headers for row in found.orderBy("offset").collect()] == [None, [("h", None)], None]


def test_letters_go_to_python_with_lists(spark: SparkSession, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    assert COALESCED in plan(letters(read(spark, node, topic), {0: [Span(1, 2)]}))


def read(spark: SparkSession, node: Node, topic: str) -> DataFrame:
    options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return spark.read.format("postroad").options(**options).load()


def plan(found: DataFrame) -> str:
    query: Any = found._jdf.queryExecution()
    return str(query.optimizedPlan().toString())
