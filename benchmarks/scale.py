"""What partitions, nodes and messages cost in a cluster, in units that a busy machine does not change much.

    python -m benchmarks.scale partitions --partitions 10000
    python -m benchmarks.scale messages --nodes 1,2,3,4,5

`partitions`: nodes on a real etcd, a topic with three replicas, before and after it has so many partitions:
memory, processor time and requests to etcd while nobody works; how long it takes to create them, to elect new
leaders when a node dies, and to take it back. `messages`: processor time of all nodes for a message, by the
number of nodes. Both print a table of Markdown; docs/scale.md says what follows from the figures.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Final, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import RunningCluster, cluster

TICKS_S: Final = os.sysconf("SC_CLK_TCK")
TOPIC: Final = "scale"
IDLE_S: Final = 20.0
STEP: Final = 1000  # partitions that are created by one request
MESSAGE_BYTES: Final = 1024
WAIT_S: Final = 300.0
LOOK_S: Final = 0.05


class Cost(NamedTuple):
    """What processes have used: processor seconds since their start, and memory now."""

    cpu_s: float
    memory_mb: float


def cost(pids: Sequence[int]) -> Cost:
    """All of these processes together."""
    cpu_s = memory_mb = 0.0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        cpu_s += (int(fields[11]) + int(fields[12])) / TICKS_S
        with open(f"/proc/{pid}/status") as file:
            resident = next(line for line in file if line.startswith("VmRSS:"))
        memory_mb += int(resident.split()[1]) / 1024
    return Cost(cpu_s, memory_mb)


class Idle(NamedTuple):
    """A second of a cluster that nobody uses: each node's share of a processor, etcd's, requests to etcd."""

    node_percent: float
    etcd_percent: float
    etcd_requests: float
    node_memory_mb: float


class Meter:
    """The nodes and the etcd of a cluster."""

    def __init__(self, running: RunningCluster) -> None:
        assert running.etcd is not None
        self._running = running
        self._etcd = running.etcd

    def nodes(self) -> Cost:
        """All nodes that run."""
        return cost([node.pid for node in self._running.nodes if node.is_running])

    def etcd(self) -> Cost:
        """All members."""
        return cost([member.pid for member in self._etcd.members])

    def requests(self) -> int:
        """Requests that etcd has answered since its start."""
        return sum(_requests(member.endpoint) for member in self._etcd.members)

    def idle(self) -> Idle:
        before = self.nodes(), self.etcd(), self.requests()
        began = time.monotonic()
        time.sleep(IDLE_S)
        took, count = time.monotonic() - began, len(self._running.nodes)
        after = self.nodes(), self.etcd(), self.requests()
        return Idle(
            100 * (after[0].cpu_s - before[0].cpu_s) / took / count,
            100 * (after[1].cpu_s - before[1].cpu_s) / took,
            (after[2] - before[2]) / took,
            after[0].memory_mb / count,
        )


def _requests(endpoint: str) -> int:
    with urllib.request.urlopen(f"http://{endpoint}/metrics") as page:
        lines = page.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("grpc_server_handled_total"))


def measure_partitions(nodes: int, partitions: int) -> list[tuple[str, str]]:
    """Rows of the table."""
    replicas = min(3, nodes)
    with cluster(nodes, {"topics.replicas": replicas, "topics.internal_replicas": replicas}, etcd=True) as at:
        meter = Meter(at)
        empty = meter.idle()
        before, requests, began = (meter.nodes(), meter.etcd()), meter.requests(), time.monotonic()
        _create(at, partitions, replicas)
        at.wait_until(lambda seen: _led(seen) == partitions, "all partitions are led")
        took, after = time.monotonic() - began, (meter.nodes(), meter.etcd())
        requests = meter.requests() - requests
        full = meter.idle()
        per_replica_kb = (full.node_memory_mb - empty.node_memory_mb) * 1024 * nodes / partitions / replicas
        rows = [
            ("created, s", f"{took:.1f}"),
            ("processor time of all nodes for it, s", f"{after[0].cpu_s - before[0].cpu_s:.1f}"),
            ("of etcd, s", f"{after[1].cpu_s - before[1].cpu_s:.2f}"),
            ("requests to etcd", str(requests)),
            ("memory of a node, empty, MB", f"{empty.node_memory_mb:.0f}"),
            ("memory of a node, MB", f"{full.node_memory_mb:.0f}"),
            ("for each replica, KB", f"{per_replica_kb:.1f}"),
            ("idle node, empty, % of a processor", f"{empty.node_percent:.1f}"),
            ("idle node, % of a processor", f"{full.node_percent:.1f}"),
            ("requests to etcd a second, empty", f"{empty.etcd_requests:.1f}"),
            ("requests to etcd a second", f"{full.etcd_requests:.1f}"),
            ("etcd, % of a processor", f"{full.etcd_percent:.1f}"),
        ]
        return rows + _lose_a_node(at, meter, partitions)


def _lose_a_node(at: RunningCluster, meter: Meter, partitions: int) -> list[tuple[str, str]]:
    victim = at.nodes[-1]
    requests = meter.requests()
    victim.kill()
    before, began = meter.nodes(), time.monotonic()
    at.wait_until(lambda seen: victim.id not in seen.nodes and _led(seen) == partitions, "others lead")
    took, used = time.monotonic() - began, meter.nodes().cpu_s - before.cpu_s
    rows = [
        ("after kill -9: all led again, s", f"{took:.1f}"),
        ("processor time of the other nodes for it, s", f"{used:.2f}"),
        ("requests to etcd", str(meter.requests() - requests)),
    ]
    began = time.monotonic()
    victim.start()
    started = time.monotonic() - began
    at.wait_until_whole()
    whole = time.monotonic() - began
    return [
        *rows,
        ("its start, s", f"{started:.1f}"),
        ("all replicas in sync after, s", f"{whole:.1f}"),
    ]


def _create(at: RunningCluster, partitions: int, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": at.bootstrap, "socket.timeout.ms": int(WAIT_S * 1000)})
    for first in range(0, partitions, STEP):
        count = min(STEP, partitions - first)
        topic = NewTopic(f"{TOPIC}-{first}", count, replicas)
        for made in admin.create_topics([topic], request_timeout=WAIT_S).values():
            made.result(WAIT_S)


def _led(seen: object) -> int:
    topics = getattr(seen, "topics", {})
    nodes = getattr(seen, "nodes", {})
    return sum(
        partition.leader in nodes
        for topic in topics.values()
        if topic.name.startswith(TOPIC)
        for partition in topic.partitions
    )


def measure_messages(nodes: int, count: int) -> list[tuple[str, str]]:
    """Rows of the table: messages to three partitions for each node, acks=all, flush `os`."""
    replicas = min(3, nodes)
    settings: dict[str, str | int] = {
        "topics.replicas": replicas, "topics.internal_replicas": replicas, "durability.flush": "os",
    }  # fmt: skip
    with cluster(nodes, settings, etcd=True) as at:
        meter = Meter(at)
        _create(at, 3 * nodes, replicas)
        at.wait_until_whole()
        _produce(at.bootstrap, count // 10, 3 * nodes)  # connections are there, code is loaded
        before = meter.nodes()
        began = time.monotonic()
        _produce(at.bootstrap, count, 3 * nodes)
        took, used = time.monotonic() - began, meter.nodes().cpu_s - before.cpu_s
    return [
        ("replicas", str(replicas)),
        ("processor time of all nodes for a message, µs", f"{1e6 * used / count:.2f}"),
        ("for a message and replica, µs", f"{1e6 * used / count / replicas:.2f}"),
        ("messages a second here (two processors for all)", f"{count / took:,.0f}"),
    ]


def _produce(bootstrap: str, count: int, partitions: int) -> None:
    failed: list[object] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 100_000,
        }
    )
    value = os.urandom(MESSAGE_BYTES)

    def delivered(error: object, _: object) -> None:
        if error:
            failed.append(error)

    for number in range(count):
        while True:
            try:
                producer.produce(f"{TOPIC}-0", value, partition=number % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 100 == 0:
            producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert not failed, failed[0]


def table(columns: dict[str, list[tuple[str, str]]]) -> str:
    """Markdown, a column for each run."""
    first = next(iter(columns.values()))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += [
        f"| {name} | " + " | ".join(rows[number][1] for rows in columns.values()) + " |"
        for number, (name, _) in enumerate(first)
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["partitions", "messages"])
    parser.add_argument("--nodes", default="3", help="how many; several counts with commas")
    parser.add_argument("--partitions", default="10000", help="how many; several counts with commas")
    parser.add_argument("--messages", type=int, default=200_000)
    given = parser.parse_args()
    columns: dict[str, list[tuple[str, str]]] = {}
    for nodes in map(int, given.nodes.split(",")):
        if given.what == "messages":
            columns[f"{nodes} nodes"] = measure_messages(nodes, given.messages)
            continue
        for partitions in map(int, given.partitions.split(",")):
            columns[f"{nodes} nodes, {partitions:,}"] = measure_partitions(nodes, partitions)
            print(f"{nodes} nodes, {partitions:,} partitions: done", file=sys.stderr)
    print(table(columns))


if __name__ == "__main__":
    main()
