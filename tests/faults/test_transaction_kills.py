"""kill -9 of workers and of their node: consume, transform and produce has the effect of each input once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, TopicPartition

from postroad.testing import Node, node
from tests.clients.confluent import consumer, send_values
from tests.clients.wait import until

from .conftest import create_topic
from .transaction_worker import SOURCE, TARGET, TARGETS

WORKER = Path(__file__).with_name("transaction_worker.py")
CLIENTS = ("confluent", "aiokafka", "kafka-python")  # each has a partition of its own
PAUSE_S = (0.5, 2.0)  # between two kills
PATIENCE_S = 120.0  # a client that lost its node looks for it again with growing pauses


class Workers:
    """One process for each partition of the input."""

    def __init__(self, running: Node, home: Path) -> None:
        self._bootstrap, self._home = running.bootstrap, home
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, partition: int) -> None:
        arguments = [
            sys.executable,
            "-m",
            "tests.faults.transaction_worker",
            CLIENTS[partition],
            self._bootstrap,
        ]
        with open(self._home / f"worker-{partition}.log", "ab") as log:
            self._processes[partition] = subprocess.Popen(
                [*arguments, str(partition)], stdout=log, stderr=log, cwd=WORKER.parents[2]
            )

    def kill(self, partition: int) -> None:
        self._processes[partition].kill()
        self._processes[partition].wait(10)

    def stop(self) -> None:
        for partition in self._processes:
            self.kill(partition)


def copies(running: Node, isolation: str) -> list[int]:
    """All that can be read now, from the first offset to the end that the node tells of."""
    found, ends = [], 0
    with consumer(running.bootstrap, isolation_level=isolation, enable_partition_eof=True) as source:
        source.assign([TopicPartition(TARGET, partition, 0) for partition in range(TARGETS)])
        while ends < TARGETS:
            for event in source.consume(1000, timeout=1.0):
                error = event.error()
                if error is None:
                    found.append(int(event.value() or b""))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ends += 1
    return found


def copy_over_kills(home: Path, kills: int, numbers: int) -> None:
    random_ = random.Random(7)
    with node({"kafka.transactions": True}, directory=home) as running:
        create_topic(running, SOURCE, len(CLIENTS))
        create_topic(running, TARGET, TARGETS)
        for partition in range(len(CLIENTS)):
            send_values(running.bootstrap, SOURCE, numbers, partition)
        workers = Workers(running, home)
        try:
            for partition in range(len(CLIENTS)):
                workers.start(partition)
            until(lambda: copies(running, "read_committed"), "the first copies", PATIENCE_S)
            for number in range(kills):
                time.sleep(random_.uniform(*PAUSE_S))
                if number % 2:
                    running.kill()
                    running.start()
                else:
                    partition = random_.randrange(len(CLIENTS))
                    workers.kill(partition)
                    workers.start(partition)
            expected = sorted(list(range(numbers)) * len(CLIENTS))
            until(
                lambda: len(copies(running, "read_committed")) >= len(expected),
                "all is copied",
                PATIENCE_S,
                1.0,
            )
        finally:
            workers.stop()
        assert sorted(copies(running, "read_committed")) == expected
        assert len(copies(running, "read_uncommitted")) > len(expected), "nothing was ever aborted"


@pytest.mark.slow
def test_each_input_has_its_effect_once_over_kills_of_workers_and_node(tmp_path: Path) -> None:
    copy_over_kills(tmp_path, kills=4, numbers=400)


@pytest.mark.cluster_slow
def test_each_input_has_its_effect_once_over_twenty_kills(tmp_path: Path) -> None:
    copy_over_kills(tmp_path, kills=20, numbers=4000)
