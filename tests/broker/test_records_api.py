"""Records that are deleted, and what is told of logs, producers, epochs and the cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import (
    delete_records,
    describe_cluster,
    describe_log_dirs,
    describe_producers,
    init_producer_id,
    offset_for_leader_epoch,
)
from tests.broker.fetching import offsets_of
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import batch_of, send_batch

OUT_OF_RANGE, UNKNOWN_TOPIC, INVALID_REQUEST, POLICY, NO_TRANSACTIONS = 1, 3, 42, 44, 53
FENCED_EPOCH, UNKNOWN_EPOCH = 74, 75
HIGH_WATERMARK = -1


def delete(running: Running, topic: str, offset: int, version: int = 2, index: int = 0) -> tuple[int, int]:
    partition = delete_records.DeleteRecordsPartition(index, offset)
    request = delete_records.DeleteRecordsRequest(
        [delete_records.DeleteRecordsTopic(topic, [partition])], timeout_ms=10_000
    )
    answer = running.call(delete_records, version, request).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


@pytest.mark.parametrize("version", range(delete_records.MIN_VERSION, delete_records.MAX_VERSION + 1))
def test_every_version_deletes_below_an_offset(shared: Running, version: int) -> None:
    name = f"shortened-{version}"
    shared.create(name)
    shared.publish(name, b"a", b"b", b"c")
    assert delete(shared, name, 2, version) == (0, 2)
    assert delete(shared, name, 1, version) == (0, 2)  # it never goes back
    assert offsets_of(shared.fetch(name, 2)) == [2]
    assert delete(shared, name, HIGH_WATERMARK, version) == (0, 3)
    assert shared.publish(name, b"d") == 3


def test_only_what_is_there_can_be_deleted(shared: Running, topic: str) -> None:
    shared.create(topic)
    shared.publish(topic, b"a")
    assert delete(shared, topic, 2)[0] == OUT_OF_RANGE
    assert delete(shared, topic, -2)[0] == OUT_OF_RANGE
    assert delete(shared, "nowhere", 0)[0] == UNKNOWN_TOPIC
    assert delete(shared, topic, 0, index=3)[0] == UNKNOWN_TOPIC


def test_a_topic_that_is_only_compacted_keeps_its_records(shared: Running, topic: str) -> None:
    shared.create(topic, cleanup_policy="compact")
    shared.publish(topic, b"a")
    assert delete(shared, topic, 1)[0] == POLICY


def test_whole_segments_below_the_offset_leave_the_disk(start: Callable[..., Running]) -> None:
    """At once, or at the next check for old ones if they are being synced at that moment."""
    running = start(durability_flush="os", storage_retention_check_ms=20)
    running.create("t", segment_bytes=1000)
    running.publish("t", *[b"x" * 700] * 10)
    directory = running.node.directory.logs / f"{running.node.image.topics['t'].id_text}-0"
    assert len(list(directory.glob("*.log"))) == 10
    assert delete(running, "t", 8) == (0, 8)
    until(lambda: len(list(directory.glob("*.log"))) == 2, "the files go")
    assert offsets_of(running.fetch("t", 8)) == [8]


def test_deleting_goes_on_beside_producing(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t", segment_bytes=2000)
    with running.connect() as writer:
        for n in range(60):
            assert send_batch(writer, "t", batch_of(b"x" * 500)).base_offset == n
            assert delete(running, "t", n) == (0, n)
    assert offsets_of(running.fetch("t", 59)) == [59]


def test_a_deletion_survives_a_restart(start: Callable[..., Running]) -> None:
    running = start()
    running.create("t")
    running.publish("t", b"a", b"b")
    assert delete(running, "t", 1) == (0, 1)
    running.stop()
    running.start()
    assert running.fetch("t", 0).error_code == OUT_OF_RANGE
    assert offsets_of(running.fetch("t", 1)) == [1]


# --- what there is


@pytest.mark.parametrize("version", range(describe_log_dirs.MIN_VERSION, describe_log_dirs.MAX_VERSION + 1))
def test_every_version_tells_how_much_disk_a_partition_takes(shared: Running, version: int) -> None:
    name = f"sized-{version}"
    shared.create(name, 2)
    shared.publish(name, b"x" * 1000, partition=1)
    asked = [
        describe_log_dirs.DescribableLogDirTopic(name, [1]),
        describe_log_dirs.DescribableLogDirTopic("no"),
    ]
    request = describe_log_dirs.DescribeLogDirsRequest(topics=asked)
    [directory] = shared.call(describe_log_dirs, version, request).results
    assert (directory.error_code, directory.log_dir) == (0, str(shared.node.directory.logs))
    [topic] = directory.topics
    assert [(p.partition_index, p.partition_size > 1000) for p in topic.partitions] == [(1, True)]
    if version >= 4:
        assert directory.total_bytes >= directory.usable_bytes > 0


def test_without_names_all_partitions_are_measured_in_order(shared: Running, topic: str) -> None:
    shared.create(topic, 12)
    request = describe_log_dirs.DescribeLogDirsRequest(topics=None)
    [directory] = shared.call(describe_log_dirs, 4, request).results
    [found] = [t for t in directory.topics if t.name == topic]
    assert [p.partition_index for p in found.partitions] == list(range(12))


def test_a_partition_tells_its_idempotent_producers(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        batch = batch_of(b"a", b"b", producer_id=4711, producer_epoch=2, base_sequence=0)
        assert send_batch(connection, topic, batch).error_code == 0
    asked = [
        describe_producers.TopicRequest(topic, [0, 1]),
        describe_producers.TopicRequest("nowhere", [0]),
    ]
    answer = shared.call(describe_producers, 0, describe_producers.DescribeProducersRequest(asked))
    here, missing = answer.topics[0].partitions
    [producer] = here.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (4711, 2, 1)
    assert (missing.error_code, answer.topics[1].partitions[0].error_code) == (UNKNOWN_TOPIC, UNKNOWN_TOPIC)


def epoch_end(running: Running, topic: str, epoch: int, current: int = -1, version: int = 4) -> Any:
    partition = offset_for_leader_epoch.OffsetForLeaderPartition(0, current, epoch)
    asked = offset_for_leader_epoch.OffsetForLeaderTopic(topic, [partition])
    request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(-1, [asked])
    answer = running.call(offset_for_leader_epoch, version, request).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.mark.parametrize(
    "version", range(offset_for_leader_epoch.MIN_VERSION, offset_for_leader_epoch.MAX_VERSION + 1)
)
def test_every_version_tells_where_an_epoch_ended(start: Callable[..., Running], version: int) -> None:
    running = start()
    running.create("t")
    first = running.partition("t").leader_epoch
    running.publish("t", b"a", b"b")
    running.on_loop(lambda: running.partition("t").become_leader(first + 1, None))
    running.publish("t", b"c")
    assert epoch_end(running, "t", first, version=version) == (0, first, 2)
    assert epoch_end(running, "t", first + 1, version=version) == (0, first + 1, 3)
    assert epoch_end(running, "t", first + 2, version=version) == (0, -1, -1)
    assert epoch_end(running, "t", first, current=first, version=version)[0] == FENCED_EPOCH
    assert epoch_end(running, "t", first, current=first + 2, version=version)[0] == UNKNOWN_EPOCH
    assert epoch_end(running, "nowhere", 0, version=version)[0] == UNKNOWN_TOPIC


@pytest.mark.parametrize("version", range(describe_cluster.MIN_VERSION, describe_cluster.MAX_VERSION + 1))
def test_every_version_describes_the_cluster(shared: Running, version: int) -> None:
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = shared.call(describe_cluster, version, request)
    assert (answer.error_code, answer.cluster_id) == (0, shared.node.image.cluster_id)
    assert (answer.controller_id, answer.cluster_authorized_operations > 0) == (1, True)
    assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [(1, "127.0.0.1", shared.node.port)]


def test_controllers_have_no_address_of_their_own(shared: Running) -> None:
    request = describe_cluster.DescribeClusterRequest(endpoint_type=2)
    assert shared.call(describe_cluster, 1, request).error_code == INVALID_REQUEST


# --- producer ids


@pytest.mark.parametrize("version", range(init_producer_id.MIN_VERSION, init_producer_id.MAX_VERSION + 1))
def test_every_version_gives_ids_that_nobody_else_has(shared: Running, version: int) -> None:
    request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    given = [shared.call(init_producer_id, version, request) for _ in range(5)]
    assert {(g.error_code, g.producer_epoch) for g in given} == {(0, 0)}
    assert len({g.producer_id for g in given}) == 5


def test_ids_are_not_given_again_after_a_restart(start: Callable[..., Running]) -> None:
    running = start()
    request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    before = running.call(init_producer_id, 4, request).producer_id
    running.stop()
    running.start()
    assert running.call(init_producer_id, 4, request).producer_id > before


def test_an_empty_transactional_id_gets_a_clear_error(shared: Running) -> None:
    answer = shared.call(init_producer_id, 4, init_producer_id.InitProducerIdRequest("", 1000))
    assert (answer.error_code, answer.producer_id) == (INVALID_REQUEST, -1)
