"""With acks=1 under flush `sync` a client that asks for the end of a log hears of its own writes."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import delete_records, list_offsets
from tests.broker.failing_disk import FailingDisk, use_failing_disk
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, frame, request_content, send_batch

LATEST, EARLIEST, NEWEST = -1, -2, -3
OUT_OF_RANGE = 1
HIGH_WATERMARK = -1


def list_request(timestamp: int, topic: str = "t") -> Any:
    wanted = list_offsets.ListOffsetsPartition(0, -1, timestamp)
    return list_offsets.ListOffsetsRequest(-1, topics=[list_offsets.ListOffsetsTopic(topic, [wanted])])


def end_of(connection: RawConnection, timestamp: int = LATEST) -> int:
    answer = connection.call(list_offsets, 7, list_request(timestamp)).topics[0].partitions[0]
    assert answer.error_code == 0
    return int(answer.offset)


def delete_to(connection: RawConnection, offset: int) -> tuple[int, int]:
    wanted = delete_records.DeleteRecordsTopic("t", [delete_records.DeleteRecordsPartition(0, offset)])
    answer = connection.call(delete_records, 2, delete_records.DeleteRecordsRequest([wanted], 10_000))
    partition = answer.topics[0].partitions[0]
    return partition.error_code, partition.low_watermark


@pytest.fixture
def synced(start: Callable[..., Running]) -> Running:
    """A node with a topic `t`."""
    running = start(durability_flush="sync")
    use_failing_disk(running)
    running.create("t")
    return running


def disk_of(running: Running) -> FailingDisk:
    disk = running.node.replicas._disk
    assert isinstance(disk, FailingDisk)
    return disk


def test_the_end_covers_what_was_acknowledged_in_200_of_200_tries(synced: Running) -> None:
    with synced.connect() as writer, synced.connect() as reader:
        stale = 0
        for n in range(200):
            assert send_batch(writer, "t", batch_of(b"x"), acks=1).base_offset == n
            stale += end_of(reader) != n + 1
    assert stale == 0


def test_records_can_be_deleted_up_to_what_was_acknowledged(synced: Running) -> None:
    with synced.connect() as writer, synced.connect() as admin:
        for n in range(1, 41):
            send_batch(writer, "t", batch_of(b"x"), acks=1)
            assert delete_to(admin, n if n % 2 else HIGH_WATERMARK) == (0, n)
        assert delete_to(admin, 41)[0] == OUT_OF_RANGE


@pytest.mark.parametrize("timestamp", [LATEST, NEWEST, 0])
def test_a_request_for_the_end_waits_for_the_sync_and_no_longer(synced: Running, timestamp: int) -> None:
    disk = disk_of(synced)
    with synced.connect() as writer, synced.connect() as reader:
        disk.gate.clear()
        try:
            assert send_batch(writer, "t", batch_of(b"x"), acks=1).base_offset == 0
            reader.send(frame(request_content(list_offsets, 7, list_request(timestamp), 1)))
            inside = synced.inside(reader)
            until(lambda: len(inside._answers) == 1, "it waits")
            with synced.connect() as other:
                assert end_of(other, EARLIEST) == 0  # which does not depend on the end
        finally:
            disk.gate.set()
        answer = list_offsets.decode_response(reader.receive()[5:], 7).topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (0, 1 if timestamp == LATEST else 0)


def test_a_sync_that_fails_ends_the_wait(synced: Running) -> None:
    disk = disk_of(synced)
    with synced.connect() as writer, synced.connect() as reader:
        disk.fail("sync", "", errno.EIO)
        disk.gate.clear()
        try:
            assert send_batch(writer, "t", batch_of(b"x"), acks=1).base_offset == 0
            reader.send(frame(request_content(list_offsets, 7, list_request(LATEST), 1)))
            inside = synced.inside(reader)
            until(lambda: len(inside._answers) == 1, "it waits")
        finally:
            disk.gate.set()
        answer = list_offsets.decode_response(reader.receive()[5:], 7).topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (0, 0)
