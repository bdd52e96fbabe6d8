"""Whatever Spark repeats is stored once: tasks, micro-batches, whole jobs, after any kind of death."""

from __future__ import annotations

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
    copy(spark, node, topic, tmp_path).awaitTermination(int(PATIENCE_S))
    for _ in range(2):
        forget_last_commit(tmp_path)
        copy(spark, node, topic, tmp_path).awaitTermination(int(PATIENCE_S))
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(2_000))


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
        query.awaitTermination(int(PATIENCE_S))
    spark.conf.unset(ROWS_AT_A_TIME)
    assert stored(node, f"{topic}-copy") < 1_000  # some of the first micro-batch, not all
    copy(spark, node, topic, tmp_path).awaitTermination(int(PATIENCE_S))
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(2_000))


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
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(count))
    forget_last_commit(tmp_path)
    kill_repeatedly(node, topic, tmp_path, 0, count)
    assert plain.numbers_in(node.bootstrap, f"{topic}-copy") == list(range(count))
