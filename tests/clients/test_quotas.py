"""Clients with a quota: they hear how long to wait, lose nothing, and are as slow as they are to be."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

from postroad.cli import main
from postroad.testing import Node
from postroad.testing import node as start_node

VALUE = b"x" * 10_000
COUNT = 20  # 200 kB: two seconds at the rate, one of which may be taken at once


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with start_node() as running:
        call(running, "quota", "set", "--client", "slow", "--produce", "100kB/s", "--fetch", "100kB/s")
        yield running


def call(node: Node, *arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, [*arguments, "-b", node.bootstrap])
    assert done.exit_code == code, done.output
    return done


def test_confluents_clients_are_slowed_down_and_told(node: Node) -> None:
    told: list[Any] = []
    settings = {"bootstrap.servers": node.bootstrap, "client.id": "slow", "throttle_cb": told.append}
    errors: list[Any] = []
    producer = Producer(settings | {"linger.ms": 0, "batch.size": 12_000})
    began = time.monotonic()
    for _ in range(COUNT):
        producer.produce("librdkafka", VALUE, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert errors == [None] * COUNT
    assert time.monotonic() - began > 0.9
    assert told
    assert max(event.throttle_time for event in told) > 0
    consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("librdkafka", 0, 0)])
    began, received = time.monotonic(), 0
    while received < COUNT:
        assert time.monotonic() - began < 30
        received += sum(message.error() is None for message in consumer.consume(COUNT, 1))
    consumer.close()


def test_kafka_pythons_clients_are_slowed_down(node: Node) -> None:
    producer = KafkaProducer(bootstrap_servers=node.bootstrap, client_id="slow", batch_size=1)
    began = time.monotonic()
    sent = [producer.send("python", VALUE) for _ in range(COUNT)]
    assert [each.get(30).offset for each in sent] == list(range(COUNT))
    assert time.monotonic() - began > 0.9
    producer.close()
    consumer = KafkaConsumer(
        "python",
        bootstrap_servers=node.bootstrap,
        client_id="slow",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    assert [next(consumer).value for _ in range(COUNT)] == [VALUE] * COUNT
    consumer.close()


def test_others_are_as_quick_as_ever(node: Node) -> None:
    told: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": node.bootstrap, "client.id": "quick", "throttle_cb": told.append}
    )
    for _ in range(5 * COUNT):
        producer.produce("quick", VALUE)
    assert producer.flush(30) == 0
    assert not told


def test_quotas_are_set_listed_and_removed(node: Node) -> None:
    call(node, "quota", "set", "--user", "shop", "--produce", "1.5MiB/s", "--requests", "20")
    call(node, "quota", "set", "--any-user", "--client", "etl", "--fetch", "2MB")
    call(node, "quota", "set", "--user", "shop", "--produce", "7")
    listed = json.loads(call(node, "quota", "list", "--json").output)
    assert {
        "user": "shop",
        "client_id": None,
        "produce_rate": 7.0,
        "fetch_rate": None,
        "requests_percent": 20.0,
    } in listed
    assert ["anybody else", "etl", 2e6] in [
        [each["user"], each["client_id"], each["fetch_rate"]] for each in listed
    ]
    assert "anybody else" in call(node, "quota", "list").output
    call(node, "quota", "remove", "--any-user", "--client", "etl")
    call(node, "quota", "remove", "--user", "shop")
    assert "shop" not in call(node, "quota", "list").output
    assert "no such quota" in call(node, "quota", "remove", "--user", "shop", code=1).output


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "--user", "shop"],
        ["set", "--produce", "1MB/s"],
        ["set", "--user", "shop", "--any-user", "--produce", "1MB/s"],
        ["set", "--user", "", "--produce", "1MB/s"],
        ["set", "--user", "shop", "--produce", "0"],
        ["set", "--user", "shop", "--produce", "quick"],
        ["set", "--user", "shop", "--produce", "9" * 400],
        ["set", "--user", "shop", "--requests", "0"],
        ["remove"],
    ],
)
def test_quotas_that_make_no_sense_are_called_wrong(node: Node, arguments: list[str]) -> None:
    call(node, "quota", *arguments, code=2)
