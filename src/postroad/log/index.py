"""The sparse index of a segment: where to start looking for an offset, a position or a time.

File `<base offset, 20 digits>.index`, entries of 32 bytes, big endian:

    int64 offset      of a batch in the segment
    int64 position    where that batch begins; above 0 (the segment's first batch needs no entry)
    int64 time        the largest max timestamp of all batches before it in the segment
    int64 check       the CRC-32 of the three, begun with a constant

There is an entry about every `index.interval.bytes`. When a segment or the log is closed there comes
one more, the seal: end offset, size and largest timestamp, the entry of a batch yet to come.
Valid is the longest prefix in which checks hold, offsets and positions rise and times do not fall.

Crash. The index is a hint and never synced. 32 divides a sector, so an entry is there or not; what a
power cut left of a sector that was not written (zeros) fails the check. A look-up sees that the batch it
leads to has the entry's offset, and forgets the entry if it has not; what is missing at the end is
found by walking the segment. So a lost, cut or altered index costs time, never an answer.
Offset and time are one file because they are written together and so can't disagree.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from operator import le, lt
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from postroad.log.disk import Disk

ENTRY_BYTES: Final = 32
FLUSH_ENTRIES: Final = 64  # one small write for about each 256 KiB of messages

_FIELDS: Final = 4
_THREE: Final = Struct(">qqq")
_ENTRY: Final = Struct(">24sq")
_BEGIN: Final = 0x706F7374
_OLD_CHECK: Final = 0x706F7374726F6164
_THIN_FROM: Final = 1024  # a cold segment's index is thinned to hold some 0.4 MB for each GiB
_THIN_STEP: Final = 16


class IndexEntry(NamedTuple):
    offset: int
    position: int
    time: int


class SparseIndex:
    """In memory, in three arrays so that they can be bisected. Entries are added in order."""

    __slots__ = ("_saved", "_stale", "base_offset", "forgotten", "offsets", "path", "positions", "times")

    def __init__(self, path: str, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self.offsets = array("q")
        self.positions = array("q")
        self.times = array("q")
        self.forgotten = 0  # entries that turned out to be wrong
        self._saved = 0  # entries that are in the file
        self._stale = False  # whether the file may hold more than those

    def add(self, offset: int, position: int, time: int) -> None:
        if self.positions and position <= self.positions[-1]:
            return  # a seal, and then the batch that came after it
        self.offsets.append(offset)
        self.positions.append(position)
        self.times.append(time)

    def insert(self, offset: int, position: int, largest_time: int) -> bool:
        """Between others, for a batch that can't be reached from the one before it.

        The time before it is not known; one that is too large costs those who look for a time some walking.
        `largest_time` is the segment's. Returns False if it does not fit between them.
        """
        before = self.before_position(position)
        i = bisect_left(self.positions, position)
        follows = i == len(self.positions) or (self.positions[i] > position and self.offsets[i] > offset)
        if before.offset >= offset or not follows:
            return False
        self.offsets.insert(i, offset)
        self.positions.insert(i, position)
        self.times.insert(i, self.times[i] if i < len(self.times) else largest_time)
        self._saved, self._stale = 0, True
        return True

    def last(self) -> IndexEntry:
        return self._entry(len(self.offsets))

    def before_offset(self, offset: int) -> IndexEntry:
        """The last entry at or below the offset; the segment's beginning if there is none."""
        return self._entry(bisect_right(self.offsets, offset))

    def before_position(self, position: int) -> IndexEntry:
        return self._entry(bisect_right(self.positions, position))

    def after_position(self, position: int) -> int | None:
        """The position of the first entry above this one."""
        i = bisect_right(self.positions, position)
        return self.positions[i] if i < len(self.positions) else None

    def before_time(self, time: int) -> IndexEntry:
        """An entry before which every batch is older than `time`."""
        return self._entry(bisect_left(self.times, time))

    def truncate(self, position: int) -> None:
        """Forget entries at or above the position; the file is written anew with the next save."""
        self._keep(bisect_left(self.positions, position))

    def forget(self, entry: IndexEntry) -> None:
        """Take out an entry that leads to no batch of its offset."""
        i = bisect_left(self.positions, entry.position)
        del self.offsets[i], self.positions[i], self.times[i]
        self.forgotten += 1
        self._saved, self._stale = 0, True

    def clear(self) -> None:
        self.forgotten = 0
        self._keep(0)

    @property
    def is_stale(self) -> bool:
        """Whether the file holds something that is not in order."""
        return self._stale

    def unsaved(self) -> int:
        return len(self.offsets) - self._saved

    def save(self, disk: Disk) -> None:
        """Append what the file lacks. Raises OSError; the index stays usable, its file has a gap."""
        entries = self._encode(self._saved)
        if not entries and not self._stale:
            return
        file = disk.open(self.path, create=True)
        try:
            if file.size() != self._saved * ENTRY_BYTES:
                file.truncate(self._saved * ENTRY_BYTES)
            file.append([entries])
            self._saved, self._stale = len(self.offsets), False
        finally:
            file.close()

    def replace(self, disk: Disk) -> None:
        """The file holds exactly these entries, durably. Raises OSError."""
        disk.replace(self.path, self._encode(0))
        self._saved, self._stale = len(self.offsets), False

    def _encode(self, first: int) -> bytes:
        entries = bytearray()
        for i in range(first, len(self.offsets)):
            fields = _THREE.pack(self.offsets[i], self.positions[i], self.times[i])
            entries += _ENTRY.pack(fields, crc32(fields, _BEGIN))
        return bytes(entries)

    def load(self, disk: Disk, thin: bool) -> None:
        """Read the file's valid part; thinned, the index can be searched but no longer saved."""
        content = _read(disk, self.path)
        count = len(content) // ENTRY_BYTES
        first, step = 0, 1
        if thin and count > _THIN_FROM:
            first, step = (count - 1) % _THIN_STEP, _THIN_STEP  # so that the last entry, the seal, stays
        whole = content[: count * ENTRY_BYTES]
        entries = array("q", whole)
        _to_big_endian(entries)
        columns = [entries[field::_FIELDS][first::step] for field in range(_FIELDS - 1)]
        self.offsets, self.positions, self.times = columns
        self._saved, self._stale = len(self.offsets), len(content) != len(whole)
        self._keep(self._valid_entries(islice(_ENTRY.iter_unpack(whole), first, None, step)))

    def _entry(self, count: int) -> IndexEntry:
        if count == 0:
            return IndexEntry(self.base_offset, 0, -1)
        return IndexEntry(self.offsets[count - 1], self.positions[count - 1], self.times[count - 1])

    def _valid_entries(self, entries: Iterable[tuple[bytes, int]]) -> int:
        """How many from the beginning hold; comparing runs in C."""
        offsets, positions, times = self.offsets, self.positions, self.times
        if not offsets or offsets[0] <= self.base_offset or positions[0] <= 0:
            return 0
        rising = _first_false(list(map(lt, offsets, offsets[1:])))
        advancing = _first_false(list(map(lt, positions, positions[1:])))
        steady = _first_false(list(map(le, times, times[1:])))
        return min(_checked(entries), rising + 1, advancing + 1, steady + 1)

    def _keep(self, count: int) -> None:
        del self.offsets[count:], self.positions[count:], self.times[count:]
        if self._saved > count:
            self._saved, self._stale = count, True


