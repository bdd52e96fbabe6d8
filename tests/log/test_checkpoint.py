from __future__ import annotations

import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from postroad.log.checkpoint import Checkpoint, CheckpointFile, Point, read_checkpoint
from postroad.log.memory_disk import MemoryDisk
from postroad.wire.batch import crc32c

from .logs import all_lost

PATH = "d/checkpoint"
FIRST = Checkpoint(0, 0, Point(0, 0, 0))


def saved(disk: MemoryDisk, count: int) -> CheckpointFile:
    file = CheckpointFile(disk, "d", 0, FIRST)
    for number in range(count):
        file.save_point(Point(number, 2 * number, 3 * number), number)
    return file


def offset(disk: MemoryDisk) -> int | None:
    found = read_checkpoint(disk, "d")
    return None if found is None else found[1].point.offset


@pytest.mark.parametrize("count", range(1, 6))
def test_what_was_saved_last_is_read(count: int) -> None:
    disk = MemoryDisk()
    file = saved(disk, count)
    found = read_checkpoint(disk, "d")
    assert found is not None
    point = Point(count - 1, 2 * count - 2, 3 * count - 3)
    assert found[1] == file.current == Checkpoint(0, 0, point, count - 1)


def test_there_is_none_before_it_is_saved() -> None:
    assert read_checkpoint(MemoryDisk(), "d") is None


@pytest.mark.parametrize("count", [5, 6])
def test_a_write_torn_at_any_byte_leaves_the_one_before(count: int) -> None:
    before, after = MemoryDisk(), MemoryDisk()
    saved(before, count)
    saved(after, count + 1)
    old, new = before.content(PATH), after.content(PATH)
    changed = [at for at in range(len(old)) if old[at] != new[at]]
    for cut in range(changed[0] + 1, changed[-1] + 1):
        before.damage(PATH, new[:cut] + old[cut:])
        assert offset(before) == 3 * (count - 1)


def test_nothing_is_saved_after_it_was_retired() -> None:
    disk = MemoryDisk()
    file = saved(disk, 3)
    file.retire(FIRST)
    file.save_point(Point(9, 9, 9), 9)
    file.sync()
    assert offset(disk) == 0


def test_offsets_and_point_are_saved_apart() -> None:
    disk = MemoryDisk()
    file = saved(disk, 2)
    file.save_offsets(start_offset=1, cleaned_offset=2)
    file.save_point(Point(5, 6, 7), 4)
    found = read_checkpoint(disk, "d")
    assert found is not None
    assert found[1] == Checkpoint(1, 2, Point(5, 6, 7), 4)


def test_a_log_is_marked_as_copied_durably_and_for_good() -> None:
    disk = MemoryDisk()
    file = saved(disk, 3)
    file.mark_copied()
    for found in (read_checkpoint(disk.crash(all_lost), "d"), read_checkpoint(disk, "d")):
        assert found is not None
        assert found[1].copied
    file.save_point(Point(7, 8, 9), 5)
    file.save_offsets(1, 1)
    found = read_checkpoint(disk, "d")
    assert found is not None
    assert found[1] == Checkpoint(1, 1, Point(7, 8, 9), 5, copied=True)


@pytest.mark.parametrize("sequence", [4, 5])
def test_a_file_without_watermarks_is_read_and_goes_on_as_a_new_one(sequence: int) -> None:
    disk = MemoryDisk()
    slots = []
    for number in (sequence - sequence % 2, sequence - 1 + sequence % 2):
        slot = struct.pack(">4sQqqqqq", b"PRck", number, 1, 2, 30, 40, 50 + number)
        slots.append(slot + struct.pack(">I", crc32c(slot)))
    disk.replace(PATH, slots[0].ljust(512, b"\0") + slots[1])
    found = read_checkpoint(disk, "d")
    assert found == (sequence, Checkpoint(1, 2, Point(30, 40, 50 + sequence), -1))
    assert found is not None
    file = CheckpointFile(disk, "d", *found)
    file.save_point(Point(60, 70, 80), 75)
    assert read_checkpoint(disk, "d") == (sequence + 1, Checkpoint(1, 2, Point(60, 70, 80), 75))


def test_offsets_are_saved_while_a_sync_is_under_way() -> None:
    """The loop saves them: a disk whose syncs take seconds must not hold it up."""
    disk, begun, go_on = MemoryDisk(), threading.Event(), threading.Event()
    file = saved(disk, 2)

    def wait_in_sync(operation: str, path: str) -> None:
        if operation == "sync":
            begun.set()
            assert go_on.wait(20)

    disk.on_operation = wait_in_sync
    with ThreadPoolExecutor() as threads:
        syncing = threads.submit(file.sync)
        assert begun.wait(20)
        saving = threads.submit(file.save_offsets, 7, 3)
        try:
            saving.result(5)
        finally:
            go_on.set()
        syncing.result(20)
    found = read_checkpoint(disk, "d")
    assert found is not None
    assert found[1] == Checkpoint(7, 3, Point(1, 2, 3), 1)


def test_a_file_without_a_purged_offset_is_read() -> None:
    disk = MemoryDisk()
    slot = struct.pack(">4sQqqqqqqI", b"PRc2", 4, 1, 2, 30, 40, 50, 45, 1)
    slot += struct.pack(">I", crc32c(slot))
    disk.replace(PATH, slot.ljust(512, b"\0") + slot)
    assert read_checkpoint(disk, "d") == (4, Checkpoint(1, 2, Point(30, 40, 50), 45, copied=True))


def test_the_purged_offset_rises_durably_and_never_falls() -> None:
    disk = MemoryDisk()
    file = saved(disk, 3)
    file.save_purged(20)
    file.save_purged(10)
    for found in (read_checkpoint(disk.crash(all_lost), "d"), read_checkpoint(disk, "d")):
        assert found is not None
        assert found[1].purged_offset == 20
    file.save_point(Point(7, 8, 9), 5)
    file.save_offsets(1, 1)
    found = read_checkpoint(disk, "d")
    assert found is not None
    assert found[1] == Checkpoint(1, 1, Point(7, 8, 9), 5, purged_offset=20)
