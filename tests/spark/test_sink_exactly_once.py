"""Whatever Spark repeats is stored once: tasks, micro-batches, whole jobs, after any kind of death."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from postroad.spark.cluster import Cluster
from postroad.spark.identity import EPOCHS, of_task
from postroad.spark.stored import DifferentRows
from postroad.spark.task_writer import write_task
from postroad.spark.write_options import WriteOptions, parse_write
from postroad.testing import Node
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

APP = Path(__file__).with_name("sink_app.py")
PATIENCE_S = 300.0
PARTITIONS = 3
ROWS_AT_A_TIME = "spark.sql.execution.arrow.maxRecordsPerBatch"


def values(node: Node, topic: str) -> list[int]:
    return sorted(int(row.value or b"") for row in plain.read_all(node.bootstrap, topic))


def stored(node: Node, topic: str) -> int:
    with Cluster(node.bootstrap) as cluster:
        return sum(cluster.latest([(topic, partition) for partition in range(PARTITIONS)]).values())


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "it did not come so far"
        time.sleep(0.02)


# --- without Spark: attempts of a task as the broker sees them ---------------------------------


def options_for(node: Node, topic: str, **more: str) -> WriteOptions:
    settings = {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "kafka.batch.size": "2000"}
    return parse_write({**settings, **more}, streaming=False)


def rows_of(numbers: list[int]) -> list[Any]:
    import pyarrow as pa

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
    assert values(node, topic) == numbers


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
    assert values(node, topic) == numbers


def test_a_micro_batch_that_was_followed_by_another_is_not_written_again(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    options = options_for(node, topic)
    for batch in (EPOCHS - 2, EPOCHS - 1, EPOCHS - 2, EPOCHS, EPOCHS - 1, EPOCHS):
        write_task(options, of_task("query", 0, batch), rows_of([batch]))
    assert values(node, topic) == [EPOCHS - 2, EPOCHS - 1, EPOCHS]


def test_rows_that_differ_from_those_of_before_are_an_error(node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, 1)
    numbers = list(range(100, 400))
    options, identity = options_for(node, topic), of_task("query", 0)
    write_task(options, identity, rows_of(numbers[:150]))
    with pytest.raises(DifferentRows, match="repeated with other rows than before"):
        write_task(options, identity, rows_of(numbers[::-1]))
    assert values(node, topic) == numbers[:150]


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
    assert values(postroad, "orders") == numbers


# --- in one session: streams that fail and start anew ------------------------------------------


def copy(
    spark: SparkSession, node: Node, topic: str, checkpoint: Path, through: Any = None
) -> StreamingQuery:
    """A query that copies `topic` to `topic`-copy, 1,000 rows at a time, and ends."""
    reading = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000"}
    broker = {"kafka.bootstrap.servers": node.bootstrap}
    messages: DataFrame = spark.readStream.format("postroad").options(**broker, **reading).load()
    rows = messages.select("key", "value")
    if through is not None:
        rows = rows.mapInArrow(through, "key binary, value binary")
    writing = {"topic": f"{topic}-copy", "checkpointLocation": str(checkpoint), "kafka.batch.size": "9000"}
    return rows.writeStream.format("postroad").options(**broker, **writing).trigger(availableNow=True).start()


def fill(node: Node, topic: str, count: int) -> None:
    """Long keys, or Spark would gather a whole task's rows before it hands any to the sink."""
    plain.create(node.bootstrap, topic, 2)
    plain.create(node.bootstrap, f"{topic}-copy", PARTITIONS)
    messages = [plain.Message(b"%d" % each, b"%0800d" % each, each % 2) for each in range(count)]
    plain.send(node.bootstrap, topic, messages)


def forget_last_commit(checkpoint: Path) -> None:
    """The last micro-batch counts as begun and not as done."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


def test_a_finished_micro_batch_that_is_replayed_is_stored_once(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    fill(node, topic, 2_000)
    copy(spark, node, topic, tmp_path).awaitTermination(PATIENCE_S)
    for _ in range(2):
        forget_last_commit(tmp_path)
        copy(spark, node, topic, tmp_path).awaitTermination(PATIENCE_S)
    assert values(node, f"{topic}-copy") == list(range(2_000))


@pytest.mark.spark_slow
def test_a_query_whose_workers_are_killed_goes_on_with_each_row_once(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path
) -> None:
    fill(node, topic, 2_000)

    def endless(batches: Iterator[Any]) -> Iterator[Any]:
        """Never comes to the end: when its rows are through, it has to be killed."""
        for batch in batches:
            yield from (batch.slice(at, 50) for at in range(0, len(batch), 50))
        time.sleep(PATIENCE_S)

    spark.conf.set(ROWS_AT_A_TIME, "100")
    query = copy(spark, node, topic, tmp_path, endless)
    wait_for(lambda: stored(node, f"{topic}-copy"))
    kill_workers(spark)
    with pytest.raises(Exception, match=r"worker|Writing job failed"):
        query.awaitTermination(PATIENCE_S)
    spark.conf.unset(ROWS_AT_A_TIME)
    assert stored(node, f"{topic}-copy") < 1_000  # some of the first micro-batch, not all
    copy(spark, node, topic, tmp_path).awaitTermination(PATIENCE_S)
    assert values(node, f"{topic}-copy") == list(range(2_000))


def kill_workers(spark: SparkSession) -> None:
    """kill -9 for each Python worker of the session's executor: the children of its daemons."""
    daemons = children(jvm_of(spark))
    for daemon in daemons:
        for worker in children(daemon):
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)


def jvm_of(spark: SparkSession) -> int:
    gateway: Any = spark.sparkContext._gateway
    return int(gateway.proc.pid)


def children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


# --- applications that are killed --------------------------------------------------------------


def start_app(node: Node, topic: str, checkpoint: Path, rows: int) -> subprocess.Popen[bytes]:
    arguments = [node.bootstrap, topic, f"{topic}-copy", str(checkpoint), str(rows)]
    return subprocess.Popen(
        [sys.executable, str(APP), *arguments], start_new_session=True, stderr=subprocess.DEVNULL
    )


def kill_repeatedly(node: Node, topic: str, checkpoint: Path, kills: int, count: int) -> None:
    """Driver and executor are killed when they have stored a few more rows, and at last let be."""
    chance = random.Random(kills)
    for _ in range(kills):
        goal = stored(node, f"{topic}-copy") + chance.randrange(1, count // (kills + 1))
        app = start_app(node, topic, checkpoint, count // 8)
        wait_for(lambda: stored(node, f"{topic}-copy") >= goal or app.poll() is not None)  # noqa: B023
        os.killpg(app.pid, signal.SIGKILL)
        app.wait()
    app = start_app(node, topic, checkpoint, count // 8)
    assert app.wait(PATIENCE_S) == 0


@pytest.mark.spark_slow
@pytest.mark.parametrize("kills", [2, 20])
def test_an_application_that_is_killed_stores_each_row_once(
    node: Node, topic: str, tmp_path: Path, kills: int
) -> None:
    count = 1_000 * (kills + 1)
    fill(node, topic, count)
    kill_repeatedly(node, topic, tmp_path, kills, count)
    assert values(node, f"{topic}-copy") == list(range(count))
    forget_last_commit(tmp_path)
    kill_repeatedly(node, topic, tmp_path, 0, count)
    assert values(node, f"{topic}-copy") == list(range(count))
