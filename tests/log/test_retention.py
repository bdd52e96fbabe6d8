from __future__ import annotations

from dataclasses import replace

from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.retention import RemovedSegment
from postroad.log.settings import LogSettings

from .logs import DIRECTORY, NOW, SMALL, all_kept, all_lost, batch, filled, open_log, send, stored, sync

HOUR_MS = 3_600_000
KEEP_ALL = replace(SMALL, retention_ms=-1)


def expire(log: PartitionLog, now_ms: int = NOW) -> list[RemovedSegment]:
    removed = log.expire(now_ms)
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
    log.delete_before(20)
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
    assert log.delete_before(7) == 7
    assert log.delete_before(3) == 7, "it never falls"
    assert log.delete_before(end) == end
    assert stored(log) == []
    assert send(log, batch())[0].base_offset == end
