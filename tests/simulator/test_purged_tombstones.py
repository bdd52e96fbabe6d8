"""A replica that was away while its leader dropped tombstones keeps no value that they deleted."""

from __future__ import annotations

from typing import Any

from postroad.broker.partition import Partition
from postroad.wire.batch import walk
from postroad.wire.messages import create_topics
from postroad.wire.records import Record, decode_records, encode_batch
from tests.faults.raw import send_batch
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

TOPIC = "table"
CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": "300",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "1000",
}
SETTINGS: dict[str, Any] = {"storage_compaction_check_ms": 500}


def create(cluster: SimulatedCluster) -> None:
    configs = [create_topics.CreatableTopicConfig(name, value) for name, value in CONFIG.items()]
    assignment = create_topics.CreatableReplicaAssignment(0, [1, 2, 3])
    given: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
    result = cluster.create(TOPIC, assignments=[assignment], configs=configs, **given)
    assert result.error_code == 0, result.error_message
    cluster.until(lambda: cluster.leads(1, TOPIC))


def put(cluster: SimulatedCluster, key: bytes, value: bytes | None) -> None:
    now_ms = cluster.nodes[1].clock.now_ms()
    with cluster.connect(1) as connection:
        answer = send_batch(connection, TOPIC, encode_batch([Record(0, now_ms, key, value, [])]))
        assert answer.error_code == 0, answer.error_message


def replica(cluster: SimulatedCluster, number: int) -> Partition:
    node = cluster.nodes[number]
    found = node.partitions.replica(node.image.topics[TOPIC].id, 0)
    assert found is not None
    return found


def keys(cluster: SimulatedCluster, number: int) -> set[bytes | None]:
    """Those of all records that the log on that node has, deleted or not."""
    segments = replica(cluster, number).log.segments
    contents = [memoryview(segment.file.read(0, segment.size)) for segment in segments]
    return {
        record.key
        for content in contents
        for at, header in walk(content)
        for record in decode_records(content[at : at + header.size])
    }


def fill(cluster: SimulatedCluster, count: int) -> None:
    """Segments end, so that what lies before can be compacted."""
    for number in range(count):
        put(cluster, b"filler-%d" % (number % 3), b"x" * 100)


def test_a_deleted_value_does_not_come_back_with_a_replica_that_missed_its_tombstone() -> None:
    with simulated_cluster(**SETTINGS) as cluster:
        create(cluster)
        put(cluster, b"gone", b"value")
        put(cluster, b"kept", b"value")
        cluster.until(lambda: cluster.replica_end(3, TOPIC) == 2)
        cluster.kill(3)
        cluster.until(lambda: len(cluster.state(TOPIC).isr) == 2)
        put(cluster, b"gone", None)
        fill(cluster, 6)
        cluster.run_for(2.0)
        fill(cluster, 6)
        cluster.until(lambda: b"gone" not in keys(cluster, 1))
        assert replica(cluster, 1).log.purged_offset == 3
        cluster.start(3)
        cluster.until(lambda: len(cluster.state(TOPIC).isr) == 3)
        assert b"gone" not in keys(cluster, 3)
        assert b"kept" in keys(cluster, 3)
        assert replica(cluster, 3).log.purged_offset == 3


def test_a_replica_that_had_the_tombstone_keeps_what_it_has() -> None:
    with simulated_cluster(**SETTINGS) as cluster:
        create(cluster)
        put(cluster, b"gone", b"value")
        put(cluster, b"gone", None)
        cluster.until(lambda: cluster.replica_end(3, TOPIC) == 2)
        cluster.kill(3)
        cluster.until(lambda: len(cluster.state(TOPIC).isr) == 2)
        fill(cluster, 6)
        cluster.run_for(2.0)
        fill(cluster, 6)
        cluster.until(lambda: b"gone" not in keys(cluster, 1))
        cluster.start(3)
        cluster.until(lambda: len(cluster.state(TOPIC).isr) == 3)
        assert replica(cluster, 3).log.checkpoint.current.copied
        assert replica(cluster, 3).log.segments[0].base_offset == 0
