"""kill -9 of consumers while they hold messages: none vanishes, none is held twice at a time."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient

from postroad.testing import Node, node
from tests.clients.confluent import producer, send_all, send_values
from tests.clients.conftest import Broker
from tests.clients.share import answer, configure, member, take
from tests.clients.wait import until

from .conftest import create_topic
from .crew import Place

TOPIC, GROUP = "jobs", "workers"
PARTITIONS, MESSAGES = 2, 3000  # messages in each partition
WORKERS, DEATHS = 3, 12
LOCK_MS = 600_000  # nobody waits for a lock to end: what the dead held is free when they die
# A dead member may have been the only one on a partition for so long; a living one never sleeps so long.
SESSION_MS = 4_000
WORKER = Path(__file__).with_name("queue_worker.py")


class Got(NamedTuple):
    at_ms: int
    worker: int
    delivery: int


class Diaries(NamedTuple):
    got: dict[Place, list[Got]]
    done: dict[Place, int]  # when


class Crew:
    """Worker processes, each with a diary; the dead are replaced."""

    def __init__(self, running: Node, home: Path) -> None:
        self._arguments = [sys.executable, str(WORKER), running.bootstrap, GROUP, TOPIC]
        self._home = home
        self._processes: list[subprocess.Popen[bytes]] = []
        self.killed_ms: dict[int, int] = {}  # worker → when
        self._alive: list[int] = []

    def hire(self) -> None:
        number = len(self._processes)
        self._processes.append(subprocess.Popen([*self._arguments, str(self._diary(number))]))
        self._alive.append(number)

    def kill(self, random_: random.Random) -> None:
        number = random_.choice(self._alive)
        self._alive.remove(number)
        self.killed_ms[number] = int(time.monotonic() * 1000)
        self._processes[number].kill()

    def _diary(self, number: int) -> Path:
        return self._home / f"diary-{number}"

    def diaries(self) -> Diaries:
        found = Diaries(defaultdict(list), {})
        for number in range(len(self._processes)):
            for word, at_ms, partition, offset, *delivery in self._lines(number):
                place = Place(int(partition), int(offset))
                if word == "got":
                    found.got[place].append(Got(int(at_ms), number, int(delivery[0])))
                else:
                    found.done[place] = int(at_ms)
        return found

    def _lines(self, number: int) -> Iterator[list[str]]:
        diary = self._diary(number)
        if diary.exists():
            yield from (line.split() for line in diary.read_text().splitlines())

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait(10)


@pytest.mark.slow
def test_s1_no_message_vanishes_and_none_has_two_holders_when_consumers_are_killed(tmp_path: Path) -> None:
    """S1, S2, S3."""
    random_ = random.Random(3)
    with node(directory=tmp_path) as running:
        create_topic(running, TOPIC, PARTITIONS)
        broker = Broker(running.bootstrap, ours=True)
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        promises = {
            "share_record_lock_duration_ms": LOCK_MS,
            "share_delivery_count_limit": 0,
            "share_session_timeout_ms": SESSION_MS,
        }
        configure(admin, broker, GROUP, **promises)
        for partition in range(PARTITIONS):
            send_values(running.bootstrap, TOPIC, MESSAGES, partition)
        crew = Crew(running, tmp_path)
        try:
            for _ in range(WORKERS):
                crew.hire()
            until(lambda: crew.diaries().got, "the first delivery")
            for _ in range(DEATHS):
                time.sleep(0.1 + random_.random() / 5)
                crew.kill(random_)
                crew.hire()
            places = {Place(p, offset) for p in range(PARTITIONS) for offset in range(MESSAGES)}
            until(lambda: crew.diaries().got.keys() == places, "every message was delivered", 120, 0.1)
        finally:
            crew.stop()
        left = drain(running)
    diaries = crew.diaries()
    assert len(diaries.done) > len(places) / 2
    assert not left & diaries.done.keys()
    for place, deliveries in diaries.got.items():
        check_deliveries(place, sorted(deliveries), diaries.done.get(place), crew.killed_ms)


def drain(running: Node) -> set[Place]:
    """What the workers left, accepted; it ends at a message of its own in each partition."""
    through = producer(running.bootstrap)
    send_all(through, TOPIC, ({"value": b"end", "partition": partition} for partition in range(PARTITIONS)))
    left: set[Place] = set()
    ends = 0
    with member(running.bootstrap, GROUP, TOPIC) as source:
        while ends < PARTITIONS:
            messages = take(source)
            answer(source, messages)
            ends += sum(message.value() == b"end" for message in messages)
            left |= {Place(m.partition(), m.offset()) for m in messages if m.value() != b"end"}
    return left


def check_deliveries(
    place: Place, deliveries: list[Got], done_ms: int | None, killed_ms: dict[int, int]
) -> None:
    """Each by one more than the one before, or more: a worker may die before it has written anything."""
    for before, after in pairwise(deliveries):
        assert before.delivery < after.delivery, place
        assert killed_ms.get(before.worker, after.at_ms + 1) <= after.at_ms, (place, before, after)
    assert done_ms is None or deliveries[-1].at_ms <= done_ms, place
