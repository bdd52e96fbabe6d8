"""Damage costs what it hit: what lies behind it is found again."""

from __future__ import annotations

import random

import pytest

from postroad.errors import CorruptMessage
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.wire.batch import walk

from .logs import DIRECTORY, SMALL, filled, open_log, stored

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
