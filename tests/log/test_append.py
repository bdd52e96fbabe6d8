from __future__ import annotations

from dataclasses import replace

import pytest

from postroad.errors import (
    InvalidRecord,
    InvalidTimestamp,
    MessageTooLarge,
    OffsetOutOfRange,
    RecordListTooLarge,
)
from postroad.log.memory_disk import MemoryDisk
from postroad.log.settings import LOG_APPEND_TIME
from postroad.wire.batch import read_header

from .logs import (
    DIRECTORY,
    NOW,
    SMALL,
    all_lost,
    append,
    batch,
    crashed,
    filled,
    open_log,
    read_all,
    send,
    stop_at,
    stored,
    sync,
)

HOUR_MS = 3_600_000


def test_offsets_follow_one_another_and_count_records() -> None:
    log = open_log(MemoryDisk())
    assert [a.base_offset for a in send(log, batch(3), batch(1), batch(2))] == [0, 3, 4]
    assert log.end_offset == log.written_offset == 6
    assert [header.base_offset for header, _ in read_all(log)] == [0, 3, 4]


def test_batches_are_stored_as_they_came_but_for_offset_and_epoch() -> None:
    log, sent = open_log(MemoryDisk()), batch(2)
    original = bytes(sent)
    send(log, batch(), sent, leader_epoch=7)
    content = stored(log)[1].content
    assert content[8:12] + content[16:] == original[8:12] + original[16:]
    assert read_header(content).base_offset == 1
    assert read_header(content).leader_epoch == 7


def test_staged_batches_are_not_read_before_they_are_written() -> None:
    log = open_log(MemoryDisk())
    append(log, batch())
    assert log.end_offset == 1
    assert log.written_offset == 0
    assert log.read(0, 100, 1) is None
    log.write()
    assert log.read(0, 100, 1) is not None


def test_written_is_not_synced_until_the_job_is_back() -> None:
    log = open_log(MemoryDisk())
    send(log, batch())
    job = log.begin_sync()
    assert job is not None
    send(log, batch())
    assert log.synced_offset == 0
    assert log.begin_sync() is None, "one at a time"
    job.run()
    log.finish_sync(job, None)
    assert log.synced_offset == 1
    sync(log)
    assert log.synced_offset == 2
    assert log.begin_sync() is None, "nothing to do"


def test_segments_roll_by_size() -> None:
    log = filled(MemoryDisk())
    assert len(log.segments) > 3
    assert all(segment.size <= SMALL.segment_bytes for segment in log.segments)
    bases = [segment.base_offset for segment in log.segments]
    assert [segment.end_offset for segment in log.segments] == [*bases[1:], log.end_offset]


def test_one_write_may_fill_several_segments() -> None:
    log = open_log(MemoryDisk())
    for _ in range(40):
        append(log, batch())
    log.write()
    assert len(log.segments) > 3
    assert [entry.offset for entry in stored(log)] == list(range(40))


def test_segments_roll_by_age() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, segment_ms=1000))
    send(log, batch(), now_ms=NOW)
    send(log, batch(), now_ms=NOW + 999)
    assert len(log.segments) == 1
    send(log, batch(), now_ms=NOW + 1000)
    assert len(log.segments) == 2


def test_too_large_batches_are_refused_and_change_nothing() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, max_message_bytes=200))
    with pytest.raises(MessageTooLarge):
        append(log, batch(size=200))
    log.settings = replace(SMALL, max_message_bytes=5000)
    with pytest.raises(RecordListTooLarge):
        append(log, batch(size=1000))
    assert log.end_offset == 0


def test_what_the_node_itself_writes_may_be_larger_than_a_segment() -> None:
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, max_message_bytes=200))
    large = batch(size=3 * SMALL.segment_bytes)
    send(log, batch())
    log.begin_epoch(0)
    log.append(large, read_header(large), 0, NOW, any_size=True)
    send(log, batch())
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]
    sync(log)
    kept = stored(log)
    assert [entry.offset for entry in kept] == [0, 1, 2]
    assert stored(open_log(crashed(disk, all_lost))) == kept


