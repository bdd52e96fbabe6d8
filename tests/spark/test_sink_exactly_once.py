"""Whatever Spark repeats is stored once: tasks, micro-batches, whole jobs, after any kind of death."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from postroad.client import Client
from postroad.client.transaction_admin import list_all
from postroad.spark.cluster import Cluster
from postroad.testing import Node
from tests.spark import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

APP = Path(__file__).with_name("sink_app.py")
PATIENCE_S = 300.0
PARTITIONS = 3
ROWS_AT_A_TIME = "spark.sql.execution.arrow.maxRecordsPerBatch"


def stored(node: Node, topic: str) -> int:
    with Cluster(node.bootstrap) as cluster:
        return sum(cluster.latest([(topic, partition) for partition in range(PARTITIONS)]).values())


def wait_for(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "it did not come so far"
        time.sleep(0.02)


# --- in one session: streams that fail and start anew ------------------------------------------


def copy(
    spark: SparkSession,
    node: Node,
    topic: str,
    checkpoint: Path,
    through: Any = None,
    transactional: str = "false",
) -> StreamingQuery:
    """A query that copies `topic` to `topic`-copy, 1,000 rows at a time, and ends."""
    reading = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "1000"}
    broker = {"kafka.bootstrap.servers": node.bootstrap}
    messages: DataFrame = spark.readStream.format("postroad").options(**broker, **reading).load()
    rows = messages.select("key", "value")
    if through is not None:
        rows = rows.mapInArrow(through, "key binary, value binary")
    writing = {"topic": f"{topic}-copy", "checkpointLocation": str(checkpoint), "kafka.batch.size": "9000"}
    writer = rows.writeStream.format("postroad").options(**broker, **writing, transactional=transactional)
    return writer.trigger(availableNow=True).start()


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
    copy(spark, node, topic, tmp_path).awaitTermination(int(PATIENCE_S))
    for _ in range(2):
        forget_last_commit(tmp_path)
        copy(spark, node, topic, tmp_path).awaitTermination(int(PATIENCE_S))
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(2_000))


@pytest.mark.parametrize("transactional", ["true", pytest.param("task", marks=pytest.mark.spark_slow)])
def test_micro_batches_are_transactions_and_a_replayed_one_writes_nothing(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, transactional: str
) -> None:
    fill(node, topic, 2_000)
    copy(spark, node, topic, tmp_path, transactional=transactional).awaitTermination(int(PATIENCE_S))
    wait_for(lambda: committed_numbers(node, topic) == list(range(2_000)))
    once = stored(node, f"{topic}-copy")
    forget_last_commit(tmp_path)
    copy(spark, node, topic, tmp_path, transactional=transactional).awaitTermination(int(PATIENCE_S))
    assert committed_numbers(node, topic) == list(range(2_000))
    assert stored(node, f"{topic}-copy") == once


@pytest.mark.parametrize("transactional", ["false", "true", "task"])
def test_rows_that_end_early_because_their_function_fails_are_written_once_when_they_are_repeated(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, transactional: str
) -> None:
    """Spark ends the sink's rows then as if they were all."""
    fill(node, topic, 1_000)

    def failing(batches: Iterator[Any]) -> Iterator[Any]:
        for number, batch in enumerate(batches):
            if number == 8:
                raise RuntimeError("half way")
            yield batch

    spark.conf.set(ROWS_AT_A_TIME, "50")
    query = copy(spark, node, topic, tmp_path, failing, transactional)
    with pytest.raises(Exception, match="half way"):
        query.awaitTermination(int(PATIENCE_S))
    spark.conf.unset(ROWS_AT_A_TIME)
    assert 0 < stored(node, f"{topic}-copy") < 1_000, "some rows had come"
    if transactional != "false":
        assert committed_numbers(node, topic) == []
    copy(spark, node, topic, tmp_path, transactional=transactional).awaitTermination(int(PATIENCE_S))
    wait_for(lambda: len(committed_numbers(node, topic)) >= 1_000)
    assert committed_numbers(node, topic) == list(range(1_000))


def committed_numbers(node: Node, topic: str) -> list[int]:
    rows = plain.read_all(node.bootstrap, f"{topic}-copy", "read_committed")
    return sorted(int(row.value or b"") for row in rows)


