from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import OffsetOutOfRange, StorageFailed
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.retention import RemovedSegment
from postroad.log.segment import log_path
from postroad.log.settings import LogSettings

from .logs import (
    DIRECTORY,
    NOW,
    SMALL,
    all_kept,
    all_lost,
    batch,
    filled,
    open_log,
    send,
    stop_at,
    stored,
    sync,
)

HOUR_MS = 3_600_000
KEEP_ALL = replace(SMALL, retention_ms=-1)


def expire(log: PartitionLog, now_ms: int = NOW) -> list[RemovedSegment]:
    removed = log.expire(now_ms, log.end_offset)
    for segment in removed:
        segment.run()
    return removed


def aged(disk: MemoryDisk, settings: LogSettings) -> PartitionLog:
    """Each batch a minute later than the one before, the last one now."""
    log = open_log(disk, settings)
    for number in range(30):
        send(log, batch(time=NOW - (29 - number) * 60_000))
    sync(log)
    return log


def test_a_deletion_that_can_not_be_written_down_is_refused() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    stop_at(disk, 0, OSError(errno.EIO, "injected"))
    with pytest.raises(StorageFailed, match="injected"):
        log.delete_before(5, log.end_offset)
    assert log.start_offset == 0
    disk = disk.copy()
    assert open_log(disk).start_offset in (0, 5), "nobody knows"


def test_expired_segments_leave_no_hole_after_a_power_cut() -> None:
    """Any of their names may survive it, for nobody syncs the directory; so the start is synced before."""
    disk = MemoryDisk()
    log = aged(disk, replace(SMALL, retention_ms=3 * 60_000))
    removed = log.expire(NOW, log.end_offset)
    assert len(removed) > 1
    for segment in removed:
        segment.run()
        found = disk.crash(all_lost)
        for path in [log_path(DIRECTORY, other.base_offset) for other in removed[1:]]:
            found.remove(path)
        offsets = [each.offset for each in stored(open_log(found))]
        assert offsets == list(range(offsets[0], 30))


def test_segments_go_when_all_their_records_are_too_old() -> None:
    disk = MemoryDisk()
    log = aged(disk, replace(SMALL, retention_ms=10 * 60_000))
    removed = expire(log)
    assert removed
    assert log.start_offset == log.segments[0].base_offset
    assert log.segments[0].max_timestamp >= NOW - 10 * 60_000
    assert len([name for name in disk.list(DIRECTORY) if name.endswith(".log")]) == len(log.segments)
    for found in (disk.copy(), disk.crash(all_lost), disk.crash(all_kept)):
        assert stored(open_log(found))[-1] == stored(log)[-1]
    assert open_log(disk.copy()).start_offset == log.start_offset


def test_segments_go_while_the_rest_is_large_enough() -> None:
    log = filled(MemoryDisk(), settings=replace(KEEP_ALL, retention_bytes=2000))
    expire(log)
    assert 2000 <= log.size_bytes < 3000


def test_nothing_goes_without_a_limit_or_without_the_delete_policy() -> None:
    for settings in (KEEP_ALL, replace(SMALL, cleanup_delete=False, cleanup_compact=True, retention_ms=1)):
        log = aged(MemoryDisk(), settings)
        assert expire(log, NOW + 1000 * HOUR_MS) == []


def test_segments_below_the_start_offset_go_whatever_the_policy() -> None:
    log = aged(MemoryDisk(), replace(KEEP_ALL, cleanup_delete=False, cleanup_compact=True))
    log.delete_before(20, log.end_offset)
    expire(log)
    assert log.segments[0].base_offset <= 20 < log.segments[0].end_offset
    assert log.start_offset == 20


def test_the_newest_segment_outlives_a_clock_that_jumps_and_is_put_right() -> None:
    log = aged(MemoryDisk(), SMALL)
    newest, end = log.active, log.end_offset
    expire(log, NOW + 365 * 24 * HOUR_MS)
    assert log.start_offset == newest.base_offset
    assert expire(log, NOW) == []
    assert [entry.offset for entry in stored(log)] == list(range(newest.base_offset, end))