def test_a_batch_that_miscounts_its_records_is_refused() -> None:
    log, sent = open_log(MemoryDisk()), batch(2)
    log.begin_epoch(0)
    with pytest.raises(InvalidRecord):
        log.append(sent, read_header(sent)._replace(count=1), 0, NOW)


@pytest.mark.parametrize("time", [NOW + HOUR_MS + 1, NOW - 2 * HOUR_MS - 1])
def test_timestamps_out_of_range_are_refused(time: int) -> None:
    log = open_log(MemoryDisk(), replace(SMALL, timestamp_before_max_ms=2 * HOUR_MS))
    with pytest.raises(InvalidTimestamp):
        append(log, batch(time=time))
    assert log.end_offset == 0


def test_a_batch_without_a_timestamp_is_taken() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, timestamp_before_max_ms=HOUR_MS))
    send(log, batch(time=-1))
    assert log.end_offset == 1


def test_log_append_time_stamps_the_batch_and_renews_its_crc() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, timestamp_type=LOG_APPEND_TIME))
    (appended,) = send(log, batch(time=5), now_ms=NOW + 3)
    assert appended.append_time_ms == NOW + 3
    ((header, _),) = read_all(log)  # read_all checks the CRC
    assert header.max_timestamp == NOW + 3


def test_reading_outside_the_log_is_out_of_range() -> None:
    log = filled(MemoryDisk())
    with pytest.raises(OffsetOutOfRange):
        log.read(log.end_offset + 1, 100, log.written_offset)
    with pytest.raises(OffsetOutOfRange):
        log.read(-1, 100, log.written_offset)
    assert log.read(log.end_offset, 100, log.written_offset) is None


def test_nothing_at_or_above_the_limit_is_read() -> None:
    log = filled(MemoryDisk())
    offsets = [entry.offset for entry in stored(log)]
    for below in offsets:
        found = [offset for offset in offsets if offset < below and log.read(offset, 10_000, below)]
        assert found == [offset for offset in offsets if offset < below]
        last = log.read(found[-1], 10_000, below) if found else None
        if last is not None:
            header = read_header(last.file.read(last.position, last.length))
            assert last.length == header.size, "the last batch below the limit, and no more"


def test_a_batch_larger_than_max_bytes_is_read_whole() -> None:
    log = open_log(MemoryDisk())
    send(log, batch(size=500), batch())
    found = log.read(0, 1, log.written_offset)
    assert found is not None
    assert read_header(found.file.read(found.position, found.length)).size == found.length


def test_any_offset_leads_to_the_batch_that_holds_it() -> None:
    disk = MemoryDisk()
    filled(disk)
    log = open_log(disk)
    headers = [header for header, _ in read_all(log)]
    for offset in reversed(range(log.end_offset)):
        found = log.read(offset, 1, log.written_offset)
        assert found is not None
        header = read_header(found.file.read(found.position, found.length))
        assert header in headers
        assert header.base_offset <= offset <= header.last_offset


def test_a_follower_copies_batches_with_gaps() -> None:
    leader, disk = filled(MemoryDisk()), MemoryDisk()
    copy = open_log(disk)
    kept = [entry for entry in stored(leader) if entry.offset % 4]
    for entry in kept:
        copy.append_copy(memoryview(entry.content), 0, NOW)
    copy.write()
    sync(copy)
    assert stored(copy) == kept
    assert stored(open_log(disk)) == kept


@pytest.mark.parametrize("batches", [0, 30])
def test_closing_a_log_to_which_nothing_was_written_changes_nothing_on_the_disk(batches: int) -> None:
    disk = MemoryDisk()
    log = filled(disk, batches)
    log.close()
    log = open_log(disk, clean=True)
    count = stop_at(disk, 0, AssertionError("a change"))
    log.close()
    assert count() == 0
    assert stored(open_log(disk, clean=True)) == stored(open_log(crashed(disk, all_lost)))


def test_files_of_a_new_log_are_there_after_a_power_cut() -> None:
    disk = MemoryDisk()
    open_log(disk)
    assert (
        disk.crash(all_lost).list(DIRECTORY)
        == disk.list(DIRECTORY)
        == ["00000000000000000000.log", "checkpoint"]
    )
