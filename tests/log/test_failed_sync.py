"""After a failed sync the kernel shows bytes that are not on the disk: what becomes of them (D5, P3, R1)."""

from __future__ import annotations

import contextlib
import errno
from dataclasses import replace

import pytest

from postroad.errors import StorageFailed
from postroad.log.memory_disk import MemoryDisk

from .logs import (
    FATES,
    SMALL,
    Crash,
    append,
    batch,
    check_survivors,
    filled,
    open_log,
    send,
    stop_at,
    stored,
    sync,
)


def fail_syncs(disk: MemoryDisk) -> None:
    def fail(operation: str, path: str) -> None:
        if operation == "sync" and path.endswith(".log"):
            raise OSError(errno.EIO, "injected")

    disk.on_operation = fail


def test_a_failed_sync_is_final_but_reads_go_on() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    send(log, batch())
    stop_at(disk, 0, OSError(errno.EIO, "injected"))
    sync(log)
    disk.on_operation = None
    assert log.failed is not None
    assert log.synced_offset == log.written_offset - 1
    assert log.begin_sync() is None, "never tried again"
    with pytest.raises(StorageFailed):
        append(log, batch())
    assert len(stored(log)) == 31


@pytest.mark.parametrize("rolls", [False, True])
def test_what_a_failed_sync_left_is_on_the_disk_before_anything_is_built_on_it(rolls: bool) -> None:
    """The kernel takes the bytes of a failed sync for written: only writing them anew helps (D5)."""
    settings = SMALL if rolls else replace(SMALL, segment_bytes=1 << 20)
    disk = MemoryDisk()
    log = filled(disk, batches=5, settings=settings)
    for _ in range(20):
        send(log, batch(2, size=90))
    written = stored(log)
    fail_syncs(disk)
    sync(log)
    assert log.failed is not None
    restarted = disk.copy()
    log = open_log(restarted, settings)
    assert stored(log) == written, "nobody knows whether it was acknowledged"
    send(log, batch())
    sync(log)
    for pick in FATES:
        check_survivors(open_log(restarted.crash(pick), settings), stored(log), log.synced_offset)


def test_a_recovery_whose_sync_fails_is_begun_again_with_the_writing() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=5)
    for _ in range(20):
        send(log, batch(2, size=90))
    found = disk.copy()
    fail_syncs(found)
    with pytest.raises(OSError, match="injected"):
        open_log(found)
    found.on_operation = None
    log = open_log(found)
    send(log, batch())
    sync(log)
    for pick in FATES:
        check_survivors(open_log(found.crash(pick)), stored(log), log.synced_offset)


def test_a_recovery_that_stops_at_any_operation_after_a_failed_sync_loses_nothing() -> None:
    """A kill, a power cut or an error while the tail is written anew."""
    for error in (Crash(), OSError(errno.EIO, "injected"), OSError(errno.ENOSPC, "injected")):
        operation, stopped = 0, True
        while stopped:
            disk = MemoryDisk()
            log = filled(disk, batches=5)
            acknowledged = log.synced_offset
            for _ in range(12):
                send(log, batch(2, size=90))
            written = stored(log)
            fail_syncs(disk)
            sync(log)
            found = disk.copy()
            count = stop_at(found, operation, error)
            with contextlib.suppress(Crash, OSError):
                open_log(found)
            stopped = count() > operation
            found.on_operation = None
            for pick in FATES:
                check_survivors(open_log(found.crash(pick)), written, acknowledged)
            log = open_log(found.copy())
            check_survivors(log, written, log.end_offset)
            assert stored(log) == written, "a kill costs nothing"
            operation += 1


def test_an_empty_segment_that_a_kill_left_is_still_there_after_a_power_cut() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=5, settings=replace(SMALL, segment_bytes=1 << 20))
    log.roll()
    restarted = disk.copy()
    log = open_log(restarted)
    send(log, batch())
    sync(log)
    for pick in FATES:
        check_survivors(open_log(restarted.crash(pick)), stored(log), log.synced_offset)


def test_a_batch_whose_sync_failed_is_stored_once_when_its_producer_repeats_it() -> None:
    """The error meant "unknown": it is there after the restart, and known as a repetition."""
    disk = MemoryDisk()
    log = filled(disk, batches=5)
    content = batch(2, producer=9, epoch=0, sequence=0)
    [appended] = send(log, content)
    fail_syncs(disk)
    sync(log)
    restarted = disk.copy()
    log = open_log(restarted)
    before = stored(log)
    again = append(log, batch(2, producer=9, epoch=0, sequence=0))
    assert (again.base_offset, again.duplicate) == (appended.base_offset, True)
    for pick in FATES:
        assert stored(open_log(restarted.crash(pick))) == before, "what was acknowledged as there stays there"
