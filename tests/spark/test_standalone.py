"""Spark on a master and two workers, beside three nodes: the same results, whoever dies in mid-job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from postroad.spark.cluster import Cluster
from postroad.testing import RunningCluster
from postroad.testing import cluster as nodes
from tests.pipelines.archives import read_plainly, rows_of
from tests.spark import plain
from tests.spark.driver import Driver, driver
from tests.spark.plain import Message, Row
from tests.spark.standalone import CONFIG, Standalone, standalone, wait_for

pytestmark = pytest.mark.spark_slow

PARTITIONS = 2
ROWS = 8_000  # 40 Arrow batches of each partition: a task stalls at its 20th
ARCHIVED_ROWS = 200_000
ROWS_PER_TRIGGER = 100_000
KILLS = 2
KEYS = 500
MERGED_ROWS = 12_000
STEP_OFFSETS = 5_000
PATIENCE_S = 480.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture(scope="module")
def application(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    config = {"spark.master": cluster.url, **CONFIG}
    with driver(tmp_path_factory.mktemp("driver"), config) as running:
        yield running


@pytest.fixture(scope="module")
def three() -> Iterator[RunningCluster]:
    """The nodes; topics have a replica on each."""
    with nodes(3, {"topics.replicas": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def filled(three: RunningCluster) -> str:
    plain.create_replicated(three.bootstrap, "standalone", PARTITIONS)
    plain.send(three.bootstrap, "standalone", varied(ROWS))
    return "standalone"


def varied(count: int) -> list[Message]:
    return [
        Message(
            value=b"%200d" % number,
            key=None if number % 5 == 0 else b"key %d" % number,
            partition=number % PARTITIONS,
            headers=[("n", b"%d" % number)] if number % 3 else [],
        )
        for number in range(count)
    ]


def source(three: RunningCluster, topic: str, **options: str) -> dict[str, str]:
    broker = {"kafka.bootstrap.servers": three.bootstrap, "startingOffsets": "earliest"}
    return {**broker, "subscribe": topic, "includeHeaders": "true", **options}


def sink(three: RunningCluster, topic: str, **options: str) -> dict[str, str]:
    plain.create_replicated(three.bootstrap, topic, PARTITIONS)
    # Batches of some five rows: a task's rows are many of them, and some are stored when it stalls.
    return {"kafka.bootstrap.servers": three.bootstrap, "topic": topic, "kafka.batch.size": "1200", **options}


def contents(rows: list[Row]) -> list[tuple[Any, ...]]:
    """What is copied of a message, sorted by its number."""
    return sorted((row.value, row.key, row.headers) for row in rows)


def stored(three: RunningCluster, topic: str) -> int:
    with Cluster(three.bootstrap) as client:
        return sum(client.latest([(topic, number) for number in range(PARTITIONS)]).values())


@contextmanager
def leader_dead(three: RunningCluster, topic: str) -> Iterator[None]:
    """The node that leads the topic's first partition is killed, and comes back after the block."""
    three.wait_until_whole()
    victim = three.leader(topic)
    victim.kill()
    try:
        yield
    finally:
        victim.start()
        three.wait_until_whole()


def kill_when_stalled(cluster: Standalone, marker: Path) -> None:
    task = wait_for(lambda: marker.read_text() if marker.exists() else None, PATIENCE_S)
    cluster.kill_executor_of(int(task))


def test_read_equals_the_topic_though_an_executor_and_a_leader_are_killed(
    cluster: Standalone, application: Driver, three: RunningCluster, filled: str, tmp_path: Path
) -> None:
    expected = plain.read_all(three.bootstrap, filled)
    assert application.do("read", format_="postroad", options=source(three, filled)) == expected
    assert len(cluster.executors()) == 2

    marker = tmp_path / "stalled"
    application.begin("read", format_="postroad", options=source(three, filled), stall=str(marker))
    wait_for(marker.exists, PATIENCE_S)
    with leader_dead(three, filled):
        kill_when_stalled(cluster, marker)
        assert application.result() == expected


