"""Long polls wake at once; a thousand partitions in one fetch and a thousand idle connections are fine."""

from __future__ import annotations

import resource
import socket
import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition as PythonPartition

from . import python_kafka
from .confluent import consumer, producer, read, send_all, send_values
from .conftest import Broker, create_topic, unique
from .wait import until

THOUSAND = 1000


def test_parked_fetch_is_answered_as_soon_as_a_message_is_there(broker: Broker, topic: str) -> None:
    through, waits = producer(broker.bootstrap, linger_ms=0), []
    with consumer(broker.bootstrap, fetch_wait_max_ms=2000, enable_partition_eof=True) as source:
        source.assign([TopicPartition(topic, 0, OFFSET_END)])
        until(lambda: _at_end(source), "the consumer is at the end")
        for _ in range(9):
            started = time.monotonic()
            send_all(through, topic, [{"value": b"wake up"}])
            until(lambda: _is_message(source), "the message", pause_s=0)
            waits.append(time.monotonic() - started)
    assert statistics.median(waits) < 0.5, waits  # or it was the fetch's time that ended


def test_parked_fetch_waits_for_its_minimum_of_bytes_or_its_time(broker: Broker, topic: str) -> None:
    start = TopicPartition(topic, 0, OFFSET_BEGINNING)
    send_values(broker.bootstrap, topic, 1)
    with consumer(broker.bootstrap, fetch_wait_max_ms=1000, fetch_min_bytes=50_000) as source:
        started = time.monotonic()
        source.assign([start])  # no fetch is sent before
        read(source, 1)
        assert time.monotonic() - started > 0.95, "50 kB were not there: only the time-out may have answered"
    with consumer(broker.bootstrap, fetch_wait_max_ms=25_000, fetch_min_bytes=50_000) as source:
        source.assign([start])
        assert source.poll(0.3) is None
        started = time.monotonic()
        send_all(producer(broker.bootstrap), topic, [{"value": b"x" * 60_000}])
        read(source, 2)
        assert time.monotonic() - started < 12, "50 kB were there"


@pytest.fixture(scope="module")
def thousand_partitions(admin: AdminClient) -> str:
    """A topic that the tests share: to make it and to take it away costs more than they do."""
    return create_topic(admin, unique("thousand-partitions"), THOUSAND)


def test_thousand_partitions_come_in_one_fetch(broker: Broker, thousand_partitions: str) -> None:
    topic, through = thousand_partitions, producer(broker.bootstrap)
    sent = send_all(through, topic, ({"value": b"%d" % p, "partition": p} for p in range(THOUSAND)))
    with consumer(broker.bootstrap) as source:
        source.assign([TopicPartition(topic, message.partition(), message.offset()) for message in sent])
        assert sorted(int(message.value()) for message in read(source, THOUSAND)) == list(range(THOUSAND))


def test_thousand_partitions_fit_one_fetch_session(broker: Broker, thousand_partitions: str) -> None:
    topic = thousand_partitions
    with python_kafka.consumer(broker.bootstrap, fetch_max_wait_ms=200) as source:
        source.assign([PythonPartition(topic, partition) for partition in range(THOUSAND)])
        for place, end in source.end_offsets(list(source.assignment())).items():
            source.seek(place, end)
        through = producer(broker.bootstrap)
        for some in (range(0, THOUSAND, 2), range(1, THOUSAND, 2)):
            send_all(through, topic, ({"value": b"v", "partition": partition} for partition in some))
            assert {record.partition for record in python_kafka.read(source, len(some))} == set(some)


@pytest.fixture
def many_files() -> Iterator[None]:
    """A thousand sockets need more file descriptors than the usual soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * THOUSAND:
        pytest.skip(f"the hard limit of open files is {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * THOUSAND), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_thousand_idle_connections_disturb_nobody_and_stay_usable(broker: Broker, topic: str) -> None:
    with ExitStack() as opened:
        idle = [
            opened.enter_context(socket.create_connection((broker.host, broker.port), 10))
            for _ in range(THOUSAND)
        ]
        assert all(_answers(connection) for connection in idle)
        started = time.monotonic()
        send_values(broker.bootstrap, topic, 100)
        with consumer(broker.bootstrap) as source:
            source.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            assert len(read(source, 100)) == 100
        assert time.monotonic() - started < 15
        assert all(_answers(connection) for connection in idle)


def _answers(connection: socket.socket) -> bool:
    """ApiVersions v0, by hand: key 18, version 0, correlation id 7, no client id."""
    request = struct.pack(">hhih", 18, 0, 7, -1)
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", _exactly(connection, 4))
    return struct.unpack_from(">ih", _exactly(connection, length)) == (7, 0)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        assert part, "the broker closed an idle connection"
        data += part
    return data


def _at_end(source: Any) -> bool:
    event = source.poll(0.1)
    return event is not None and event.error() and event.error().code() == KafkaError._PARTITION_EOF


def _is_message(source: Any) -> bool:
    event = source.poll(1)
    return event is not None and not event.error()
