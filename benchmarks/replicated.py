"""The workloads of several nodes: three replicas beside Kafka's, and two nodes beside one.

They are those of `logs`, on topics with as many replicas as the servers have nodes to keep them; and one that
kills a leader.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks import clients, logs, queues
from benchmarks.clusters import KafkaCluster, PostroadCluster, PostroadNodes, PostroadTwo
from benchmarks.servers import Mode, Postroad
from benchmarks.session import Measurement, Session
from benchmarks.workload import Part, Row, Workload

GAP_RATE, GAP_SECONDS, KILL_AFTER_SECONDS = 200, 4.0, 1.5
WHOLE_SECONDS_MAX = 60.0


# --- the death of a leader -------------------------------------------------------------------------


def _gap(session: Session) -> Measurement:
    """How long a producer waits for its next acknowledgement when the leader is killed."""
    server = session.server
    assert isinstance(server, PostroadNodes | KafkaCluster)
    topic = session.topic("gap")
    _wait_until_whole(session, topic)
    leader = session.leader(topic)
    with ThreadPoolExecutor(1) as pool:
        produced = pool.submit(session.run, "gap", topic, 0, 100, GAP_SECONDS, GAP_RATE)
        time.sleep(KILL_AFTER_SECONDS)
        server.kill(int(leader["node"]))
        figures, _ = produced.result()
    server.restore()
    _wait_until_whole(session, topic)
    return Measurement((figures["gap_ms"] / 1000,), figures["messages"], 0.0)


def _wait_until_whole(session: Session, topic: str) -> None:
    """Returns once all replicas of the topic are in sync."""
    deadline = time.monotonic() + WHOLE_SECONDS_MAX
    while session.leader(topic)["in_sync"] < session.server.replicas:
        if time.monotonic() > deadline:
            raise clients.ClientFailed(f"{topic} lacks replicas after {WHOLE_SECONDS_MAX:.0f} s")
        time.sleep(0.1)


# --- the tables ------------------------------------------------------------------------------------

_THREE = (PostroadCluster.name, KafkaCluster.name)
_cluster = partial(Workload, part=Part.CLUSTER, only=_THREE)
_two = partial(Workload, part=Part.TWO_NODES, only=(PostroadTwo.name, Postroad.name))
_PAGE_CACHE, _SYNCED = (Mode.PAGE_CACHE,), (Mode.SYNCED,)
_CPU_TITLE = f"server CPU for {logs.CPU_MESSAGES:,} messages of 1 KB produced"
_NOT_LESS = 0.95


def _produce(key: str, goal: float, mode: tuple[Mode, ...]) -> Workload:
    rows = Row("produce 1 KB", "MB/s", True, goal), Row(_CPU_TITLE, "s", False, 0.6)
    return _cluster(key, rows, logs.produce_kilobytes, mode)


def _count(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"


WORKLOADS: tuple[Workload, ...] = (
    _produce("cluster-produce", 1.3, _PAGE_CACHE),
    _produce("cluster-produce-synced", 2.0, _SYNCED),
    _cluster("cluster-consume", (Row("consume 1 KB", "MB/s", True),), logs.consume_kilobytes, _PAGE_CACHE),
    _cluster(
        "cluster-single", (Row("one message a request, 5 in flight", "requests/s", True, 2.5),), logs.single
    ),
    _cluster(
        "cluster-latency",
        logs.latency_rows("end to end at 1,000 msg/s", 0.7, None),
        lambda session: logs.latency(session, 1_000),
    ),
    *(
        _cluster(
            f"cluster-queue-{partitions}",
            (Row(f"queue: 100 B, 8 consumers, an ack for each, {_count(partitions)}", "msg/s", True),),
            partial(queues.over_partitions, partitions=partitions),
            clients=("queue_client",),
        )
        for partitions in (1, 8, 32)
    ),
    Workload(
        "failover",
        (Row("gap at kill -9 of a leader", "s", False, 0.3),),
        _gap,
        _PAGE_CACHE,
        Part.FAILOVER,
        only=_THREE,
        long=True,
    ),
    _two("two-produce", (Row("produce 1 KB", "MB/s", True, _NOT_LESS),), logs.produce_kilobytes),
    _two("two-consume", (Row("consume 1 KB", "MB/s", True, _NOT_LESS),), logs.consume_kilobytes, _PAGE_CACHE),
    _two(
        "two-single", (Row("one message a request, 5 in flight", "requests/s", True, _NOT_LESS),), logs.single
    ),
    _two(
        "two-single-2",
        (Row("one message a request, 2 partitions, 5 in flight on a connection", "requests/s", True, 1.2),),
        lambda session: logs.requests(session, 5, 100_000, partitions=2),
    ),
    _two(
        "two-latency",
        logs.latency_rows("end to end at 1,000 msg/s", 1 / _NOT_LESS, None),
        lambda session: logs.latency(session, 1_000),
    ),
)
