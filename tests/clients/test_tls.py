"""Stock clients over TLS, with and without certificates of their own, and who is refused."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from postroad.client import Client
from postroad.errors import PostroadError
from postroad.spark.option_values import Values
from postroad.spark.options import cluster
from postroad.testing import Node, node
from postroad.testing.process import NodeFailed, Setting
from tests.certificates import Authority, Pair
from tests.clients import java_client
from tests.clients.wait import until

NO_ANSWER = r"transport|timed out|Local"
LARGE = os.urandom(700_000)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def shop(authority: Authority) -> Pair:
    """What a client shows."""
    return authority.issue("shop", "/C=CH/O=Example/OU=orders/CN=shop", "extendedKeyUsage=clientAuth")


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Node]:
    """The default listener is plain; `public` speaks TLS, `partners` demands a certificate."""
    pair = authority.issue("node")
    with node(
        {
            "kafka.listeners": "public=tls://127.0.0.1:0,partners=tls://127.0.0.1:0?authentication=certificate",
            "tls.certificate": str(pair.certificate),
            "tls.key": str(pair.key),
            "tls.ca": str(authority.ca),
        }
    ) as running:
        yield running


@pytest.fixture(scope="module")
def public(secured: Node) -> str:
    return secured.listeners["public"]


@pytest.fixture(scope="module")
def partners(secured: Node) -> str:
    return secured.listeners["partners"]


def confluent(bootstrap: str, authority: Authority, pair: Pair | None = None) -> dict[str, Any]:
    own = (
        {"ssl.certificate.location": str(pair.certificate), "ssl.key.location": str(pair.key)} if pair else {}
    )
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.ca),
        **own,
    }


def round_trip(config: dict[str, Any], topic: str) -> None:
    producer = Producer({**config, "enable.idempotence": True})
    for value in (b"small", LARGE):
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    consumer = Consumer({**config, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(values) < 2 and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and not message.error():
            values.append(message.value())
    consumer.close()
    assert values == [b"small", LARGE]


def test_confluent_kafka_over_tls(public: str, authority: Authority) -> None:
    round_trip(confluent(public, authority), "confluent-tls")


def test_confluent_kafka_with_a_certificate(partners: str, authority: Authority, shop: Pair) -> None:
    round_trip(confluent(partners, authority, shop), "confluent-mtls")


def test_clients_are_told_of_the_listener_that_they_came_by(
    public: str, authority: Authority, secured: Node
) -> None:
    """Else a client would go on over plain TCP, or at an address that it can't reach."""
    port = int(public.rpartition(":")[2])
    admin = AdminClient(confluent(public, authority))
    assert [broker.port for broker in admin.list_topics(timeout=10).brokers.values()] == [port]
    assert [found.port for found in admin.describe_cluster().result(10).nodes] == [port]
    plain = AdminClient({"bootstrap.servers": secured.bootstrap})
    own = int(secured.bootstrap.rpartition(":")[2])
    assert [broker.port for broker in plain.list_topics(timeout=10).brokers.values()] == [own]


def test_a_client_without_a_certificate_is_refused(
    partners: str, authority: Authority, secured: Node
) -> None:
    client = AdminClient(confluent(partners, authority))
    with pytest.raises(Exception, match=NO_ANSWER):
        client.list_topics(timeout=3)
    assert "it showed no certificate, and one is demanded" in secured.log_file.read_text()


async def test_aiokafka_with_a_certificate(partners: str, authority: Authority, shop: Pair) -> None:
    context = create_ssl_context(
        cafile=str(authority.ca), certfile=str(shop.certificate), keyfile=str(shop.key)
    )
    options: dict[str, Any] = {
        "bootstrap_servers": partners,
        "security_protocol": "SSL",
        "ssl_context": context,
    }
    async with AIOKafkaProducer(**options, max_request_size=1_000_000) as producer:
        await producer.send_and_wait("aiokafka-mtls", b"small")
        await producer.send_and_wait("aiokafka-mtls", LARGE)
    async with AIOKafkaConsumer("aiokafka-mtls", **options, auto_offset_reset="earliest") as consumer:
        async with asyncio.timeout(20):
            assert [(await consumer.getone()).value, (await consumer.getone()).value] == [b"small", LARGE]


def test_kafka_python_with_a_certificate(partners: str, authority: Authority, shop: Pair) -> None:
    options: dict[str, Any] = {
        "bootstrap_servers": partners,
        "security_protocol": "SSL",
        "ssl_cafile": str(authority.ca),
        "ssl_certfile": str(shop.certificate),
        "ssl_keyfile": str(shop.key),
    }
    producer = KafkaProducer(**options)
    producer.send("python-mtls", b"small").get(timeout=20)
    producer.send("python-mtls", LARGE).get(timeout=20)
    producer.close()
    consumer = KafkaConsumer(
        "python-mtls", **options, auto_offset_reset="earliest", consumer_timeout_ms=15_000
    )
    assert [next(consumer).value, next(consumer).value] == [b"small", LARGE]
    consumer.close()


