"""Questions that need no Spark are answered as Spark answers them, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from postroad.pipelines import direct
from postroad.pipelines.history import Sources
from postroad.pipelines.queries import query as ask_spark
from postroad.testing import Node
from tests.pipelines.archives import varied
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMON = (
    "select count(*) from {0}",
    "SELECT COUNT(1) AS n FROM `{0}` ;",
    "select count(*) from {0} where partition = 1 and offset >= 5",
    "select count(*) from {0} where offset > 1000",
    "select min(offset), max(offset) as last, min(timestamp), max(timestamp) from {0}",
    "select min(offset) from {0} where offset > 1000",
    "select partition, min(offset), max(offset), count(*) from {0} group by partition order by partition",
    "select partition, count(*) as n from {0} where partition = 2 group by partition",
    "select * from {0} where partition = 0 and offset = 3",
    "select offset, cast(key as string), cast(value as string) as text from {0} where partition = 1 limit 99",
    "select topic, timestamp, headers, date, timestampType from {0} where offset < 4 and partition = 2",
    "select key, value from {0} where partition = 7",
)


@pytest.fixture(scope="module")
def filled(node: Node) -> str:
    topic = "direct_questions"
    plain.create(node.bootstrap, topic, 3)
    plain.send(node.bootstrap, topic, varied(60, 3))
    return topic


@pytest.mark.parametrize("text", COMMON)
def test_answer_is_that_of_spark(spark: SparkSession, node: Node, filled: str, text: str) -> None:
    question = direct.understood(text.format(filled))
    assert question is not None
    answer = direct.answer(question, node.bootstrap)
    assert answer is not None
    found = ask_spark(spark, text.format(filled), Sources(node.bootstrap))
    assert answer.columns == found.columns
    assert sorted(map(_comparable, answer.rows)) == sorted(map(_comparable, found.collect()))


@pytest.mark.parametrize(
    "text",
    [
        "select count(*) from a, b",
        "select count(*) from a join b",
        "select count(distinct key) from a",
        "select count(*), offset from a",
        "select offset from a group by partition",
        "select sum(offset) from a",
        "select offset from a order by partition",
        "select offset from a order by offset limit 3",
        "select offset from a where key = 'x'",
        "select offset from a where partition = 0 or offset = 2",
        "select offset from a where timestamp > 5",
        "select nothing from a",
        "select offset, offset from a",
        "select count(*) from a.b",
        "select count(*) from a -- all",
        "select count(*) from (select 1)",
        "with a as (select 1) select count(*) from a",
        "selec count(*) from a",
        "",
    ],
)
def test_other_questions_are_left_to_spark(text: str) -> None:
    assert direct.understood(text) is None


def test_limit_is_kept_over_partitions_and_much_is_left_to_spark(
    node: Node, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(_answer(node, f"select offset from {filled} limit 25").rows) == 25
    assert _answer(node, f"select offset from {filled} limit 0").rows == []
    assert len(_answer(node, f"select offset from {filled}").rows) == 60
    monkeypatch.setattr(direct, "OFFSETS_MAX", 59)
    question = direct.understood(f"select count(*) from {filled}")
    assert question is not None
    assert direct.answer(question, node.bootstrap) is None


def _answer(node: Node, text: str) -> direct.DirectAnswer:
    question = direct.understood(text)
    assert question is not None
    answer = direct.answer(question, node.bootstrap)
    assert answer is not None
    return answer


def _comparable(row: Any) -> str:
    """Spark's rows within rows are ours of dicts, and its bytes bytearrays."""
    return repr([_plain(cell) for cell in row])


def _plain(cell: Any) -> Any:
    if isinstance(cell, list):
        return [_plain(each.asDict() if hasattr(each, "asDict") else each) for each in cell]
    if isinstance(cell, dict):
        return {name: _plain(each) for name, each in cell.items()}
    return bytes(cell) if isinstance(cell, bytearray) else cell
