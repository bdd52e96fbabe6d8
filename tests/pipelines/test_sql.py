"""`postroad sql`, as people call it: one program, one answer."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from postroad.cli import main
from postroad.pipelines import session
from postroad.spark import router
from postroad.testing import Node
from tests.pipelines.archives import run
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command would stop the session that all tests share; here it is lent one."""

    @contextmanager
    def lent(
        name: str, master: str | None, config: object, *, is_short: bool = False
    ) -> Iterator[SparkSession]:
        yield spark

    session.hush()
    monkeypatch.setattr(session, "session", lent)


def ask(query: str, *arguments: str, code: int = 0) -> tuple[str, str]:
    result = CliRunner().invoke(main, ["sql", query, *arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.stdout, result.stderr


def test_topics_are_asked_with_their_archive(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    dotted = f"{topic}.v1"
    for name in (topic, dotted):
        plain.create(node.bootstrap, name)
        plain.send(node.bootstrap, name, plain.numbered(3))
    run(spark, node.bootstrap, topic, tmp_path)
    plain.send(node.bootstrap, topic, plain.numbered(2, first=3))
    query = (
        f"select a.offset, cast(a.value as string) text, b.value other, a.headers from `{topic}` a "
        f"left join `{dotted}` b on a.offset = b.offset order by a.offset desc limit 3"
    )
    arguments = ("--bootstrap", node.bootstrap, "--archive", str(tmp_path))

    as_table, _ = ask(query, *arguments)
    assert [line.split() for line in as_table.splitlines()] == [
        ["OFFSET", "TEXT", "OTHER", "HEADERS"],
        ["4", "4", "-", "-"],
        ["3", "3", "-", "-"],
        ["2", "2", "2", "-"],
    ]


def test_answers_for_programs(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    message = plain.Message(b"\xff", key=b"k", headers=[("h", None)], time_ms=1_700_000_000_000)
    plain.send(node.bootstrap, topic, [message])
    query = f"select offset, key, value, headers, timestamp, date from `{topic}`"
    lines, _ = ask(query, "--bootstrap", node.bootstrap, "--json")
    assert [json.loads(line) for line in lines.splitlines()] == [
        {
            "offset": 0,
            "key": "k",
            "value": "/w==",
            "headers": [{"key": "h", "value": None}],
            "timestamp": "2023-11-14T22:13:20",
            "date": "2023-11-14",
        }
    ]
    text, _ = ask(query, "--bootstrap", node.bootstrap, "--csv")
    header, row = csv.reader(StringIO(text))
    assert header == ["offset", "key", "value", "headers", "timestamp", "date"]
    assert row[3] == '[{"key": "h", "value": null}]'


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select * from `no-such-topic`", "no-such-topic"),
        ("select * from some.topic", "write the topic's name in backquotes: `some.topic`"),
        ("selec 1", "PARSE_SYNTAX_ERROR"),
        ("select nothing", "UNRESOLVED_COLUMN"),
    ],
)
def test_wrong_question_gets_one_line(node: Node, query: str, said: str) -> None:
    output, errors = ask(query, "--bootstrap", node.bootstrap, code=1)
    assert output == ""
    assert said in errors
    assert len(errors.splitlines()) == 1


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(session, "session", started)


@pytest.mark.usefixtures("no_spark")
@pytest.mark.parametrize(
    "words",
    [
        ["sql", "select * from orders a, orders b"],
        ["sql", "select count(*) from orders"],
        ["pipeline", "archive", "-t", "orders", "--to", "lake"],
        ["pipeline", "replay", "-t", "orders", "--to", "others"],
        ["pipeline", "redrive", "workers"],
        ["pipeline", "mirror", "--to", "127.0.0.1:1", "--topic", "orders"],
        ["pipeline", "report", "-t", "orders", "--to", "report"],
    ],
)
def test_no_node_there_is_told_before_spark_is_started(
    monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(router, "FIRST_CONTACT_S", 0.5)
    result = CliRunner().invoke(main, [*words, "--bootstrap", "127.0.0.1:1"])
    assert result.exit_code == 1, repr(result.exception)
    assert "127.0.0.1:1" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("no_spark")
def test_what_needs_no_spark_starts_none(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, partitions=2)
    plain.send(node.bootstrap, topic, [*plain.numbered(7), *plain.numbered(5, partition=1)])
    output, _ = ask(f"select count(*) as n from `{topic}`", "--bootstrap", node.bootstrap)
    assert output.split() == ["N", "12"]
    query = f"select partition, min(offset), max(offset) from `{topic}` group by partition"
    output, _ = ask(query, "--bootstrap", node.bootstrap, "--csv")
    assert output.split() == ["partition,min(offset),max(offset)", "0,0,6", "1,0,4"]
    query = f"select offset, cast(value as string) from `{topic}` where partition = 1 limit 2"
    output, _ = ask(query, "--bootstrap", node.bootstrap, "--json")
    assert [json.loads(line) for line in output.splitlines()] == [
        {"offset": 0, "value": "0"},
        {"offset": 1, "value": "1"},
    ]
