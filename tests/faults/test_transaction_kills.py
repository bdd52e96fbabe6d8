"""kill -9 of workers and of nodes: consume, transform and produce has the effect of each input once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from zlib import crc32

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import ClusterNode, Node, RunningCluster, cluster, node
from tests.clients.confluent import consumer, send_values
from tests.clients.wait import until

from .transaction_worker import GROUP, SOURCE, TARGET, TARGETS

WORKER = Path(__file__).with_name("transaction_worker.py")
CLIENTS = ("confluent", "aiokafka", "kafka-python")  # each has a partition of its own
STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
PAUSE_S = (0.5, 2.0)  # between two kills
PATIENCE_S = 120.0  # a client that lost its node looks for it again with growing pauses


class Workers:
    """One process for each partition of the input."""

    def __init__(self, bootstrap: str, home: Path) -> None:
        self._bootstrap, self._home = bootstrap, home
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


def copies(bootstrap: str, isolation: str) -> list[int]:
    """All that can be read now, from the first offset to the end that the node tells of."""
    found, ends = [], 0
    with consumer(bootstrap, isolation_level=isolation, enable_partition_eof=True) as source:
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


def create_topics(bootstrap: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(SOURCE, len(CLIENTS), replicas), NewTopic(TARGET, TARGETS, replicas)]
    for created in admin.create_topics(topics).values():
        created.result(30)


def is_stable(bootstrap: str) -> bool:
    """Whether no transaction is open any more: read_committed readers come to the end."""
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        with consumer(bootstrap, isolation_level=isolation) as source:
            parts = [TopicPartition(TARGET, partition) for partition in range(TARGETS)]
            ends.append([source.get_watermark_offsets(part, 10.0)[1] for part in parts])
    return ends[0] == ends[1]


def progress(bootstrap: str) -> dict[str, str]:
    """How much of its partition each worker has copied."""
    found = {}
    with consumer(bootstrap, GROUP) as asking:
        for partition, client in enumerate(CLIENTS):
            where = TopicPartition(SOURCE, partition)
            end = asking.get_watermark_offsets(where, 10.0)[1]
            found[client] = f"{asking.committed([where], 10.0)[0].offset} of {end}"
    return found


def copy_over_kills(
    bootstrap: str, home: Path, strikes: Sequence[Callable[[], None] | None], numbers: int
) -> None:
    """Strike while the workers copy; None strikes one of them. Then all must be there, each input once.

    Before each strike every worker gets `numbers` inputs, so that it has something to do.
    """
    random_, began = random.Random(7), time.monotonic()
    rounds, expected = 1 + len(strikes), (1 + len(strikes)) * numbers * len(CLIENTS)
    workers = Workers(bootstrap, home)
    send_inputs(bootstrap, numbers)
    try:
        for partition in range(len(CLIENTS)):
            workers.start(partition)
        until(lambda: copies(bootstrap, "read_committed"), "the first copies", PATIENCE_S)
        for strike in strikes:
            send_inputs(bootstrap, numbers)
            time.sleep(random_.uniform(*PAUSE_S))
            if strike is not None:
                strike()
            else:
                partition = random_.randrange(len(CLIENTS))
                workers.kill(partition)
                workers.start(partition)
        until(lambda: len(copies(bootstrap, "read_committed")) >= expected, "all is copied", PATIENCE_S, 1.0)
    except AssertionError as error:
        raise AssertionError(f"{error}; where each worker is: {progress(bootstrap)}") from None
    finally:
        workers.stop()
    until(lambda: is_stable(bootstrap), "no transaction is open", PATIENCE_S, 1.0)
    counted = Counter(copies(bootstrap, "read_committed"))
    assert counted == dict.fromkeys(range(numbers), rounds * len(CLIENTS))
    aborted = len(copies(bootstrap, "read_uncommitted")) - expected
    assert aborted > 0, "nothing was ever aborted"
    print(
        f"{len(strikes)} kills in {time.monotonic() - began:.0f} s: {expected} inputs were copied once; "
        f"{aborted} more copies were written and aborted"
    )


def send_inputs(bootstrap: str, numbers: int) -> None:
    for partition in range(len(CLIENTS)):
        send_values(bootstrap, SOURCE, numbers, partition, enable_idempotence=True)


def restart(running: Node) -> None:
    running.kill()
    running.start()


def copy_on_one_node(home: Path, kills: int, numbers: int) -> None:
    with node(directory=home) as running:
        create_topics(running.bootstrap, 1)
        strikes = [partial(restart, running) if number % 2 else None for number in range(kills)]
        copy_over_kills(running.bootstrap, home, strikes, numbers)


def leader_of(running: RunningCluster, topic: str, key: str) -> tuple[ClusterNode, Callable[[], ClusterNode]]:
    """The node that leads the key's partition of the topic, and a way to wait for one that does."""
    running.wait_until_whole()
    seen = running.wait_until(lambda seen: topic in seen.topics, f"{topic} is known")
    partition = crc32(key.encode()) % len(seen.topics[topic].partitions)
    return running.leader(topic, partition), lambda: running.leader(topic, partition)


def kill_leader(running: RunningCluster, topic: str, key: str) -> None:
    """It is back when another one leads."""
    killed, another = leader_of(running, topic, key)
    killed.kill()
    another()
    killed.start()


def pause_leader(running: RunningCluster, topic: str, key: str) -> None:
    """It goes on where it was when another one leads, and has not heard of that yet."""
    paused, another = leader_of(running, topic, key)
    paused.pause()
    another()
    paused.resume()


def kill_node(running: RunningCluster, killed: ClusterNode) -> None:
    """Whatever it leads, and back at once."""
    running.wait_until_whole()
    restart(killed)


def strikes_on(running: RunningCluster) -> Iterator[Callable[[], None] | None]:
    """Without end: five kills, three of them of workers, and a pause."""
    places = cycle(
        place
        for number in map(str, range(len(CLIENTS)))
        for place in ((STATE, f"copier-{number}"), (TARGET, number), (OFFSETS, GROUP), (SOURCE, number))
    )
    for killed in cycle(running.nodes):
        yield from (None, partial(kill_leader, running, *next(places)))
        yield from (None, partial(kill_node, running, killed))
        yield from (None, partial(pause_leader, running, *next(places)))


@pytest.mark.slow
def test_each_input_has_its_effect_once_over_kills_of_workers_and_node(tmp_path: Path) -> None:
    copy_on_one_node(tmp_path, kills=4, numbers=100)


@pytest.mark.cluster_slow
def test_each_input_has_its_effect_once_over_twenty_kills(tmp_path: Path) -> None:
    copy_on_one_node(tmp_path, kills=20, numbers=200)


@pytest.mark.cluster_slow
def test_each_input_has_its_effect_once_over_twenty_kills_on_three_nodes(tmp_path: Path) -> None:
    with cluster(nodes=3, settings={"topics.replicas": 3}, directory=tmp_path) as running:
        create_topics(running.bootstrap, 3)
        copy_over_kills(running.bootstrap, tmp_path, list(islice(strikes_on(running), 24)), 200)