@pytest.mark.spark_slow
@pytest.mark.parametrize("transactional", ["false", "true", "task"])
def test_a_query_whose_workers_are_killed_goes_on_with_each_row_once(
    spark: SparkSession, node: Node, topic: str, tmp_path: Path, transactional: str
) -> None:
    fill(node, topic, 2_000)

    def endless(batches: Iterator[Any]) -> Iterator[Any]:
        """Never comes to the end: when its rows are through, it has to be killed."""
        for batch in batches:
            yield from (batch.slice(at, 50) for at in range(0, len(batch), 50))
        time.sleep(PATIENCE_S)

    spark.conf.set(ROWS_AT_A_TIME, "100")
    query = copy(spark, node, topic, tmp_path, endless, transactional)
    wait_for(lambda: stored(node, f"{topic}-copy"))
    kill_workers(spark)
    with pytest.raises(Exception, match=r"worker|Writing job failed"):
        query.awaitTermination(int(PATIENCE_S))
    spark.conf.unset(ROWS_AT_A_TIME)
    assert stored(node, f"{topic}-copy") < 1_000  # some of the first micro-batch, not all
    if transactional != "false":
        assert committed_numbers(node, topic) == []
    copy(spark, node, topic, tmp_path, transactional=transactional).awaitTermination(int(PATIENCE_S))
    wait_for(lambda: len(committed_numbers(node, topic)) == 2_000)
    assert committed_numbers(node, topic) == list(range(2_000))


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


def start_app(
    node: Node, topic: str, checkpoint: Path, rows: int, transactional: str = "false"
) -> subprocess.Popen[bytes]:
    arguments = [node.bootstrap, topic, f"{topic}-copy", str(checkpoint), str(rows), transactional]
    return subprocess.Popen(
        [sys.executable, str(APP), *arguments], start_new_session=True, stderr=subprocess.DEVNULL
    )


def kill_repeatedly(
    node: Node,
    topic: str,
    checkpoint: Path,
    kills: int,
    count: int,
    transactional: str = "false",
    check: Callable[[], object] = lambda: None,
) -> None:
    """Driver and executor are killed when they have stored a few more rows, and at last let be. `check` is
    called after each kill."""
    chance = random.Random(kills)
    for _ in range(kills):
        goal = stored(node, f"{topic}-copy") + chance.randrange(1, count // (kills + 1))
        app = start_app(node, topic, checkpoint, count // 8, transactional)
        wait_for(lambda: stored(node, f"{topic}-copy") >= goal or app.poll() is not None)  # noqa: B023
        os.killpg(app.pid, signal.SIGKILL)
        app.wait()
        check()
    app = start_app(node, topic, checkpoint, count // 8, transactional)
    assert app.wait(PATIENCE_S) == 0


@pytest.mark.spark_slow
@pytest.mark.parametrize("kills", [2, 20])
def test_an_application_that_is_killed_stores_each_row_once(
    node: Node, topic: str, tmp_path: Path, kills: int
) -> None:
    count = 1_000 * (kills + 1)
    fill(node, topic, count)
    kill_repeatedly(node, topic, tmp_path, kills, count)
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(count))
    forget_last_commit(tmp_path)
    kill_repeatedly(node, topic, tmp_path, 0, count)
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(count))


@pytest.mark.spark_slow
@pytest.mark.parametrize("transactional", ["false", "true", "task"])
def test_an_application_whose_tasks_fail_half_way_and_succeed_later_stores_each_row_once(
    node: Node, topic: str, tmp_path: Path, transactional: str
) -> None:
    count = 8_000
    fill(node, topic, count)
    kill_repeatedly(node, topic, tmp_path, 0, count, transactional)
    wait_for(lambda: not ending(node))
    assert committed_numbers(node, topic) == list(range(count))


@pytest.mark.spark_slow
@pytest.mark.parametrize(("transactional", "kills"), [("true", 6), ("task", 3)])
def test_an_application_that_is_killed_commits_each_row_once_in_whatever_order(
    node: Node, topic: str, tmp_path: Path, transactional: str, kills: int
) -> None:
    count = 800 * (kills + 1)  # an eighth of it comes from both partitions alike
    fill(node, topic, count)
    seen: list[int] = []

    def is_whole() -> None:
        """Micro-batches have count // 8 rows, the next ones of the source."""
        wait_for(lambda: not ending(node))
        found = committed_numbers(node, topic)
        seen.append(len(found))
        if transactional == "true":
            assert found == list(range(len(found)))
            assert len(found) % (count // 8) == 0

    kill_repeatedly(node, topic, tmp_path, kills, count, transactional, is_whole)
    wait_for(lambda: len(committed_numbers(node, topic)) == count)
    assert committed_numbers(node, topic) == list(range(count))
    assert stored(node, f"{topic}-copy") > count + 8 * PARTITIONS, "nothing was ever aborted"
    forget_last_commit(tmp_path)
    kill_repeatedly(node, topic, tmp_path, 0, count, transactional)
    assert committed_numbers(node, topic) == list(range(count))
    assert len(set(seen)) > 1, "all kills came in the same micro-batch"


def ending(node: Node) -> list[str]:
    """Transactional ids whose markers are under way."""

    async def ask() -> list[str]:
        async with Client(node.bootstrap) as client:
            found = await list_all(client, ["PrepareCommit", "PrepareAbort"])
            return [each.transactional_id for each in found]

    return asyncio.run(ask())
