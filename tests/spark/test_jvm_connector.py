"""Spark's own Kafka connector with Postroad: it reads, it writes, and checkpoints move to and from ours.

Its jars come from Maven, so nothing here runs where there is none (`benchmarks.spark_connector`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from benchmarks import spark_connector
from benchmarks.cache import Missing
from postroad.testing import Node
from tests.pipelines.archives import varied
from tests.secure_node import SecureNode, secure_node
from tests.spark import logins, plain
from tests.spark.driver import Driver, driver

pytestmark = pytest.mark.spark_slow

PARTITIONS = 3
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    try:
        connector = spark_connector.find()
    except Missing as missing:
        pytest.skip(str(missing).splitlines()[0])
    if connector.note:
        warnings.warn(connector.note, stacklevel=1)  # what was shown belongs to those versions
    config = {"spark.master": "local[2]", **connector.config()}
    with driver(tmp_path_factory.mktemp("driver"), config, connector.environment()) as running:
        yield running


def source(node: Node, topic: str) -> dict[str, str]:
    broker = {"kafka.bootstrap.servers": node.bootstrap, "startingOffsets": "earliest"}
    return {**broker, "subscribe": topic, "includeHeaders": "true"}


def sink(node: Node, topic: str) -> dict[str, str]:
    plain.create(node.bootstrap, topic, PARTITIONS)
    return {"kafka.bootstrap.servers": node.bootstrap, "topic": topic, "includeHeaders": "true"}


def fill(node: Node, topic: str, count: int, first: int = 0, **settings: Any) -> None:
    plain.send(node.bootstrap, topic, varied(count, PARTITIONS, first), **settings)


def contents(node: Node, topic: str) -> list[tuple[Any, ...]]:
    """What is copied of a message, whatever its place."""
    rows = plain.read_all(node.bootstrap, topic)
    return sorted((row.key or b"", row.value or b"", row.value is None, row.headers) for row in rows)


def test_it_reads_the_same_rows_and_columns_as_ours(application: Driver, node: Node, topic: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    for number, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        fill(node, topic, 200, 200 * number, compression_type=compression)
    expected = plain.read_all(node.bootstrap, topic)
    assert application.do("read", format_="kafka", options=source(node, topic)) == expected
    assert application.do("differences", options=source(node, topic)) == (True, 0, 0)


@pytest.mark.parametrize("job", ["write", "stream"])
def test_it_writes_topics(application: Driver, node: Node, topic: str, tmp_path: Path, job: str) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    fill(node, topic, 500)
    copy = {"from_format": "kafka", "from_options": source(node, topic), "to_format": "kafka"}
    options = sink(node, f"{topic}-copy")
    if job == "stream":
        copy["columns"] = ("key", "value", "headers")
        options["checkpointLocation"] = str(tmp_path / "checkpoint")
    application.do(job, **copy, to_options=options)
    assert contents(node, f"{topic}-copy") == contents(node, topic)


@pytest.mark.parametrize("job", ["read", "stream"])
def test_it_reads_what_is_committed_and_nothing_else(
    application: Driver, node: Node, topic: str, tmp_path: Path, job: str
) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for number in range(30):
        producer.begin_transaction()
        for each in range(20):
            producer.produce(topic, value=b"%d" % (20 * number + each), partition=each % PARTITIONS)
        producer.flush()
        (producer.abort_transaction if number % 3 == 1 else producer.commit_transaction)(PATIENCE_S)
    reading = {**source(node, topic), "kafka.isolation.level": "read_committed"}
    expected = plain.read_all(node.bootstrap, topic, "read_committed")
    assert len(expected) == 400
    if job == "read":
        assert application.do("read", format_="kafka", options=reading) == expected
        assert application.do("differences", options=reading) == (True, 0, 0)
        return
    options = {**sink(node, f"{topic}-copy"), "checkpointLocation": str(tmp_path / "checkpoint")}
    copy = {"from_format": "kafka", "from_options": reading, "to_format": "kafka", "to_options": options}
    application.do("stream", **copy, columns=("key", "value", "headers"))
    copied = sorted(row.value or b"" for row in plain.read_all(node.bootstrap, f"{topic}-copy"))
    assert copied == sorted(row.value or b"" for row in expected)


@pytest.mark.parametrize("first", ["kafka", "postroad"])
def test_a_checkpoint_moves_between_the_connectors_with_each_row_once(
    application: Driver, node: Node, topic: str, tmp_path: Path, first: str
) -> None:
    plain.create(node.bootstrap, topic, PARTITIONS)
    rows, checkpoint = str(tmp_path / "rows"), str(tmp_path / "checkpoint")
    other = {"kafka": "postroad", "postroad": "kafka"}[first]
    for turn, connector in enumerate([first, other, first, other]):
        fill(node, topic, 300, 300 * turn)
        options = {**source(node, topic), "maxOffsetsPerTrigger": "150"}
        to = {"path": rows, "checkpointLocation": checkpoint}
        read = application.do(
            "stream", from_format=connector, from_options=options, to_format="parquet", to_options=to
        )
        assert read == 300, f"{connector} did not begin where the other had ended"
    found = application.do("read", format_="parquet", options={"path": rows})
    assert found == plain.read_all(node.bootstrap, topic)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureNode]:
    with secure_node(tmp_path_factory.mktemp("secure"), {"http.enabled": False}) as running:
        yield running


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_it_logs_in_over_tls(application: Driver, secured: SecureNode, topic: str, mechanism: str) -> None:
    for name in (topic, f"{topic}-copy"):
        secured.call("topic", "create", name)
    secured.call("publish", topic, "one", "two", "three")
    login = logins.options(secured, mechanism)
    read = {**login, "startingOffsets": "earliest", "subscribe": topic, "includeHeaders": "true"}
    write = {**login, "topic": f"{topic}-copy", "includeHeaders": "true"}
    application.do("write", from_format="kafka", from_options=read, to_format="kafka", to_options=write)
    copied = secured.call("consume", f"{topic}-copy", "--from-beginning", "--count", "3").output
    assert sorted(copied.split()) == ["one", "three", "two"]