@pytest.mark.parametrize("job", ["write", "stream"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_each_message_is_written_once_though_an_executor_and_a_leader_are_killed(
    cluster: Standalone,
    application: Driver,
    three: RunningCluster,
    filled: str,
    topic: str,
    tmp_path: Path,
    job: str,
    side: str,
) -> None:
    marker = tmp_path / "stalled"
    more: dict[str, Any] = {}
    options = sink(three, topic)
    if job == "stream":
        more = {"columns": ("key", "value", "headers")}
        options["checkpointLocation"] = str(tmp_path / "checkpoint")
    copy = {"from_format": "postroad", "to_format": "postroad", "to_options": options}
    application.begin(job, from_options=source(three, filled), stall=str(marker), **copy, **more)
    wait_for(lambda: marker.exists() and stored(three, topic), PATIENCE_S)
    with leader_dead(three, topic if side == "target" else filled):
        kill_when_stalled(cluster, marker)
        application.result()
    assert contents(plain.read_all(three.bootstrap, topic)) == contents(
        plain.read_all(three.bootstrap, filled)
    )


def test_each_offset_is_archived_once_though_executors_and_leaders_are_killed(
    cluster: Standalone, application: Driver, three: RunningCluster, topic: str, tmp_path: Path
) -> None:
    plain.create_replicated(three.bootstrap, topic, PARTITIONS)
    plain.send(three.bootstrap, topic, varied(ARCHIVED_ROWS), queue_buffering_max_messages=ARCHIVED_ROWS)
    lake = tmp_path / "lake"
    lost = application.log().count("ExecutorLostFailure")
    application.begin(
        "archive", bootstrap=three.bootstrap, topic=topic, to=str(lake), rows_per_trigger=ROWS_PER_TRIGGER
    )
    seen: set[Path] = set()
    for _ in range(KILLS):
        # A file is there while a task fills it: executors are killed in mid-write.
        seen |= wait_for(lambda: set(lake.rglob("*.parquet")) - seen, PATIENCE_S)  # noqa: B023
        with leader_dead(three, topic):
            for executor in cluster.executors():
                cluster.kill_executor_of(executor)
    application.result()
    assert application.log().count("ExecutorLostFailure") > lost, "no task was running when executors died"
    assert rows_of(read_plainly(lake, "delta")) == plain.read_all(three.bootstrap, topic)


def kill_executors_at_work(cluster: Standalone, lake: Path) -> None:
    """As soon as there are files: tasks fill them, and most of the job is still to be done."""
    wait_for(lambda: set(lake.rglob("*.parquet")), PATIENCE_S)
    for executor in wait_for(cluster.executors, PATIENCE_S):
        cluster.kill_executor_of(executor)


def test_each_key_is_merged_as_it_is_now_though_executors_are_killed(
    cluster: Standalone, application: Driver, three: RunningCluster, topic: str, tmp_path: Path
) -> None:
    plain.create_replicated(three.bootstrap, topic, PARTITIONS)
    messages = [
        # A key stays in its partition; each hundredth message takes its key away.
        Message(
            value=None if number % 100 == 7 else b'{"n": %d}' % number,
            key=b"%d" % (number % KEYS),
            partition=number % PARTITIONS,
        )
        for number in range(MERGED_ROWS)
    ]
    plain.send(three.bootstrap, topic, messages)
    expected = {message.key: message.value for message in messages}
    lake = tmp_path / "lake"
    application.begin(
        "merge", bootstrap=three.bootstrap, topic=topic, to=str(lake), step_offsets=STEP_OFFSETS
    )
    kill_executors_at_work(cluster, lake)
    application.result()
    rows = DeltaTable(str(lake)).to_pyarrow_table().to_pylist()
    assert len(rows) == len({row["message_key"] for row in rows})
    found = {row["message_key"]: b'{"n": %d}' % row["n"] for row in rows}
    assert found == {key: value for key, value in expected.items() if value is not None}
