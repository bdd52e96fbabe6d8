"""Streaming queries: every row once, over restarts of the query and the broker, and lag that all can see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from postroad.spark.cluster import Cluster
from postroad.spark.progress import Lag, LagListener, measure
from postroad.testing import Node
from tests.clients.wait import until
from tests.spark.plain import (
    Message,
    add_partitions,
    create,
    delete_before,
    numbered,
    read_all,
    send,
)
from tests.spark.streams import Stream, batch_sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An address without a node, and not the whole of the 5 s that one has that was never reached.
NOBODY = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": 500}


def test_rows_come_once_over_restarts_of_query_and_broker(
    spark: SparkSession, postroad: Node, tmp_path: Path, topic: str
) -> None:
    create(postroad.bootstrap, topic, 3)
    stream = Stream(spark, tmp_path, postroad.bootstrap, subscribe=topic, includeHeaders=True)
    send(postroad.bootstrap, topic, [Message(b"a%d" % n, None, n % 3, [("n", b"1")]) for n in range(100)])
    first = stream.run(maxOffsetsPerTrigger=60)
    assert batch_sizes(first) == [58, 42]  # 19 or 20 of each partition's 33 or 34
    postroad.restart()
    send(postroad.bootstrap, topic, [Message(None, b"b%d" % n, n % 3) for n in range(50)])
    stream.run()
    assert stream.rows() == read_all(postroad.bootstrap, topic)
    assert batch_sizes(stream.run()) == []


def test_checkpoint_is_that_of_the_kafka_connector(
    spark: SparkSession, node: Node, tmp_path: Path, topic: str
) -> None:
    create(node.bootstrap, topic, 2)
    stream = Stream(spark, tmp_path, node.bootstrap, subscribe=topic)
    send(node.bootstrap, topic, numbered(10) + numbered(5, partition=1))
    stream.run()
    assert [json.loads(text) for text in stream.offsets()] == [{topic: {"0": 10, "1": 5}}]
    # As the Kafka connector writes it: the same without spaces.
    log = tmp_path / "checkpoint" / "offsets" / "0"
    written = log.read_text()
    log.with_name(".0.crc").unlink()
    log.write_text(written.replace(stream.offsets()[0], f'{{"{topic}":{{"1":5,"0":10}}}}'))
    send(node.bootstrap, topic, numbered(3))
    stream.run()
    assert stream.rows() == read_all(node.bootstrap, topic)


def test_query_goes_on_when_the_broker_comes_back(
    spark: SparkSession, postroad: Node, tmp_path: Path, topic: str
) -> None:
    create(postroad.bootstrap, topic)
    stream = Stream(spark, tmp_path, postroad.bootstrap, subscribe=topic)
    query = stream.start(once=False)
    try:
        send(postroad.bootstrap, topic, numbered(10))
        query.processAllAvailable()
        postroad.kill()
        postroad.start()
        add_partitions(postroad.bootstrap, topic, 2)
        send(postroad.bootstrap, topic, numbered(5) + numbered(5, partition=1))
        query.processAllAvailable()
    finally:
        query.stop()
    assert stream.rows() == read_all(postroad.bootstrap, topic)


@pytest.mark.parametrize(
    ("limits", "batches"),
    [
        ({"maxBytesPerTrigger": 6000}, range(2, 10)),  # 1,000 records of some 10 bytes
        ({"minOffsetsPerTrigger": 5000}, range(1, 2)),  # AvailableNow doesn't wait for what may never come
        ({"maxBytesPerTrigger": 10**9, "maxOffsetsPerTrigger": 400}, range(3, 4)),
    ],
)
def test_spark_takes_each_limit(
    spark: SparkSession, node: Node, tmp_path: Path, topic: str, limits: dict[str, int], batches: range
) -> None:
    create(node.bootstrap, topic)
    # Full batches, however slowly the client is filled: their headers count.
    full = {"batch_num_messages": 50, "linger_ms": 5000}
    send(node.bootstrap, topic, numbered(1000), compression_type="none", **full)
    stream = Stream(spark, tmp_path, node.bootstrap, subscribe=topic, **limits)
    sizes = batch_sizes(stream.run())
    assert len(sizes) in batches
    assert sum(sizes) == 1000


def test_lost_data_ends_the_query_with_what_was_lost(
    spark: SparkSession, node: Node, tmp_path: Path, topic: str
) -> None:
    create(node.bootstrap, topic)
    stream = Stream(spark, tmp_path, node.bootstrap, subscribe=topic)
    send(node.bootstrap, topic, numbered(10))
    stream.run()
    send(node.bootstrap, topic, numbered(10))
    delete_before(node.bootstrap, topic, 0, 15)
    with pytest.raises(Exception) as caught:
        stream.run()
    assert f"{topic}/0: offsets 10 to 14 (5) are gone: the log begins at 15" in str(caught.value)
    stream.run(failOnDataLoss=False)
    assert [row.offset for row in stream.rows()] == [*range(10), *range(15, 20)]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"subscribe": "nowhere"}, "There is no topic nowhere"),
        ({"subscribe": "x", "endingOffsets": "latest"}, "a stream has no end"),
        ({"subscribe": "x", "commitGrop": "g"}, "did you mean commitGroup?"),
        ({"subscribe": "x", **NOBODY}, "nothing listens on 127.0.0.1:1"),
    ],
)
def test_wrong_options_end_the_query_with_one_clear_error(
    spark: SparkSession, node: Node, tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(Exception) as caught:
        Stream(spark, tmp_path, node.bootstrap, **options).run()
    assert says in str(caught.value)


def test_lag_is_seen_by_tools_and_by_a_listener(
    spark: SparkSession, node: Node, tmp_path: Path, topic: str
) -> None:
    create(node.bootstrap, topic)
    send(node.bootstrap, topic, numbered(10))
    told: list[tuple[str, Lag]] = []
    listener = LagListener(node.bootstrap, lambda name, lag: told.append((name, lag)))
    spark.streams.addListener(listener)
    try:
        stream = Stream(spark, tmp_path, node.bootstrap, subscribe=topic, commitGroup=f"g-{topic}")
        query = stream.run()
        until(lambda: told, "the listener was called")
    finally:
        spark.streams.removeListener(listener)
    assert told[-1][1] == listener.lag(query.id) == Lag(0, None, {(topic, 0): 0})
    assert listener.with_lag(query.lastProgress)["lagMessages"] == 0
    send(node.bootstrap, topic, [Message(b"late", time_ms=1_000_000)])
    assert described(node, f"g-{topic}") == (10, 1)
    with Cluster(node.bootstrap) as cluster:
        lag = measure(cluster, {(topic, 0): 10})
    assert lag.messages == 1
    assert lag.seconds is not None
    assert lag.seconds > 1e9


def described(node: Node, group: str) -> tuple[int, int]:
    """Committed offset and lag of the group's one partition, as the command line shows it."""
    command = [sys.executable, "-m", "postroad", "group", "describe", group, "--json"]
    done = subprocess.run(
        [*command, "--bootstrap", node.bootstrap], capture_output=True, text=True, check=True, timeout=240
    )
    (partition,) = json.loads(done.stdout)["partitions"]
    return partition["committed"], partition["lag"]
