"""Damage costs what it hit: what lies behind it is found again."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from postroad.errors import CorruptMessage
from postroad.log.memory_disk import MemoryDisk, MemoryFile
from postroad.log.partition_log import PartitionLog
from postroad.log.settings import LogSettings
from postroad.wire.batch import walk

from .logs import DIRECTORY, SMALL, batch, filled, open_log, send, stored, sync

BATCHES = 12


def offsets_around_damage(log: PartitionLog) -> list[int]:
    """Base offsets of all that can be read by one who passes over damage."""
    found: list[int] = []
    offset = log.start_offset
    while offset < log.written_offset:
        try:
            read = log.read(offset, 500, log.written_offset)
        except CorruptMessage:
            search = log.damage_at(offset)
            search.run()
            offset = log.pass_over(search)
            continue
        assert read is not None
        try:
            log.verify(read)
        except CorruptMessage:
            continue
        content = memoryview(read.file.read(read.position, read.length))
        headers = [header for _, header in walk(content)]
        found += [header.base_offset for header in headers]
        offset = headers[-1].next_offset
    return found


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("length", [1, 4, 30])
def test_all_but_the_damaged_batch_can_be_read(length: int, has_index: bool) -> None:
    chance = random.Random(length)
    whole = MemoryDisk()
    filled(whole, BATCHES, SMALL).close()
    expected = [entry.offset for entry in stored(open_log(whole.copy()))]
    names = [name for name in whole.list(DIRECTORY) if name.endswith(".log")]
    for _ in range(150):
        disk = whole.copy()
        path = f"{DIRECTORY}/{chance.choice(names[:-1])}"
        content = bytearray(disk.content(path))
        at, header = chance.choice(list(walk(memoryview(bytes(content)))))
        first = at + chance.randrange(8, header.size - length + 1)
        for byte in range(first, first + length):
            content[byte] ^= 1 << chance.randrange(8)
        disk.damage(path, bytes(content))
        if not has_index:
            disk.remove(path.removesuffix(".log") + ".index")
        found = offsets_around_damage(open_log(disk, clean=True))
        assert found in (expected, [o for o in expected if o != header.base_offset]), (path, first)


def test_flipped_length_that_leads_to_the_end_of_a_segment_hides_no_batch() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    size = next(size for size in range(200) if len(batch(size=size)) == 128)
    send(log, batch(size=size - 32), batch(size=size))  # 128 more bytes lead exactly to the end
    sync(log)
    log.roll()
    send(log, batch())
    sync(log)
    log.close()
    path = f"{DIRECTORY}/{0:020d}.log"
    content = bytearray(disk.content(path))
    assert content[11] & 128 == 0
    content[11] |= 128
    disk.damage(path, bytes(content))
    assert offsets_around_damage(open_log(disk, clean=True)) == [1, 2]


class CountingDisk(MemoryDisk):
    """It knows how many bytes were read."""

    read_bytes = 0

    def open(self, path: str, create: bool = False) -> MemoryFile:
        file = super().open(path, create)
        read = file.read

        def counted(position: int, length: int) -> bytes:
            found = read(position, length)
            self.read_bytes += len(found)
            return found

        file.read = counted  # type: ignore[method-assign]
        return file


@pytest.mark.parametrize("byte", [8, 9, 10])
def test_who_asks_again_for_a_damaged_batch_does_not_have_all_searched_again(byte: int) -> None:
    disk = CountingDisk()
    log = open_log(disk, LogSettings(segment_bytes=1 << 25))
    for _ in range(20):
        send(log, batch(size=1_000_000))
    sync(log)
    log.roll()
    sync(log)
    log.close()
    path = f"{DIRECTORY}/{0:020d}.log"
    content = bytearray(disk.content(path))
    content[byte] ^= 1
    disk.damage(path, bytes(content))
    log = open_log(disk, clean=True)
    found = log.read(0, 1, log.written_offset)
    assert found is not None
    with pytest.raises(CorruptMessage):
        log.verify(found)
    costs = []
    for _ in range(2):
        before = disk.read_bytes
        with pytest.raises(CorruptMessage):
            log.read(0, 1, log.written_offset)
        costs.append(disk.read_bytes - before)
    assert costs[0] < 5_000_000, "not each possible length from the beginning"
    assert costs[1] < 100_000


@pytest.mark.parametrize("has_index", [True, False])
def test_who_asks_for_the_batch_behind_a_flipped_length_gets_it(has_index: bool) -> None:
    whole = MemoryDisk()
    filled(whole, BATCHES, SMALL).close()
    path = next(f"{DIRECTORY}/{name}" for name in whole.list(DIRECTORY) if name.endswith(".log"))
    batches = list(walk(memoryview(whole.content(path))))
    for (at, _), (_, following) in pairwise(batches):
        for bit in range(8):
            disk = whole.copy()
            content = bytearray(disk.content(path))
            content[at + 11] ^= 1 << bit
            disk.damage(path, bytes(content))
            if not has_index:
                disk.remove(path.replace(".log", ".index"))
            found = open_log(disk, clean=True).read(following.base_offset, 1, following.next_offset)
            assert found is not None
            assert found.file.read(found.position, 8) == following.base_offset.to_bytes(8)