def read_seal(disk: Disk, path: str) -> IndexEntry | None:
    """The last entry in the file: the seal, if its position is the segment's size."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        whole = file.size() // ENTRY_BYTES * ENTRY_BYTES
        if whole == 0 or whole != file.size():
            return None
        fields, check = _ENTRY.unpack(file.read(whole - ENTRY_BYTES, ENTRY_BYTES))
    finally:
        file.close()
    return IndexEntry(*_THREE.unpack(fields)) if _holds(fields, check) else None


def _checked(entries: Iterable[tuple[bytes, int]]) -> int:
    """How many entries from the beginning, each with its check, are as they were written."""
    held = 0
    for fields, check in entries:
        if crc32(fields, _BEGIN) != check and not _holds(fields, check):
            break
        held += 1
    return held


def _holds(fields: bytes, check: int) -> bool:
    offset, position, time = _THREE.unpack(fields)
    return crc32(fields, _BEGIN) == check or offset ^ position ^ time ^ check == _OLD_CHECK


def _read(disk: Disk, path: str) -> bytes:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return b""
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _first_false(flags: list[bool]) -> int:
    try:
        return flags.index(False)
    except ValueError:
        return len(flags)


def _to_big_endian(numbers: array[int]) -> None:
    if sys.byteorder == "little":
        numbers.byteswap()
