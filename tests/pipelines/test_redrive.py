"""Dead letters go back once, repaired or as they were; what doesn't match stays."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from postroad.client import Client, subscriptions
from postroad.client.redrive import Filter, Redrive
from postroad.errors import PostroadError
from postroad.pipelines.journal import Journal
from postroad.pipelines.redrive import RedriveSettings, redrive
from postroad.pipelines.steps import StepState
from postroad.spark.cluster import Cluster
from postroad.testing import Node
from postroad.wire import header_names as names
from tests.spark import plain
from tests.spark.plain import Message

LETTERS = 40


@pytest.fixture
def dead(node: Node, topic: str) -> str:
    """A dead-letter topic with letters of `topic`, every fifth rejected, the others out of attempts."""
    name = f"{topic}.dead"
    plain.create(node.bootstrap, topic, 2)
    plain.create(node.bootstrap, name, 2)
    plain.send(node.bootstrap, name, [letter(topic, number) for number in range(LETTERS)])
    return name


def letter(topic: str, number: int) -> Message:
    headers = [
        ("tenant", b"acme"),
        (names.DELAY_MS, b"1"),
        (names.DEAD_TOPIC, topic.encode()),
        (names.DEAD_PARTITION, b"0"),
        (names.DEAD_OFFSET, b"%d" % number),
        (names.DEAD_REASON, b"attempts" if number % 5 else b"rejected"),
        (names.DEAD_DELIVERIES, b"%d" % number),
        (names.DEAD_AT, b"1700000000000"),
    ]
    return Message(b"v%d" % number, b"k%d" % number, number % 2, headers, 1_700_000_000_000)


def values(node: Node, topic: str) -> list[bytes]:
    return sorted(row.value or b"" for row in plain.read_all(node.bootstrap, topic))


def numbered(numbers: range | list[int]) -> list[bytes]:
    return sorted(b"v%d" % number for number in numbers)


def test_letters_go_back_once_and_without_the_marks_of_death(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    some = redrive(spark, RedriveSettings(node.bootstrap, dead, where="reason = 'rejected'"))
    assert (some.seen, some.sent, some.kept, some.is_complete) == (40, 8, 32, True)
    assert values(node, topic) == numbered(range(0, LETTERS, 5))

    rest = redrive(spark, RedriveSettings(node.bootstrap, dead))
    assert (rest.seen, rest.sent) == (32, 32)
    assert redrive(spark, RedriveSettings(node.bootstrap, dead)).seen == 0

    rows = plain.read_all(node.bootstrap, topic)
    assert sorted(row.value or b"" for row in rows) == numbered(range(LETTERS))
    assert {row.headers for row in rows} == {(("tenant", b"acme"),)}
    assert {row.key for row in rows} == {b"k%d" % number for number in range(LETTERS)}


@pytest.mark.parametrize("way", ["plain", "sql", "function"])
def test_letters_are_for_the_subscription_in_which_they_died(
    spark: SparkSession, node: Node, topic: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hold() -> None:
        async with Client(node.bootstrap) as client:
            await subscriptions.alter_config(client, f"{topic}-workers", {"postroad.topics": topic})

    dead, by_hand = f"{topic}.dead", f"{topic}-by-hand"
    for name in (topic, dead, by_hand):
        plain.create(node.bootstrap, name, 2)
    asyncio.run(hold())
    died = [(f"{topic}-workers", 0), (f"{topic}-gone", 1)]
    letters = [(letter(topic, n), name.encode()) for name, n in died]
    marked = [each._replace(headers=[*each.headers, (names.DEAD_SUBSCRIPTION, who)]) for each, who in letters]
    plain.send(node.bootstrap, dead, marked)
    (tmp_path / "repairs_of_one.py").write_text("def same(letter):\n    return letter\n")
    monkeypatch.syspath_prepend(tmp_path)
    repairs: dict[str, dict[str, Any]] = {
        "plain": {},
        "sql": {"sets": {"value": "upper(cast(value as string))"}},
        "function": {"function": "repairs_of_one:same"},
    }
    done = redrive(spark, RedriveSettings(node.bootstrap, dead, **repairs[way]))
    told = f"no subscription {topic}-gone holds {topic} any more: --to-all sends it to all that do"
    assert (done.sent, done.failed) == (1, {told: 1})
    (row,) = plain.read_all(node.bootstrap, topic)
    assert row.headers == (("tenant", b"acme"), (names.FOR, f"{topic}-workers".encode()))
    if way == "plain":
        elsewhere = redrive(spark, RedriveSettings(node.bootstrap, dead, to=by_hand))
        assert (elsewhere.sent, elsewhere.failed) == (1, {})
        assert [row.headers for row in plain.read_all(node.bootstrap, by_hand)] == [(("tenant", b"acme"),)]


def test_what_one_kind_of_redrive_sent_the_other_leaves_alone(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    async def by_client(filter_: Filter) -> int:
        async with Client(node.bootstrap) as client:
            return (await Redrive(client, dead, filter_=filter_).run(lambda done, total: None)).sent

    assert asyncio.run(by_client(Filter(key_pattern="k1?"))) == 10
    assert redrive(spark, RedriveSettings(node.bootstrap, dead, where="deliveries < 30")).sent == 20
    assert asyncio.run(by_client(Filter())) == 10
    assert values(node, topic) == numbered(range(LETTERS))


def test_sql_repairs_letters(spark: SparkSession, node: Node, topic: str, dead: str) -> None:
    other = f"{topic}-other"
    plain.create(node.bootstrap, other)
    sets = {
        "value": "upper(cast(value as string))",
        "key": "concat(reason, '-', cast(key as string))",
        "headers": "array(struct('from' as key, cast(origin_topic as binary) as value))",
        "topic": f"if(deliveries < 3, '{other}', origin_topic)",
    }
    done = redrive(
        spark, RedriveSettings(node.bootstrap, dead, where="deliveries between 1 and 4", sets=sets)
    )
    assert done.sent == 4
    assert values(node, topic) == [b"V3", b"V4"]
    rows = plain.read_all(node.bootstrap, other)
    assert {(row.key, row.value) for row in rows} == {(b"attempts-k2", b"V2"), (b"attempts-k1", b"V1")}
    assert {row.headers for row in rows} == {(("from", topic.encode()),)}


def test_a_function_repairs_letters_or_leaves_them(
    spark: SparkSession,
    node: Node,
    topic: str,
    dead: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "repairs_of_a_test.py").write_text(
        "def repair(letter):\n"
        "    if letter['deliveries'] >= 10:\n"
        "        return None\n"
        "    added = [('was', str(letter['offset']))]\n"
        "    return {**letter, 'value': b'new ' + letter['value'], 'headers': letter['headers'] + added}\n"
        "def fails(letter):\n"
        "    raise ValueError('no repair for ' + letter['key'].decode())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    settings = RedriveSettings(node.bootstrap, dead, function="repairs_of_a_test:fails")
    with pytest.raises(PostroadError, match="no repair for k"):
        redrive(spark, settings)
    assert values(node, topic) == []

    done = redrive(spark, RedriveSettings(node.bootstrap, dead, function="repairs_of_a_test:repair"))

    assert (done.sent, done.kept) == (10, 30)
    rows = {row.value: row.headers for row in plain.read_all(node.bootstrap, topic)}
    assert set(rows) == {b"new v%d" % number for number in range(10)}
    assert rows[b"new v4"] == (("tenant", b"acme"), ("was", b"2"))


def test_a_redrive_that_was_interrupted_is_finished_by_the_next(
    spark: SparkSession, node: Node, topic: str, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends after it has sent and before it has marked what it sent: the worst moment."""

    class Crash(Exception):
        pass

    def crash(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr("postroad.pipelines.redriven.write_marks", crash)
        with pytest.raises(Crash):
            redrive(spark, RedriveSettings(node.bootstrap, dead, where="deliveries < 25"))
    assert values(node, topic) == numbered(range(25))

    done = redrive(spark, RedriveSettings(node.bootstrap, dead))

    assert (done.finished, done.seen, done.sent) == (25, 15, 15)
    assert values(node, topic) == numbered(range(LETTERS))


def interrupted(node: Node, topic: str, dead: str, **changes: Any) -> None:
    """A redrive of all letters has noted its first step, and was killed then."""
    arguments = {"where": None, "sets": {}, "function": None, "to": None, **changes}
    begin, end = {(dead, 0): 0, (dead, 1): 0}, {(dead, 0): LETTERS // 2, (dead, 1): LETTERS // 2}
    extra = {"targets": [topic, "deleted-since"], "excluded": {}}
    state = replace(StepState.new(arguments, begin, end), until=end, extra=extra)
    with Cluster(node.bootstrap) as cluster:
        job = f"redrive {dead} {cluster.topics([dead])[dead].id.hex()} "
        Journal(cluster, job).put("state", state.note())


def test_an_interrupted_step_is_finished_though_a_topic_and_some_partitions_letters_are_gone(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    interrupted(node, topic, dead)
    plain.delete_before(node.bootstrap, dead, 0, LETTERS // 2)
    done = redrive(spark, RedriveSettings(node.bootstrap, dead))
    assert (done.finished, done.seen, done.abandoned) == (20, 0, 0)
    assert values(node, topic) == numbered(range(1, LETTERS, 2))


def test_an_interrupted_step_of_which_nothing_is_left_holds_up_nobody(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    interrupted(node, topic, dead)
    for partition in range(2):
        plain.delete_before(node.bootstrap, dead, partition, LETTERS // 2)
    plain.send(node.bootstrap, dead, [letter(topic, 77)])
    done = redrive(spark, RedriveSettings(node.bootstrap, dead))
    assert (done.finished, done.sent, values(node, topic)) == (0, 1, [b"v77"])


@pytest.mark.parametrize(
    ("changes", "first", "text"),
    [
        ({}, 5, "letters of .* before offset 5 are deleted"),
        ({"function": "deleted_since:repair"}, 0, "deleted_since"),
    ],
)
def test_an_interrupted_step_that_can_not_be_repeated_is_given_up_when_told_to(
    spark: SparkSession, node: Node, topic: str, dead: str, changes: dict[str, Any], first: int, text: str
) -> None:
    interrupted(node, topic, dead, **changes)
    plain.delete_before(node.bootstrap, dead, 0, first)
    with pytest.raises(PostroadError, match=f"interrupted.*{text}.*--abandon"):
        redrive(spark, RedriveSettings(node.bootstrap, dead))
    assert values(node, topic) == []
    done = redrive(spark, RedriveSettings(node.bootstrap, dead, abandons=True))
    assert (done.abandoned, done.sent) == (40, 40 - first)
    assert redrive(spark, RedriveSettings(node.bootstrap, dead)).seen == 0


def test_letters_that_can_go_nowhere_are_counted_and_stay(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    homeless = Message(b"no origin", partition=1)
    plain.send(node.bootstrap, dead, [homeless, letter("gone-topic", 99)])
    dry = redrive(spark, RedriveSettings(node.bootstrap, dead, is_dry=True))
    assert (dry.seen, dry.sent, sum(dry.failed.values())) == (42, 40, 2)
    assert values(node, topic) == []

    done = redrive(spark, RedriveSettings(node.bootstrap, dead))

    assert done.sent == 40
    assert {text.split(":")[0] for text in done.failed} == {
        "there is no topic gone-topic",
        "it does not say from which topic it came",
    }
    by_hand = redrive(spark, RedriveSettings(node.bootstrap, dead, to=topic))
    assert (by_hand.sent, by_hand.failed) == (2, {})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"where": "raeson = 'x'"}, "raeson"),
        ({"sets": {"offset": "1"}}, "can't be set"),
        ({"sets": {"value": "uuid()"}}, "something else each time"),
        ({"sets": {"value": "cast(current_date as string)"}}, "something else each time"),
        ({"where": "died_at < now()"}, "write the time itself"),
        ({"function": "no_such_module:repair"}, "MODULE:NAME"),
        ({"function": "json:nothing"}, "MODULE:NAME"),
        ({"to": "nowhere"}, "no topic nowhere"),
        ({"name": "nobody"}, "no subscription and no topic nobody"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_sent(
    spark: SparkSession, node: Node, topic: str, dead: str, change: dict[str, Any], text: str
) -> None:
    with pytest.raises(PostroadError, match=text):
        redrive(spark, RedriveSettings(**{"bootstrap": node.bootstrap, "name": dead, **change}))
    assert values(node, topic) == []


def test_a_stop_before_the_first_step_sends_nothing(
    spark: SparkSession, node: Node, topic: str, dead: str
) -> None:
    stop = threading.Event()
    stop.set()
    assert not redrive(spark, RedriveSettings(node.bootstrap, dead), stop=stop).is_complete
    assert values(node, topic) == []
