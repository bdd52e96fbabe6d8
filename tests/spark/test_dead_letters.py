"""Rows that could not be read are in a topic, each once, whatever is repeated and however large they are."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark import TaskContext

from postroad.spark import parsed_values
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.dead_letters import LETTERS_MAX, DeadLetters, Letter
from postroad.spark.parsed_values import JsonParser, ParsedValues
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range
from postroad.testing import Node
from tests.spark.plain import Message, Row, create, delete, read_all, send

LETTER = Letter(0, 1714521600000, b"k", b"v", [("h", b"1"), ("postroad-dead-reason", b"an old one")])


@pytest.fixture
def cluster(node: Node) -> Iterator[Cluster]:
    with Cluster(node.bootstrap) as one:
        yield one


def write(cluster: Cluster, topic: str, start: int, values: Iterable[bytes]) -> None:
    """As a task does whose range begins at `start`."""
    dead = DeadLetters(cluster, topic, OffsetRange("orders", 3, start, start + 10_000), "query")
    for number, value in enumerate(values):
        dead.add(LETTER._replace(offset=start + number, value=value), "because")
    dead.flush()


def offsets_in(letters: Iterable[Row]) -> list[int]:
    return [int(dict(letter.headers)["postroad-dead-offset"] or b"") for letter in letters]


@pytest.mark.parametrize("before", [(), (7,), (LETTERS_MAX + 1, 40)])
def test_repeated_task_writes_its_letters_once(
    node: Node, cluster: Cluster, topic: str, before: tuple[int, ...]
) -> None:
    create(node.bootstrap, topic, 2)
    count = 6 * LETTERS_MAX + 7  # more batches than a node keeps the offsets of
    for written in (*before, count, count):
        write(cluster, topic, 0, [b"v"] * written)
    write(cluster, topic, 10_000, [b"v"] * 2)
    letters = read_all(node.bootstrap, topic)
    assert {letter.partition for letter in letters} == {1}
    assert offsets_in(letters) == [*range(count), 10_000, 10_001]
    assert letters[0].value == b"v"
    assert dict(letters[0].headers) | {"postroad-dead-at": b""} == {
        "h": b"1",
        "postroad-dead-topic": b"orders",
        "postroad-dead-partition": b"3",
        "postroad-dead-offset": b"0",
        "postroad-dead-timestamp": b"1714521600000",
        "postroad-dead-at": b"",
        "postroad-dead-reason": b"because",
    }


def test_letter_that_was_smaller_when_it_was_compressed_is_kept_whole(
    node: Node, cluster: Cluster, topic: str
) -> None:
    create(node.bootstrap, topic)
    values = [b"a", b"no json " * 200_000, b"b"]
    for _ in range(2):
        write(cluster, topic, 0, values)
    assert [letter.value for letter in read_all(node.bootstrap, topic)] == values


@pytest.mark.parametrize("limit", [1_000_000, 20_000])
def test_letter_that_is_too_large_goes_without_its_value_and_says_so(
    node: Node, cluster: Cluster, topic: str, limit: int
) -> None:
    create(node.bootstrap, topic, max_message_bytes=str(limit))
    large = random.Random(1).randbytes(limit + 1_000)
    for _ in range(2):
        write(cluster, topic, 0, [b"a", b"b", large, b"c"])
    letters = read_all(node.bootstrap, topic)
    assert [letter.value for letter in letters] == [b"a", b"b", None, b"c"]
    assert offsets_in(letters) == [0, 1, 2, 3]
    why = f"its value of {limit + 1_000:,} bytes is too large for topic {topic}"
    assert dict(letters[2].headers)["postroad-dead-unreadable"] == why.encode()
    assert letters[2].key == b"k"


@pytest.fixture
def in_micro_batch() -> Iterator[TaskContext]:
    """A task's context as a worker of Spark makes it."""
    context = TaskContext._getOrCreate()
    yield context
    TaskContext._setTaskContext(None)


def test_letters_of_a_topic_that_was_made_anew_are_new(
    node: Node, cluster: Cluster, topic: str, in_micro_batch: TaskContext
) -> None:
    create(node.bootstrap, topic)
    kind = pa.struct([("id", pa.int64())])
    values = ParsedValues(("value",), kind, JsonParser(kind), "deadletter", topic, "job")

    def read(batch: int) -> None:
        in_micro_batch._localProperties = {parsed_values.QUERY: "query", parsed_values.BATCH: str(batch)}
        part = OffsetRange(f"{topic}-source", 0, 0, 1)
        rows = read_range(cluster, part, Columns(values.wanted.names))
        assert sum(len(each) for each in values.convert(cluster, part, rows)) == 0

    for batch, value in enumerate([b"bad", b"worse"]):
        create(node.bootstrap, f"{topic}-source")
        send(node.bootstrap, f"{topic}-source", [Message(value)])
        read(batch)
        read(batch)
        delete(node.bootstrap, f"{topic}-source")
    assert [letter.value for letter in read_all(node.bootstrap, topic)] == [b"bad", b"worse"]