def test_a_topic_is_emptied_when_everything_is_too_old() -> None:
    disk = MemoryDisk()
    log = aged(disk, SMALL)
    later = NOW + 30 * 24 * HOUR_MS
    expire(log, later)
    expire(log, later)
    assert log.start_offset == log.end_offset == 30
    assert stored(log) == []
    assert send(log, batch(time=later), now_ms=later)[0].base_offset == 30
    assert open_log(disk.copy()).start_offset == 30


def test_an_idle_segment_is_closed_when_it_is_due() -> None:
    log = open_log(MemoryDisk(), replace(KEEP_ALL, segment_ms=HOUR_MS))
    send(log, batch())
    expire(log, NOW + HOUR_MS - 1)
    assert len(log.segments) == 1
    expire(log, NOW + HOUR_MS)
    assert [segment.size > 0 for segment in log.segments] == [True, False]
    expire(log, NOW + 9 * HOUR_MS)
    assert len(log.segments) == 2, "an empty segment does not age"


def test_readers_of_a_removed_segment_are_not_disturbed() -> None:
    log = aged(MemoryDisk(), replace(SMALL, retention_ms=10 * 60_000))
    found = log.read(0, 200, log.written_offset)
    assert found is not None
    before = found.file.read(found.position, found.length)
    expire(log)
    assert found.file.read(found.position, found.length) == before


def test_a_segment_that_is_being_synced_stays_until_that_is_over() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, retention_ms=1))
    for _ in range(20):
        send(log, batch(time=NOW - HOUR_MS))
    job = log.begin_sync()
    assert job is not None
    assert expire(log) == []
    job.run()
    log.finish_sync(job, None)
    assert expire(log) != []


def test_unsynced_segments_may_go_and_the_log_still_syncs() -> None:
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, retention_ms=1))
    for _ in range(20):
        send(log, batch(time=NOW - HOUR_MS))
    assert expire(log) != []
    sync(log)
    assert log.failed is None
    again = open_log(disk.crash(all_lost))
    assert (again.start_offset, again.end_offset) == (log.start_offset, log.end_offset)


def test_deleting_records_moves_the_start_and_nothing_else() -> None:
    log = filled(MemoryDisk())
    end = log.end_offset
    assert log.delete_before(7, log.end_offset) == 7
    assert log.delete_before(3, log.end_offset) == 7, "it never falls"
    assert log.delete_before(end, log.end_offset) == end
    assert stored(log) == []
    assert send(log, batch())[0].base_offset == end


def test_records_above_the_watermark_can_not_be_deleted() -> None:
    log = filled(MemoryDisk())
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(11, below=10)
    assert log.delete_before(10, below=10) == 10
    with pytest.raises(OffsetOutOfRange):
        log.delete_before(log.end_offset + 1, below=log.end_offset + 5)


@examples(max_examples=100)
@given(st.integers(0, 60), st.sampled_from(["time", "size", "both"]), st.integers(0, 3))
def test_nothing_at_or_above_the_watermark_expires(below: int, limit: str, calls: int) -> None:
    settings = replace(
        SMALL,
        retention_ms=1 if limit != "size" else -1,
        retention_bytes=0 if limit != "time" else -1,
    )
    disk = MemoryDisk()
    log = filled(disk, settings=settings)
    kept = [entry for entry in stored(log) if entry.offset >= below]
    for _ in range(calls):
        for segment in log.expire(NOW + 1000 * HOUR_MS, below):
            segment.run()
        sync(log)
        assert log.start_offset <= max(below, 0)
        assert [entry for entry in stored(log) if entry.offset >= below] == kept
        again = open_log(disk.crash(all_lost), settings)
        assert [entry for entry in stored(again) if entry.offset >= below] == kept