def kcat_round_trip(config: dict[str, Any], topic: str) -> None:
    command = ["kcat", *(word for name, value in config.items() for word in ("-X", f"{name}={value}"))]
    subprocess.run([*command, "-P", "-t", topic], input=b"one\ntwo\n", check=True, timeout=60)
    read = [*command, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    assert subprocess.run(read, capture_output=True, check=True, timeout=60).stdout == b"one\ntwo\n"


def test_kcat_over_tls(public: str, authority: Authority) -> None:
    kcat_round_trip(confluent(public, authority), "kcat-tls")


def test_kcat_with_a_certificate(partners: str, authority: Authority, shop: Pair) -> None:
    kcat_round_trip(confluent(partners, authority, shop), "kcat-mtls")


@pytest.fixture(scope="module")
def keystore(shop: Pair) -> Path:
    """Certificate and key in one file, as Java's client and Spark take them."""
    made = shop.certificate.with_name("shop-both.pem")
    made.write_text(shop.key.read_text() + shop.certificate.read_text())
    return made


def test_javas_client_with_a_certificate(
    partners: str, authority: Authority, keystore: Path, tmp_path: Path
) -> None:
    properties = {
        "bootstrap.servers": partners,
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.ca,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": keystore,
    }
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    path = java_client.classpath(tmp_path, "SecuredClient")
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", path, "SecuredClient", str(file)]
    done = subprocess.run([*command, "send", "java-mtls", "one"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "java-mtls-0@0" in done.stdout


def test_our_spark_source_with_a_certificate(partners: str, authority: Authority, keystore: Path) -> None:
    given = {
        "kafka.bootstrap.servers": partners,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(authority.ca),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.location": str(keystore),
    }
    with cluster(Values(given)) as found:
        found.create_topic("spark-mtls", 2)
        assert "spark-mtls" in found.topics()


async def test_our_own_client_with_a_certificate(partners: str, authority: Authority, shop: Pair) -> None:
    options = f"ca={authority.ca}&certificate={shop.certificate}&key={shop.key}"
    async with Client(f"tls://{partners}?{options}") as client:
        assert await client.nodes() == [1]


async def test_our_own_client_says_what_is_wrong(
    public: str, secured: Node, authority: Authority, tmp_path: Path
) -> None:
    async def failure(bootstrap: str) -> str:
        with pytest.raises(PostroadError) as found:
            async with Client(bootstrap, timeout_s=5):
                pass
        return str(found.value)

    elsewhere = Authority(tmp_path / "elsewhere", "Another CA")
    assert "the certificate is not valid here" in await failure(f"tls://{public}?ca={elsewhere.ca}")
    assert "it may be a listener without TLS" in await failure(f"tls://{secured.bootstrap}?ca={authority.ca}")
    assert f"write tls://{public}" in await failure(public)
    assert "no-such.pem" in await failure(f"tls://{public}?ca=no-such.pem")


def test_bytes_without_tls_are_explained_in_the_log(public: str, secured: Node) -> None:
    with pytest.raises(Exception, match=NO_ANSWER):
        AdminClient({"bootstrap.servers": public}).list_topics(timeout=2)
    assert "it speaks without TLS to a listener with TLS (in Kafka clients: security.protocol=SSL)" in (
        secured.log_file.read_text()
    )


def test_tls_on_a_plain_port_is_explained_in_the_log(secured: Node, authority: Authority) -> None:
    with pytest.raises(Exception, match=NO_ANSWER):
        AdminClient(confluent(secured.bootstrap, authority)).list_topics(timeout=2)
    assert "these bytes are TLS; this port speaks the Kafka protocol only" in secured.log_file.read_text()


def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    """Under load: the connection that is there goes on, and the next one sees the new certificate."""
    old, new = Authority(tmp_path / "old", "Old CA"), Authority(tmp_path / "new", "New CA")
    first, second = old.issue("node"), new.issue("node")
    pair = Pair(tmp_path / "own.pem", tmp_path / "own.key")
    for own, given in zip(pair, first, strict=True):
        own.write_bytes(given.read_bytes())
    settings: dict[str, Setting] = {
        "kafka.tls": True,
        "tls.certificate": str(pair.certificate),
        "tls.key": str(pair.key),
    }
    with node({**settings, "http.enabled": False}) as running:
        producer = Producer(confluent(running.bootstrap, old))
        producer.produce("reloaded", b"before")
        assert producer.flush(20) == 0
        pair.certificate.write_text("no certificate\n")
        hang_up(running)
        until(lambda: "the certificate in use is kept" in running.log_file.read_text(), "it is said")
        producer.produce("reloaded", b"meanwhile")
        assert producer.flush(20) == 0
        round_trip(confluent(running.bootstrap, old), "reloaded-old")
        for own, given in zip(pair, second, strict=True):
            own.write_bytes(given.read_bytes())
        hang_up(running)
        until(lambda: "the certificate was read again" in running.log_file.read_text(), "it is said")
        producer.produce("reloaded", b"after")
        assert producer.flush(20) == 0
        round_trip(confluent(running.bootstrap, new), "reloaded-new")
        with pytest.raises(Exception, match=NO_ANSWER):
            AdminClient(confluent(running.bootstrap, old)).list_topics(timeout=3)


def secured_by(pair: Pair) -> dict[str, Setting]:
    return {"kafka.tls": True, "tls.certificate": str(pair.certificate), "tls.key": str(pair.key)}


def hang_up(running: Node) -> None:
    os.kill(running.pid, signal.SIGHUP)


def test_a_node_with_an_expired_certificate_does_not_start(authority: Authority) -> None:
    pair = authority.issue("expired", days=-1)
    settings: dict[str, Setting] = {
        "kafka.tls": True,
        "tls.certificate": str(pair.certificate),
        "tls.key": str(pair.key),
    }
    with pytest.raises(NodeFailed, match="has expired") as found, node(settings):
        pass
    assert "Traceback" not in str(found.value)
