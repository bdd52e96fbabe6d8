"""Replicas of one log are compared as they lie on their disks."""

from __future__ import annotations

import pytest

from postroad.log.comparison import compare_directories
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.scan import DamagedBatch

from .logs import NOW, SMALL, batch, send, sync

OURS, THEIRS = "ours", "theirs"


def opened(disk: MemoryDisk, directory: str) -> PartitionLog:
    return PartitionLog.open(disk, directory, SMALL, NOW, clean=False)


def written(disk: MemoryDisk, directory: str, sizes: list[int], watermark: int | None = None) -> None:
    """A log of one batch of each size, closed."""
    log = opened(disk, directory)
    for size in sizes:
        send(log, batch(size=size))
    log.watermark = log.end_offset if watermark is None else watermark
    sync(log)
    log.close()


def test_equal_replicas_are_equal_up_to_their_end() -> None:
    disk = MemoryDisk()
    for directory in (OURS, THEIRS):
        written(disk, directory, [40] * 30)
    found = compare_directories(disk, [OURS, THEIRS])
    assert (found.start, found.end, found.ends, found.different) == (0, 30, (30, 30), None)
    assert found.is_equal


def test_a_replica_that_lags_behind_is_equal_up_to_its_end() -> None:
    disk = MemoryDisk()
    written(disk, OURS, [40] * 30)
    written(disk, THEIRS, [40] * 20)
    found = compare_directories(disk, [OURS, THEIRS])
    assert (found.end, found.ends) == (20, (30, 20))
    assert found.is_equal


def test_the_first_offset_that_differs_is_named() -> None:
    disk = MemoryDisk()
    written(disk, OURS, [40] * 30)
    written(disk, THEIRS, [40] * 12 + [41] + [40] * 17)
    found = compare_directories(disk, [OURS, THEIRS, OURS])
    assert (found.end, found.different) == (12, 12)
    assert not found.is_equal


def test_what_was_never_committed_may_differ() -> None:
    disk = MemoryDisk()
    written(disk, OURS, [40] * 30, watermark=29)
    written(disk, THEIRS, [40] * 29 + [41], watermark=25)
    found = compare_directories(disk, [OURS, THEIRS])
    assert (found.different, found.watermark) == (29, 29)
    assert found.is_equal


def test_replicas_are_compared_where_all_of_them_begin() -> None:
    disk = MemoryDisk()
    for directory in (OURS, THEIRS):
        written(disk, directory, [40] * 30)
    log = opened(disk, OURS)
    log.delete_before(17, below=30)
    log.close()
    found = compare_directories(disk, [OURS, THEIRS])
    assert (found.start, found.end, found.is_equal) == (17, 30, True)


def test_a_replica_without_messages_equals_any() -> None:
    disk = MemoryDisk()
    written(disk, OURS, [40] * 3)
    written(disk, THEIRS, [])
    assert compare_directories(disk, [OURS, THEIRS])[:3] == (0, 0, (3, 0))


def test_damage_below_the_recovery_point_is_an_error_and_a_torn_tail_is_none() -> None:
    disk = MemoryDisk()
    for directory in (OURS, THEIRS):
        written(disk, directory, [40] * 3)
    log = opened(disk, THEIRS)
    send(log, batch(size=40))
    path = log.active.path
    whole = disk.content(path)
    disk.damage(path, whole[:-3])
    assert compare_directories(disk, [OURS, THEIRS]).ends == (3, 3)
    disk.damage(path, whole[:8] + b"\xff" * 4 + whole[12:])
    with pytest.raises(DamagedBatch):
        compare_directories(disk, [OURS, THEIRS])
