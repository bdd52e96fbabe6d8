"""The index of a segment is a hint: whatever became of its file, what is taken of it is as it was written."""

from __future__ import annotations

from itertools import combinations
from struct import pack

from postroad.log.index import ENTRY_BYTES, IndexEntry, SparseIndex, read_seal
from postroad.log.memory_disk import MemoryDisk

PATH = "/log/00000000000000000013.index"
ENTRIES = [IndexEntry(21, 1029, 1_700_001_011_167), IndexEntry(34, 2105, 1_700_001_012_003)]
FIELD_BITS = 64


def written() -> bytes:
    disk, index = MemoryDisk(), SparseIndex(PATH, 13)
    for entry in ENTRIES:
        index.add(*entry)
    index.replace(disk)
    file = disk.open(PATH)
    return bytes(file.read(0, file.size()))


def entries_of(content: bytes) -> list[IndexEntry]:
    disk, index = MemoryDisk(), SparseIndex(PATH, 13)
    disk.replace(PATH, content)
    index.load(disk, thin=False)
    return [IndexEntry(*entry) for entry in zip(index.offsets, index.positions, index.times, strict=True)]


def flipped(content: bytes, *bits: int) -> bytes:
    changed = bytearray(content)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_what_is_saved_is_loaded_and_its_last_entry_is_the_seal() -> None:
    assert entries_of(written()) == ENTRIES
    disk = MemoryDisk()
    disk.replace(PATH, written())
    assert read_seal(disk, PATH) == ENTRIES[-1]


def test_one_wrong_bit_is_seen() -> None:
    for bit in range(ENTRY_BYTES * 8):
        assert entries_of(flipped(written(), bit)) == []


def test_two_wrong_bits_at_the_same_place_of_two_fields_are_seen() -> None:
    for bit in range(FIELD_BITS):
        for one, other in combinations(range(4), 2):
            bits = one * FIELD_BITS + bit, other * FIELD_BITS + bit
            assert entries_of(flipped(written(), *bits)) == []
            last = [ENTRY_BYTES * 8 + each for each in bits]
            assert entries_of(flipped(written(), *last)) == ENTRIES[:1]
            disk = MemoryDisk()
            disk.replace(PATH, flipped(written(), *last))
            assert read_seal(disk, PATH) is None


def test_entries_of_older_versions_are_taken() -> None:
    check = 0x706F7374726F6164
    old = b"".join(pack(">4q", *entry, entry[0] ^ entry[1] ^ entry[2] ^ check) for entry in ENTRIES)
    assert entries_of(old) == ENTRIES
    assert entries_of(flipped(old, 70)) == []


def test_what_was_never_written_is_no_entry() -> None:
    assert entries_of(written() + bytes(ENTRY_BYTES)) == ENTRIES
    assert entries_of(bytes(2 * ENTRY_BYTES)) == []
