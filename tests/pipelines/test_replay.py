"""A replay puts each message once, however often it is run and wherever it was interrupted."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from postroad.cli.pipeline import pipeline
from postroad.errors import PostroadError
from postroad.pipelines import steps
from postroad.pipelines.archive import ArchiveSettings, archive
from postroad.pipelines.edges import Bounds, Edge, parse, resolve
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.replay import replay
from postroad.pipelines.replay_source import ReplaySettings
from postroad.pipelines.running import Progress
from postroad.testing import Node
from tests.clients.wait import until
from tests.spark import plain
from tests.spark.plain import Message, Row

MESSAGES = [
    Message(b"v%d" % number, b"k%d" % (number % 7), number % 3, [("n", b"%d" % number)], 1_000_000 + number)
    for number in range(60)
]

PATIENCE_S = 240.0  # a step takes seconds


@pytest.fixture
def target(node: Node, topic: str) -> str:
    name = f"{topic}-again"
    plain.create(node.bootstrap, name, 3)
    return name


@pytest.fixture
def filled(node: Node, topic: str) -> str:
    plain.create(node.bootstrap, topic, 3)
    plain.send(node.bootstrap, topic, MESSAGES)
    return topic


def content(rows: list[Row]) -> list[tuple[object, ...]]:
    return sorted((row.key, row.value, row.headers) for row in rows)


def sent(messages: list[Message]) -> list[tuple[object, ...]]:
    return sorted((each.key, each.value, tuple(each.headers)) for each in messages)


def test_messages_come_with_keys_and_headers_and_a_second_run_adds_nothing(
    spark: SparkSession, node: Node, filled: str, target: str
) -> None:
    settings = ReplaySettings(node.bootstrap, [filled], target)
    first = replay(spark, settings)
    assert (first.rows, first.is_complete, first.was_complete) == (60, True, False)
    plain.send(node.bootstrap, filled, [Message(b"later")])

    second = replay(spark, settings)

    assert (second.rows, second.was_complete, second.name) == (60, True, first.name)
    assert content(plain.read_all(node.bootstrap, target)) == sent(MESSAGES)


def test_partitions_and_timestamps_are_kept_if_wanted(
    spark: SparkSession, node: Node, filled: str, target: str
) -> None:
    settings = ReplaySettings(
        node.bootstrap,
        [filled],
        target,
        keeps_timestamps=True,
        keeps_partitions=True,
        where="cast(substring(cast(value as string), 2) as int) < 30",
        since=Edge(time_ms=1_000_010),
        until=Edge(time_ms=1_000_050),
    )

    assert replay(spark, settings).rows == 20

    found = [(row.partition, row.value, row.time_ms) for row in plain.read_all(node.bootstrap, target)]
    wanted = [(each.partition, each.value, each.time_ms) for each in MESSAGES[10:30]]
    assert found == sorted(wanted, key=lambda each: (each[0], each[2]))


def test_an_archive_is_replayed_into_the_topic_it_came_from(
    spark: SparkSession, node: Node, filled: str, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    archive(spark, ArchiveSettings(node.bootstrap, [filled], lake, once=True))
    settings = ReplaySettings(
        node.bootstrap, [filled], None, archive=lake, since=Edge(time_ms=1_000_050), name=f"back {filled}"
    )

    assert replay(spark, settings).rows == 10
    assert replay(spark, settings).was_complete

    assert content(plain.read_all(node.bootstrap, filled)) == sent([*MESSAGES, *MESSAGES[50:]])


def test_a_replay_that_was_stopped_goes_on_where_it_was(
    spark: SparkSession, node: Node, filled: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "STEP_OFFSETS", 15)
    stop = threading.Event()
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        seen.append(progress)
        stop.set()

    settings = ReplaySettings(node.bootstrap, [filled], target)
    first = replay(spark, settings, report=report, stop=stop)
    assert (first.rows, first.is_complete, seen[0].done, seen[0].total) == (15, False, 15, 60)

    second = replay(spark, settings)

    assert (second.rows, second.is_complete, second.was_complete) == (60, True, False)
    assert content(plain.read_all(node.bootstrap, target)) == sent(MESSAGES)


def test_a_step_that_was_interrupted_is_repeated_without_a_duplicate(
    spark: SparkSession, node: Node, filled: str, target: str
) -> None:
    """The stop comes while messages go out at a rate, so within a step."""
    settings = ReplaySettings(node.bootstrap, [filled], target, rate=2)
    stop = threading.Event()

    def stop_when_some_are_there() -> None:
        try:
            until(lambda: plain.read_all(node.bootstrap, target), "the first ones are there", PATIENCE_S)
        finally:
            stop.set()

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(stop_when_some_are_there)
        first = replay(spark, settings, stop=stop)
        watching.result()
    assert not first.is_complete
    assert 0 < len(plain.read_all(node.bootstrap, target)) < 60

    faster = ReplaySettings(node.bootstrap, [filled], target, rate=500)
    assert replay(spark, faster).is_complete

    assert content(plain.read_all(node.bootstrap, target)) == sent(MESSAGES)


def test_a_rate_holds_over_all_partitions(spark: SparkSession, node: Node, filled: str, target: str) -> None:
    began = time.monotonic()
    replay(spark, ReplaySettings(node.bootstrap, [filled], target, rate=40))
    assert time.monotonic() - began >= 1.3  # 60 messages at 40 a second, the first pieces at once
    times = sorted(row.time_ms for row in plain.read_all(node.bootstrap, target))
    assert times[-1] - times[0] >= 700  # 1,400; the first may be dated late, by a stall


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"to": "nowhere"}, "no topic nowhere"),
        ({"topics": ["missing"]}, "no topic missing"),
        ({"where": "vale = 1"}, "vale"),
        ({"where": "rand() < 0.5"}, "something else each time"),
        ({"since": Edge(time_ms=1, is_relative=True)}, "--name"),
        ({"archive": "/tmp/there-is-no-lake"}, "no archive"),
        ({"rate": 0}, "more than 0"),
        ({"since": Edge(each={("other", 0): 1})}, "other/0"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    spark: SparkSession, node: Node, filled: str, target: str, change: dict[str, object], text: str
) -> None:
    settings: dict[str, object] = {"topics": [filled], "to": target, **change}
    with pytest.raises(PostroadError, match=text):
        replay(spark, ReplaySettings(node.bootstrap, **settings))  # type: ignore[arg-type]
    assert plain.read_all(node.bootstrap, target) == []


def test_a_name_stands_for_one_replay(spark: SparkSession, node: Node, filled: str, target: str) -> None:
    replay(spark, ReplaySettings(node.bootstrap, [filled], target, name=target))
    with pytest.raises(PipelineError, match="another where"):
        replay(spark, ReplaySettings(node.bootstrap, [filled], target, name=target, where="false"))


def test_edges_are_read_as_people_write_them() -> None:
    words = ("beginning", "earliest")
    assert parse("1200", "--from", words) == Edge(offset=1200)
    assert parse("earliest", "--from", words) == Edge()
    assert parse("2h", "--from", words).is_relative
    assert parse('{"a": {"1": 5}}', "--from", words).each == {("a", 1): 5}
    assert parse("1970-01-01T00:00:01+00:00", "--from", words).time_ms == 1000
    for wrong in ("yesterday", '{"a": 5}', '{"a": {"0": -1}}'):
        with pytest.raises(PipelineError, match="--from"):
            parse(wrong, "--from", words)


@pytest.mark.parametrize(
    ("since", "until", "ranges"),
    [
        ({0: 3}, None, {0: (3, 10)}),
        (None, {0: 7}, {0: (0, 7)}),
        ({0: 3, 1: 4}, {0: 7}, {0: (3, 7)}),
        ({0: 8}, {0: 7, 1: 7}, {}),
    ],
)
def test_partitions_of_which_an_edge_says_nothing_are_left_out(
    since: dict[int, int] | None, until: dict[int, int] | None, ranges: dict[int, tuple[int, int]]
) -> None:
    edges = [
        Edge(each=None if each is None else {("a", number): at for number, at in each.items()})
        for each in (since, until)
    ]
    begin, end = resolve({("a", number): Bounds(0, 10) for number in range(2)}, *edges)
    found = {number: (at, end["a", number]) for (_, number), at in begin.items()}
    assert {number: range_ for number, range_ in found.items() if range_[0] < range_[1]} == ranges


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["replay", "-t", "a"], "--to TOPIC or --to-origin"),
        (["replay", "-t", "a", "--to", "b", "--to-origin"], "--to TOPIC or --to-origin"),
        (["replay", "-t", "a", "--to", "b", "--archive", "x", "--source", "y"], "not from both"),
        (["replay", "-t", "a", "--to", "b", "--rate", "fast"], "not a rate"),
        (["redrive"], "SUBSCRIPTION|TOPIC"),
        (["mirror", "-t", "a"], "--to"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_before_spark_starts(words: list[str], text: str) -> None:
    outcome = CliRunner().invoke(pipeline, words)
    assert (outcome.exit_code, text in outcome.output) == (2, True), outcome.output
