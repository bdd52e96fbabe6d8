"""Attempts of a task as the broker sees them: what is repeated is stored once, other rows are found out."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from postroad.errors import InvalidProducerEpoch
from postroad.spark.identity import EPOCHS, of_task
from postroad.spark.stored import DifferentRows
from postroad.spark.task_writer import write_task
from postroad.spark.write_options import WriteOptions, parse_write
from postroad.testing import Node
from tests.spark import plain

PARTITIONS = 3
PATIENCE_S = 300.0


def options_for(node: Node, topic: str, **more: str) -> WriteOptions:
    settings = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "kafka.batch.size": "2000"}
    return parse_write({**settings, **more}, streaming=False)


def rows_of(numbers: list[int]) -> list[Any]:
    array = pa.array([str(number) for number in numbers], pa.string())
    batch = pa.record_batch([array, array], ["key", "value"])
    return [batch.slice(at, 100) for at in range(0, len(numbers), 100)]


@pytest.mark.parametrize("ends", [(0,), (1,), (2_999,), (3_000,), (40, 41, 1_700), (2_000, 700, 2_500)])
def test_attempts_that_end_anywhere_and_their_repetition_store_each_row_once(
    node: Node, topic: str, ends: tuple[int, ...]
) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    options, identity, numbers = options_for(node, topic), of_task("query", 0, 4), list(range(3_000))
    for end in ends:
        write_task(options, identity, rows_of(numbers[:end]))
    assert write_task(options, identity, rows_of(numbers))[0] == 3_000
    assert plain.numbers_in(node.bootstrap, topic) == numbers


def test_attempts_at_the_same_time_store_each_row_once(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    numbers = list(range(20_000))
    failures: list[BaseException] = []

    def attempt(count: int) -> None:
        try:
            write_task(options_for(node, topic), of_task("query", 0), rows_of(numbers[:count]))
        except BaseException as error:
            failures.append(error)

    # Two that end properly, and one that is cut short.
    threads = [threading.Thread(target=attempt, args=(count,)) for count in (20_000, 9_999, 20_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not failures
    assert plain.numbers_in(node.bootstrap, topic) == numbers


def test_a_micro_batch_that_was_followed_by_another_is_refused_and_says_what_to_do(
    node: Node, topic: str
) -> None:
    plain.create(node.bootstrap, topic)
    options = options_for(node, topic)
    for batch in (55, 56, 57, 57):  # the last one may be repeated
        write_task(options, of_task("query", 0, batch), rows_of([batch]))
    with pytest.raises(InvalidProducerEpoch, match=r"checkpoint was set back or replaced.*writeId"):
        write_task(options, of_task("query", 0, 0), rows_of([1000]))
    assert plain.numbers_in(node.bootstrap, topic) == [55, 56, 57]


def test_a_query_may_have_more_micro_batches_than_a_producer_has_epochs(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    options = options_for(node, topic)
    for batch in (EPOCHS - 2, EPOCHS - 1, EPOCHS - 1, EPOCHS, EPOCHS, EPOCHS + 1):
        write_task(options, of_task("query", 0, batch), rows_of([batch]))
    assert plain.numbers_in(node.bootstrap, topic) == [EPOCHS - 2, EPOCHS - 1, EPOCHS, EPOCHS + 1]


# --- other rows than before ----------------------------------------------------------------------

BEFORE = list(range(1_000, 2_000))  # some 25 record batches


@pytest.mark.parametrize(
    "again",
    [
        BEFORE[::-1],
        [*BEFORE[1:], BEFORE[0]],
        [BEFORE[1], BEFORE[0], *BEFORE[2:]],
        [*BEFORE[:500], 7, *BEFORE[501:]],
        [*BEFORE[:985], 7, *BEFORE[986:]],
        [number + 5_000 for number in BEFORE[:60]],
        [*BEFORE[:300], *BEFORE[301:], 2_000],
    ],
    ids=[
        "reversed",
        "shifted",
        "the first",
        "one in the middle",
        "near the end",
        "fewer, all others",
        "one gone",
    ],
)
@pytest.mark.parametrize("stored", [1_000, 990])
def test_rows_that_differ_from_those_of_before_are_an_error(
    node: Node, topic: str, stored: int, again: list[int]
) -> None:
    first = BEFORE[:stored]
    plain.create(node.bootstrap, topic)
    options, identity = options_for(node, topic), of_task("query", 0)
    write_task(options, identity, rows_of(first))
    with pytest.raises(DifferentRows, match="repeated with other rows than before"):
        write_task(options, identity, rows_of(again))
    assert plain.numbers_in(node.bootstrap, topic) == first


def test_rows_of_any_size_in_another_order_are_an_error(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    chance = random.Random(5)
    rows = [f"{number}:{'x' * chance.randrange(1, 400)}" for number in range(4_000)]
    options, identity = options_for(node, topic, **{"kafka.batch.size": "20000"}), of_task("query", 0, 3)

    def write(values: Sequence[str]) -> None:
        write_task(options, identity, [pa.record_batch([pa.array(values, pa.string())], ["value"])])

    write(rows[:2_500])
    chance.shuffle(again := rows[:])
    with pytest.raises(DifferentRows):
        write(again)
    write(rows)
    found = [(row.value or b"").decode() for row in plain.read_all(node.bootstrap, topic)]
    assert found == rows


def test_what_was_stored_is_found_among_the_rows_of_others(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    options, numbers = options_for(node, topic), list(range(1_000))
    tasks = [of_task("query", task) for task in range(3)]
    for end in (100, 300, 550, 990):
        for task in tasks:
            write_task(options, task, rows_of(numbers[:end]))
    write_task(options, of_task("another", 0), rows_of(numbers * 5))
    with pytest.raises(DifferentRows):
        write_task(options, tasks[1], rows_of([*numbers[:5], 7, *numbers[6:]]))
    for task in tasks:
        write_task(options, task, rows_of(numbers))
    assert plain.numbers_in(node.bootstrap, topic) == sorted(numbers * 8)


def test_what_retention_took_meanwhile_is_not_asked_for(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic)
    options, identity, numbers = options_for(node, topic), of_task("query", 0), list(range(1_000))
    write_task(options, identity, rows_of(numbers[:900]))
    plain.delete_before(node.bootstrap, topic, 0, 700)
    with pytest.raises(DifferentRows):
        write_task(options, identity, rows_of([*numbers[:750], 7, *numbers[751:]]))
    write_task(options, identity, rows_of(numbers))
    assert plain.numbers_in(node.bootstrap, topic) == numbers[700:]
    plain.delete_before(node.bootstrap, topic, 0, 1_000)
    write_task(options, identity, rows_of(numbers))
    assert plain.numbers_in(node.bootstrap, topic) == []


def test_a_broker_that_is_restarted_in_mid_write_stores_each_row_once(postroad: Node) -> None:
    plain.create(postroad.bootstrap, "orders", PARTITIONS)
    numbers = list(range(5_000))

    def slowly() -> Iterator[Any]:
        for number, batch in enumerate(rows_of(numbers)):
            if number in (15, 30):
                postroad.kill()
                postroad.start()
            yield batch

    write_task(options_for(postroad, "orders"), of_task("query", 0), slowly())
    write_task(options_for(postroad, "orders"), of_task("query", 0), rows_of(numbers))
    assert plain.numbers_in(postroad.bootstrap, "orders") == numbers
