"""Three nodes with TLS everywhere: clients, replicas, peers, and etcd, which asks for certificates, too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.cluster.store_address import TlsFiles
from postroad.testing import Node
from postroad.testing.etcd import etcd
from tests.certificates import Authority
from tests.clients.wait import until


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def nodes(authority: Authority, tmp_path: Path) -> Iterator[list[Node]]:
    pair = authority.issue("nodes")
    files = TlsFiles(str(authority.ca), str(pair.certificate), str(pair.key))
    with ExitStack() as stack:
        store = stack.enter_context(etcd(tls=files))
        options = "&".join(f"{name}={value}" for name, value in files._asdict().items())
        settings = {
            "cluster.store": f"{store.url()}?{options}",
            "cluster.lease_ms": 2_000,
            "topics.replicas": 3,
            "topics.min_insync_replicas": 2,
            "kafka.tls": True,
            "kafka.authentication": "certificate",
            **{f"tls.{name}": value for name, value in files._asdict().items()},
        }
        running = []
        for number in (1, 2, 3):
            (tmp_path / f"node-{number}").mkdir()
            running.append(Node(tmp_path / f"node-{number}", {**settings, "node.id": number}))
            stack.callback(running[-1].release_ports)
            stack.callback(running[-1].kill)
            running[-1].launch()
        for each in running:
            each.wait_until_ready()
        yield running


@pytest.mark.slow
def test_a_node_dies_and_nothing_is_lost(nodes: list[Node], authority: Authority) -> None:
    pair = authority.issue("client", "/CN=client", "extendedKeyUsage=clientAuth")
    config: dict[str, Any] = {
        "bootstrap.servers": ",".join(each.bootstrap for each in nodes),
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.ca),
        "ssl.certificate.location": str(pair.certificate),
        "ssl.key.location": str(pair.key),
    }
    admin = AdminClient(config)
    until(lambda: len(admin.list_topics(timeout=5).brokers) == 3, "all nodes know each other")
    admin.create_topics([NewTopic("safe", 1, 3)])["safe"].result(20)
    until(
        lambda: len(admin.list_topics("safe", timeout=5).topics["safe"].partitions[0].isrs) == 3,
        "all replicas are in sync",
    )
    producer = Producer({**config, "enable.idempotence": True})
    failed: list[object] = []

    def told(error: object, message: object) -> None:
        if error is not None:
            failed.append(error)

    for number in range(200):
        if number == 100:
            producer.flush(30)
            leader = admin.list_topics("safe", timeout=5).topics["safe"].partitions[0].leader
            nodes[leader - 1].kill()
        producer.produce("safe", str(number), on_delivery=told)
        producer.poll(0)
    assert producer.flush(60) == 0
    assert failed == []
    consumer = Consumer({**config, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["safe"])
    values: list[bytes] = []
    deadline = time.monotonic() + 40
    while len(values) < 200 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    assert values == [str(number).encode() for number in range(200)]
