"""What compaction has dropped is known, and what it could not finish is looked at again."""

from __future__ import annotations

import contextlib
import errno

from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog

from .logs import NOW, Crash, all_lost, crashed, open_log, records, stop_at, stored
from .test_compaction import COMPACT, DAY_MS, FATES, closed, compact, newest, put, some_log, state


def tombstone_past_its_horizon(disk: MemoryDisk) -> PartitionLog:
    """Keys 1 and 2 with a value, then the tombstone of key 1 at offset 2, whose horizon is NOW + DAY_MS."""
    log = open_log(disk, COMPACT)
    put(log, [(1, b"value"), (2, b"other")])
    put(log, [(1, None)])
    compact(closed(log), NOW)
    put(log, [(3, b"more")])
    return closed(log)


def test_the_log_knows_below_which_offset_tombstones_were_dropped() -> None:
    disk = MemoryDisk()
    log = tombstone_past_its_horizon(disk)
    assert log.purged_offset == 0
    compact(log, NOW + DAY_MS)
    assert b"key-1" not in state(log)
    assert log.purged_offset == 3
    assert open_log(disk.crash(all_lost), COMPACT).purged_offset == 3


def test_a_tombstone_is_dropped_by_no_crash_before_the_log_says_so() -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log = tombstone_past_its_horizon(disk)
        count = stop_at(disk, operation, Crash())
        with contextlib.suppress(Crash):
            compact(log, NOW + DAY_MS)
        for fate in FATES:
            again = open_log(crashed(disk, fate), COMPACT)
            assert b"key-1" in state(again) or again.purged_offset == 3
        if count() <= operation:
            return
        operation += 1


def test_a_compaction_that_fails_half_way_leaves_nothing_superseded_for_good() -> None:
    """What was swapped counts; what was not is looked at again by the next one."""
    operation = 0
    while True:
        disk = MemoryDisk()
        log, written = some_log(disk)
        count = stop_at(disk, operation, OSError(errno.EIO, "injected"))
        job = log.compaction(NOW, log.end_offset)
        assert job is not None
        with contextlib.suppress(OSError):
            job.run()
        disk.on_operation = None
        if job.swapped:
            log.install(job).run()
        put(log, [(0, b"goes on")])
        compact(closed(log))
        expected = newest([*written, [(0, b"goes on")]])
        assert {record.key: record.offset for record in records(log)} == expected
        assert len(records(log)) == len(expected)
        if count() <= operation:
            return
        operation += 1


def test_a_tombstone_that_was_copied_late_stays_until_readers_of_the_copy_could_see_it() -> None:
    """Another replica set its horizon, which has passed; the value before it is still here, and read."""
    leader = open_log(MemoryDisk(), COMPACT)
    put(leader, [(1, b"value")])
    copy = open_log(MemoryDisk(), COMPACT)
    copy.append_copy(memoryview(stored(leader)[0].content), 0, NOW)
    put(leader, [(1, None)])
    put(leader, [(2, b"other")])
    compact(closed(leader), NOW)
    for entry in stored(leader):
        copy.append_copy(memoryview(entry.content), 0, NOW)
    copy.write()
    assert compact(closed(copy), NOW + DAY_MS)
    assert state(copy) == {b"key-1": None, b"key-2": b"other"}
    assert copy.purged_offset == 0
    put(copy, [(3, b"more")])
    assert compact(closed(copy), NOW + 2 * DAY_MS)
    assert state(copy) == {b"key-2": b"other", b"key-3": b"more"}
    assert copy.purged_offset == 2
