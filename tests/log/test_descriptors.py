"""A log that finds no descriptor refuses, loses nothing, and goes on as soon as there is one."""

from __future__ import annotations

import errno
import os

import pytest

from postroad.errors import StorageFailed
from postroad.log.memory_disk import MemoryDisk, MemoryFile
from postroad.log.partition_log import PartitionLog

from .logs import NOW, append, batch, filled, open_log, send, stored

BATCHES = 12  # several segments
OPENS_MAX = 80  # more than the scenario ever needs


class ShortDisk(MemoryDisk):
    """Whatever needs a descriptor is refused: from the `spare`-th time on, for the next `refusals` times."""

    def __init__(self) -> None:
        super().__init__()
        self.spare = self.refusals = 0

    def _take(self, path: str) -> None:
        if self.refusals and not self.spare:
            self.refusals -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        self.spare = max(0, self.spare - 1)

    def open(self, path: str, create: bool = False) -> MemoryFile:
        self._take(path)
        return super().open(path, create)

    def sync_directory(self, path: str) -> None:
        self._take(path)
        super().sync_directory(path)


def reopened(clean: bool) -> tuple[ShortDisk, PartitionLog]:
    disk = ShortDisk()
    filled(disk, 5).close()
    return disk, open_log(disk, clean=clean)


@pytest.mark.parametrize("clean", [True, False])
def test_write_without_a_descriptor_is_refused_and_the_next_one_is_taken(clean: bool) -> None:
    disk, log = reopened(clean)
    before, end = stored(open_log(disk)), log.end_offset
    disk.refusals = 1000
    for _ in range(3):
        append(log, batch())
        with pytest.raises(StorageFailed, match="Nothing was appended"):
            log.write()
    assert (log.failed, log.end_offset, log.written_offset) == (None, end, end)
    disk.refusals = 0
    assert send(log, batch())[0].base_offset == end
    assert stored(log)[:-1] == before


@pytest.mark.parametrize("refusals", [1, 2, 5])
@pytest.mark.parametrize("clean", [True, False])
def test_log_goes_on_wherever_descriptors_ran_out(clean: bool, refusals: int) -> None:
    """The n-th file that is opened finds no descriptor; all that was taken is there, once."""
    for spare in range(OPENS_MAX):
        disk, log = reopened(clean)
        before = log.end_offset
        disk.spare, disk.refusals = spare, refusals
        for number in range(BATCHES):
            until_taken(log, number)
            log.roll()
            until_synced(log)
        found = [entry.offset for entry in stored(open_log(disk.copy())) if entry.offset >= before]
        assert found == list(range(before, before + BATCHES)), f"refused after {spare} opens"
        if disk.refusals == refusals:
            return
    raise AssertionError("the scenario opens more files than it tries")


def until_taken(log: PartitionLog, number: int) -> None:
    for _ in range(100):
        append(log, batch(time=NOW + number))
        try:
            log.write()
        except StorageFailed:
            assert log.failed is None
        else:
            return
    raise AssertionError("never taken")


def until_synced(log: PartitionLog) -> None:
    """As the flusher does it."""
    for _ in range(100):
        job = log.begin_sync()
        if job is None:
            return
        try:
            job.run()
        except OSError:
            log.put_off_sync(job)
            assert log.synced_offset <= log.written_offset
        else:
            log.finish_sync(job, None)
            assert log.synced_offset == log.written_offset
            return
    raise AssertionError("never synced")


def test_sync_that_was_put_off_covers_the_segments_that_were_rolled_before_it() -> None:
    disk, log = reopened(clean=False)
    send(log, batch())
    log.roll()
    send(log, batch())
    job = log.begin_sync()
    assert job is not None
    log.put_off_sync(job)
    log.roll()
    send(log, batch())
    again = log.begin_sync()
    assert again is not None
    assert [segment.base_offset for segment in again.segments] == [
        segment.base_offset for segment in log.segments[-3:]
    ]
    assert again.names
    again.run()
    log.finish_sync(again, None)
    found = open_log(disk.crash(lambda _: 0))
    assert found.end_offset == log.end_offset
