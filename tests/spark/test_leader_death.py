"""What tasks do on three nodes when the leader that they talk to dies: the client's part, without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from postroad.spark.cluster import Cluster
from postroad.spark.columns import OFFSET, VALUE, Columns
from postroad.spark.identity import of_task
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range
from postroad.spark.task_writer import write_task
from postroad.spark.write_options import parse_write
from postroad.testing import ClusterNode, RunningCluster, cluster
from tests.spark import plain

ROWS = 4_000
SMALL = 2_000  # bytes of a fetch or a batch: a task needs many


@pytest.fixture(scope="module")
def three() -> Iterator[RunningCluster]:
    with cluster(3, {"topics.replicas": 3}) as running:
        yield running


def killed_at(half: int, batches: Iterator[Any], running: RunningCluster, topic: str) -> Iterator[Any]:
    """The batches; the leader of partition 0 dies when so many rows have passed."""
    passed, victim = 0, None
    for batch in batches:
        yield batch
        passed += len(batch)
        if victim is None and passed >= half:
            victim = killed(running, topic)
    assert victim is not None
    victim.start()
    running.wait_until_whole()


def killed(running: RunningCluster, topic: str) -> ClusterNode:
    running.wait_until_whole()
    victim = running.leader(topic)
    victim.kill()
    return victim


def test_a_range_is_read_once_though_its_leader_dies(three: RunningCluster, topic: str) -> None:
    plain.create_replicated(three.bootstrap, topic, 1)
    plain.send(three.bootstrap, topic, plain.numbered(ROWS), batch_num_messages=50)
    with Cluster(three.bootstrap) as client:
        part = OffsetRange(topic, 0, 0, ROWS)
        batches = read_range(client, part, Columns((OFFSET, VALUE)), fetch_bytes=SMALL)
        rows = [
            (row[OFFSET], row[VALUE])
            for batch in killed_at(ROWS // 2, batches, three, topic)
            for row in batch.to_pylist()
        ]
    assert rows == [(number, b"%d" % number) for number in range(ROWS)]


def test_a_tasks_rows_are_written_once_though_a_leader_dies(three: RunningCluster, topic: str) -> None:
    """And when the task is repeated from its beginning, as Spark would."""
    plain.create_replicated(three.bootstrap, topic, 2)
    settings = {"kafka.bootstrap.servers": three.bootstrap, "topic": topic, "kafka.batch.size": str(SMALL)}
    options = parse_write(settings, streaming=False)
    numbers = pa.array([str(number) for number in range(ROWS)], pa.string())
    batch = pa.record_batch([numbers, numbers], ["key", "value"])
    identity = of_task("query", 0, 1)

    def rows() -> Iterator[Any]:
        return (batch.slice(at, 100) for at in range(0, ROWS, 100))

    assert write_task(options, identity, killed_at(ROWS // 2, rows(), three, topic))[0] == ROWS
    assert write_task(options, identity, rows())[0] == ROWS
    assert plain.numbers_in(three.bootstrap, topic) == list(range(ROWS))
