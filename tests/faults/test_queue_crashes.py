"""kill -9 while workers take from a queue: nothing that was accepted comes back, nothing else is lost."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from clients.confluent import producer, send_all
from clients.conftest import Broker
from clients.share import answer, configure, dead_letters, member, take
from clients.wait import until
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, node

from .conftest import create_topic
from .crew import GROUP, Place, Register, Worker, fate_of, is_hopeless
from .load import PARTITIONS, TOPIC, Load, running_threads

CRASHES = 20
LOAD_S = 0.8  # between two crashes; when in it the crash comes is drawn from a seed
WORKERS = 3
END = b"the end 1"


@pytest.mark.slow
def test_twenty_crashes_bring_back_nothing_that_was_accepted_and_lose_nothing_else(tmp_path: Path) -> None:
    """S1 and S4."""
    random_ = random.Random(11)
    register = Register()
    with node(directory=tmp_path) as running:
        create_topic(running, TOPIC, PARTITIONS, **{"segment.bytes": 1_000_000})
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        configure(admin, Broker(running.bootstrap, ours=True), GROUP, share_delivery_count_limit=0)
        load = Load(running, "producer")
        with running_threads(*(Worker(running, register) for _ in range(WORKERS))):
            with running_threads(load):
                for _ in range(CRASHES):
                    time.sleep(LOAD_S * (0.3 + random_.random() / 2))
                    running.kill()
                    running.start()
            sent = {Place(partition, offset) for (partition, _), offset in load.acknowledged.items()}
            until(lambda: sent <= register.settled(), "every message was delivered and answered", 60)
        left = drain(running)
        buried = {origin(letter) for letter in dead_letters(running.bootstrap, GROUP, 1)}
    assert len(sent) > 50 * CRASHES, "there was hardly any load"
    assert len(register.confirmed) > len(sent) / 2, "hardly anything was confirmed"
    assert register.came_back == []
    assert not {Place(m.partition(), m.offset()) for m in left} & register.confirmed.keys()
    assert buried == hopeless(load)


def drain(running: Node) -> list[Message]:
    """What the workers have left, answered too; it ends at a message of its own in each partition."""
    through = producer(running.bootstrap)
    send_all(through, TOPIC, ({"value": END, "partition": partition} for partition in range(PARTITIONS)))
    seen: list[Message] = []
    with member(running.bootstrap, GROUP, TOPIC) as source:
        while sum(message.value() == END for message in seen) < PARTITIONS:
            messages = take(source)
            for message in messages:
                source.acknowledge(message, fate_of(message))
            answer(source, [])
            seen += messages
    return [message for message in seen if message.value() != END]


def hopeless(load: Load) -> set[Place]:
    return {
        Place(partition, offset)
        for (partition, number), offset in load.acknowledged.items()
        if is_hopeless(b"%d" % number)
    }


def origin(letter: Message) -> Place:
    notes = dict(letter.headers())
    return Place(int(notes["postroad-dead-partition"]), int(notes["postroad-dead-offset"]))
