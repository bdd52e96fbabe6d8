"""`transactional=true`: `read_committed` readers see all that the tasks of a job write, or nothing of it.
And `transactional=task`: they see all of a task, or nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from postroad.errors import (
    ApiError,
    ConfigurationError,
    InvalidProducerEpoch,
    InvalidTransactionState,
    ProducerFenced,
)
from postroad.spark.cluster import Cluster
from postroad.spark.sink import Job, Written, _abort, _commit, _runs
from postroad.spark.write_options import WriteOptions, parse_write
from postroad.testing import Node
from postroad.testing import node as start_node
from tests.clients.wait import until
from tests.spark import plain

PARTITIONS = 3


def options_for(node: Node, topic: str, kind: str = "true", **more: str) -> WriteOptions:
    settings = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "kafka.batch.size": "2000"}
    return parse_write({**settings, "transactional": kind, **more}, streaming=False)


def rows_of(numbers: range) -> Iterator[Any]:
    array = pa.array([str(number) for number in numbers], pa.string())
    batch = pa.record_batch([array, array], ["key", "value"])
    return (batch.slice(at, 100) for at in range(0, len(numbers), 100))


def committed(node: Node, topic: str) -> list[int]:
    return sorted(int(row.value or b"") for row in plain.read_all(node.bootstrap, topic, "read_committed"))


def is_stable(node: Node, topic: str) -> bool:
    """Whether readers wait for no transaction."""
    places = [(topic, partition) for partition in range(PARTITIONS)]
    with Cluster(node.bootstrap, isolation="read_committed") as stable, Cluster(node.bootstrap) as all_of_it:
        return stable.latest(places) == all_of_it.latest(places)


class Query:
    """The driver of a streaming query, and its tasks."""

    def __init__(self, node: Node, topic: str, kind: str = "true", **more: str) -> None:
        self.options = options_for(node, topic, kind, **more)
        self.writer = f"query {topic} "
        self.numbers = itertools.count()

    def run(self, batch: int) -> Job:
        """The next try of a driver to write the batch."""
        return Job(self.options, self.writer, f"run {next(self.numbers)}", batch)

    def commit(self, *messages: Written) -> None:
        _commit(self.options, messages)

    def abort(self, *messages: Written | None) -> None:
        (run,) = _runs(messages)
        _abort(self.options, run, len(messages))


@pytest.fixture
def query(node: Node, topic: str) -> Query:
    plain.create(node.bootstrap, topic, PARTITIONS)
    return Query(node, topic)


def test_a_micro_batch_appears_whole_and_with_the_attempts_that_spark_takes_only(
    query: Query, node: Node, topic: str
) -> None:
    job = query.run(0)
    first = job.write(0, rows_of(range(1_000)))
    job.write(1, rows_of(range(1_000, 1_500)))  # it failed, or another attempt was faster
    second = job.write(1, rows_of(range(1_000, 2_000)))
    empty = job.write(2, rows_of(range(0)))
    assert committed(node, topic) == []
    query.commit(first, second, empty)
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(2_000))
    assert len(plain.read_all(node.bootstrap, topic)) == 2_500


def test_a_micro_batch_that_is_repeated_writes_nothing_whatever_its_rows_are(
    query: Query, node: Node, topic: str
) -> None:
    job = query.run(4)
    query.commit(job.write(0, rows_of(range(500))))
    again = query.run(4)
    repeated = again.write(0, rows_of(range(500, 700)))
    assert repeated.rows == 0
    query.commit(repeated)
    following = query.run(5)
    query.commit(following.write(0, rows_of(range(500, 600))))
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(600))
    with pytest.raises(InvalidTransactionState, match=r"checkpoint was set back or replaced.*writeId"):
        query.run(3).write(0, rows_of(range(10)))


def test_a_driver_that_died_is_taken_over_and_neither_it_nor_its_tasks_are_heard(
    query: Query, node: Node, topic: str
) -> None:
    zombie = query.run(0)
    late = zombie.write(0, rows_of(range(1_000)))
    job = query.run(0)
    done = job.write(0, rows_of(range(300)))
    with pytest.raises(ProducerFenced, match="ended before its commit"):
        query.commit(late)
    with pytest.raises(ProducerFenced):
        zombie.write(1, rows_of(range(1_000, 2_000)))
    query.commit(done)
    with pytest.raises(ProducerFenced):
        query.commit(late)
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(300))


def test_a_task_that_still_writes_when_its_driver_has_committed_is_refused(
    query: Query, node: Node, topic: str
) -> None:
    job = query.run(0)

    def zombie() -> Iterator[Any]:
        yield from rows_of(range(5_000, 15_000))
        query.commit(job.write(0, rows_of(range(100))))
        yield from rows_of(range(15_000, 30_000))

    elsewhere = job._replace(options=options_for(node, topic))
    with pytest.raises(ApiError) as refused:
        elsewhere.write(0, zombie())
    assert isinstance(refused.value, InvalidProducerEpoch)
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(100))


def test_a_job_that_is_given_up_leaves_nothing(query: Query, node: Node, topic: str) -> None:
    job = query.run(0)
    written = job.write(0, rows_of(range(1_000)))
    query.abort(written, None)
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == []
    with pytest.raises(ProducerFenced):
        query.commit(written)


def test_what_takes_too_long_is_aborted_and_its_commit_refused(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    query = Query(node, topic, **{"kafka.transaction.timeout.ms": "300"})
    written = query.run(0).write(0, rows_of(range(1_000)))
    until(lambda: is_stable(node, topic), "it was aborted")
    with pytest.raises(ProducerFenced, match=r"kafka\.transaction\.timeout\.ms"):
        query.commit(written)
    assert committed(node, topic) == []


def test_a_node_that_is_killed_in_between_keeps_what_it_has_of_the_transaction(postroad: Node) -> None:
    plain.create(postroad.bootstrap, "orders", PARTITIONS)
    query = Query(postroad, "orders")
    job = query.run(0)

    def slowly() -> Iterator[Any]:
        for number, batch in enumerate(rows_of(range(3_000))):
            if number == 15:
                postroad.kill()
                postroad.start()
            yield batch

    first, second = job.write(0, slowly()), job.write(1, rows_of(range(3_000, 4_000)))
    postroad.kill()
    postroad.start()
    query.commit(first, second)
    postroad.kill()
    postroad.start()
    until(lambda: is_stable(postroad, "orders"), "markers are written")
    assert committed(postroad, "orders") == list(range(4_000))
    repeated = query.run(0).write(0, rows_of(range(4_000)))
    assert repeated.rows == 0


def test_micro_batches_use_the_same_producers_again(query: Query, node: Node, topic: str) -> None:
    for batch in range(5):
        job = query.run(batch)
        query.commit(*(job.write(task, rows_of(range(10))) for task in range(3)))
    following = query.run(5)
    written = [following.write(task, rows_of(range(1))) for task in range(4)]
    producers = [each.producer for each in written if each.producer]
    assert len({producer_id for producer_id, _ in producers}) == 4
    assert [epoch for _, epoch in producers] == [5, 5, 5, 0]


def test_a_cluster_without_such_transactions_says_what_to_use(topic: str) -> None:
    with start_node({"kafka.transactions": "false"}) as running:
        plain.create(running.bootstrap, topic)
        with pytest.raises(ConfigurationError, match="transactional=task"):
            Query(running, topic).run(0).write(0, rows_of(range(10)))


# --- each task in a transaction of its own ---------------------------------------------------------


@pytest.fixture
def tasks(node: Node, topic: str) -> Query:
    plain.create(node.bootstrap, topic, PARTITIONS)
    return Query(node, topic, "task")


def test_a_task_appears_whole_once_and_with_the_attempt_that_spark_takes_only(
    tasks: Query, node: Node, topic: str
) -> None:
    job = tasks.run(0)
    job.write(0, rows_of(range(300)))  # what makes the rows failed, and Spark ended them as if they were all
    first, empty = job.write(0, rows_of(range(700))), job.write(1, rows_of(range(0)))
    assert (first.rows, empty.rows) == (700, 0)
    assert committed(node, topic) == []
    tasks.commit(first, empty)
    tasks.commit(first, empty)  # its answer was lost
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(700))


def test_a_task_that_is_committed_writes_nothing_when_it_is_repeated(
    tasks: Query, node: Node, topic: str
) -> None:
    job = tasks.run(0)
    first = job.write(0, rows_of(range(700)))
    job.write(1, rows_of(range(700, 800)))
    tasks.commit(first)  # and then the driver died
    again = tasks.run(0)
    repeated = [again.write(0, rows_of(range(700))), again.write(1, rows_of(range(700, 900)))]
    assert [each.rows for each in repeated] == [0, 200]
    tasks.commit(*repeated)
    following = tasks.run(1)
    tasks.commit(following.write(1, rows_of(range(900, 1_000))))
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(1_000))
    with pytest.raises(InvalidTransactionState, match=r"checkpoint was set back"):
        tasks.run(0).write(1, rows_of(range(10)))


def failing() -> Iterator[Any]:
    yield from rows_of(range(700))
    raise RuntimeError("the task fails")


def test_a_job_that_is_given_up_leaves_nothing_of_any_attempt(tasks: Query, node: Node, topic: str) -> None:
    job = tasks.run(0)
    written = job.write(0, rows_of(range(1_000)))
    with pytest.raises(RuntimeError):
        job.write(1, failing())
    assert not is_stable(node, topic)
    tasks.abort(written, None)
    until(lambda: is_stable(node, topic), "readers need not wait until the transactions' time is over")
    assert committed(node, topic) == []
    with pytest.raises(ProducerFenced, match="ended before its commit"):
        tasks.commit(written)


def test_a_task_that_takes_too_long_is_aborted_and_its_commit_refused(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    tasks = Query(node, topic, "task", **{"kafka.transaction.timeout.ms": "300"})
    written = tasks.run(0).write(0, rows_of(range(1_000)))
    until(lambda: is_stable(node, topic), "it was aborted")
    with pytest.raises(ProducerFenced, match=r"kafka\.transaction\.timeout\.ms"):
        tasks.commit(written)
    assert committed(node, topic) == []


def test_an_attempt_at_a_task_fences_the_one_before(tasks: Query, node: Node, topic: str) -> None:
    job = tasks.run(0)

    def zombie() -> Iterator[Any]:
        yield from rows_of(range(5_000, 15_000))
        tasks.commit(job.write(0, rows_of(range(100))))
        yield from rows_of(range(15_000, 30_000))

    elsewhere = job._replace(options=options_for(node, topic, "task"))
    with pytest.raises(ApiError):
        elsewhere.write(0, zombie())
    until(lambda: is_stable(node, topic), "markers are written")
    assert committed(node, topic) == list(range(100))
