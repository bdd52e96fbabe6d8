"""The transactional sink on three nodes whose leaders and coordinators are killed: each row appears once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from postroad.client import Client
from postroad.client.transaction_admin import list_all
from postroad.spark.cluster import Cluster
from postroad.spark.sink import Job, _commit
from postroad.spark.write_options import parse_write
from postroad.testing import ClusterNode, RunningCluster, cluster
from tests.clients.wait import until
from tests.spark import plain
from tests.spark.test_sink_exactly_once import APP

STATE = "__transaction_state"
PARTITIONS = 3
ROWS = 3_000
PATIENCE_S = 600.0  # on a busy machine a JVM takes minutes to its first row
KINDS = ["true", "task"]


@pytest.fixture(scope="module")
def three() -> Iterator[RunningCluster]:
    with cluster(3, {"topics.replicas": 3}) as running:
        yield running


def committed(running: RunningCluster, topic: str) -> list[int]:
    rows = plain.read_all(running.bootstrap, topic, "read_committed")
    return sorted(int(row.value or b"") for row in rows)


def is_stable(running: RunningCluster, topic: str) -> bool:
    """Whether readers wait for no transaction."""
    places = [(topic, partition) for partition in range(PARTITIONS)]
    with (
        Cluster(running.bootstrap, isolation="read_committed") as stable,
        Cluster(running.bootstrap) as all_of_it,
    ):
        return stable.latest(places) == all_of_it.latest(places)


def transactional_ids(running: RunningCluster) -> list[str]:
    async def ask() -> list[str]:
        async with Client(running.bootstrap) as client:
            return [each.transactional_id for each in await list_all(client, ["Ongoing"])]

    return asyncio.run(ask())


def coordinator_of(running: RunningCluster, transactional_id: str) -> ClusterNode:
    seen = running.wait_until(lambda seen: STATE in seen.topics, f"{STATE} is known")
    return running.leader(STATE, crc32(transactional_id.encode()) % len(seen.topics[STATE].partitions))


@contextmanager
def killed(running: RunningCluster, victim: ClusterNode) -> Iterator[None]:
    victim.kill()
    try:
        yield
    finally:
        victim.start()
        running.wait_until_whole()


# --- the client's part, without a JVM --------------------------------------------------------------


def rows(then: Callable[[], object]) -> Iterator[Any]:
    """`then` is called in their middle."""
    array = pa.array([str(number) for number in range(ROWS)], pa.string())
    batch = pa.record_batch([array, array], ["key", "value"])
    for at in range(0, ROWS, 100):
        if at == ROWS // 2:
            then()
        yield batch.slice(at, 100)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dies", ["leader", "coordinator"])
def test_a_micro_batch_is_whole_though_a_node_dies_while_it_is_written(
    three: RunningCluster, topic: str, kind: str, dies: str
) -> None:
    plain.create_replicated(three.bootstrap, topic, PARTITIONS)
    settings = {"kafka.bootstrap.servers": three.bootstrap, "topic": topic, "kafka.batch.size": "2000"}
    options = parse_write({**settings, "transactional": kind}, streaming=False)
    runs = count()

    def job() -> Job:
        return Job(options, f"query {topic} ", f"run {next(runs)}", 0)

    def die() -> None:
        three.wait_until_whole()
        (name,) = transactional_ids(three)
        victim = three.leader(topic) if dies == "leader" else coordinator_of(three, name)
        victim.kill()
        dead.append(victim)

    dead: list[ClusterNode] = []
    written = job().write(0, rows(die))
    assert committed(three, topic) == []
    _commit(options, [written])  # by those that are left
    until(lambda: len(committed(three, topic)) == ROWS, "markers are written")
    (victim,) = dead
    victim.start()
    three.wait_until_whole()
    assert committed(three, topic) == list(range(ROWS))
    assert job().write(0, rows(lambda: None)).rows == 0, "it was committed"
    until(lambda: is_stable(three, topic), "no transaction is open")


# --- an application, over kills of nodes -----------------------------------------------------------


@pytest.mark.spark_slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_application_commits_each_row_once_though_nodes_are_killed(
    three: RunningCluster, topic: str, tmp_path: Path, kind: str
) -> None:
    rows_in_all = 8_000
    plain.create_replicated(three.bootstrap, topic, 2)
    plain.create_replicated(three.bootstrap, f"{topic}-copy", PARTITIONS)
    messages = [plain.Message(b"%d" % each, b"%0800d" % each, each % 2) for each in range(rows_in_all)]
    plain.send(three.bootstrap, topic, messages)
    arguments = [three.bootstrap, topic, f"{topic}-copy", str(tmp_path), "1000", kind]
    with subprocess.Popen([sys.executable, str(APP), *arguments], stderr=subprocess.DEVNULL) as app:
        try:
            until(
                lambda: committed(three, f"{topic}-copy") or app.poll() is not None,
                "the first micro-batch",
                PATIENCE_S,
            )
            assert app.poll() is None, "the application has ended"
            kills = 0
            while app.poll() is None and kills < 6:
                three.wait_until_whole()
                names = transactional_ids(three)
                victim = (
                    coordinator_of(three, names[0])
                    if names and kills % 2
                    else three.leader(f"{topic}-copy", kills % PARTITIONS)
                )
                with killed(three, victim):
                    time.sleep(1.0)  # the others lead meanwhile
                kills += 1
            assert app.wait(PATIENCE_S) == 0
        finally:
            app.kill()
    assert kills >= 3, "it was done too soon"
    until(lambda: is_stable(three, f"{topic}-copy"), "no transaction is open")
    assert committed(three, f"{topic}-copy") == list(range(rows_in_all))
    print(f"{kills} kills of nodes")
