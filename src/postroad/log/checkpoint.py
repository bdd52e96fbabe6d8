"""The checkpoint of a log: how far its bytes are known to be on the disk, and where it starts.

File `checkpoint`: two slots, at byte 0 and at byte 512 (two sectors), written in turn, big endian:

    4s    magic "PRc3"
    u64   sequence          rises by one with each write
    i64   start offset      records below it are deleted
    i64   cleaned offset    compaction has seen everything below it
    i64   segment           base offset of the segment that the recovery point lies in
    i64   position          of the recovery point in that segment
    i64   offset            of the recovery point: every batch below it is on the disk
    i64   watermark         what was committed when the slot was written, a hint; -1 if unknown
    i64   purged offset     tombstones and transaction markers below it may have been dropped
    u32   flags             bit 0: copied from a leader, so that offsets may have gaps anywhere;
                            bit 1: everything in the directory is to go, the log begins at the point
    u32   CRC32C of the slot before this field

A slot of the magic "PRc2" has no purged offset, one of the magic "PRck" neither watermark nor flags besides.

Valid is the slot whose magic and CRC hold; of two the one with the higher sequence.

Crash. A slot is written after the sync that it tells of, so it may lag but never lie. A torn write
spoils one slot and leaves the one before. With neither, recovery begins at the newest segment's
first byte. The point falls only when a log is truncated: then it is synced before any byte is cut.
The flag is synced before the first batch is copied: recovery would take a gap for damage. The purged offset
rises, durably, before compaction puts a file in place that lacks a tombstone.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from postroad.log.disk import Disk, File
from postroad.wire.batch import crc32c

FILE_NAME: Final = "checkpoint"

UNKNOWN: Final = -1

_MAGIC: Final = b"PRc3"
_SECOND_MAGIC: Final = b"PRc2"
_FIRST_MAGIC: Final = b"PRck"
_SLOT: Final = struct.Struct(">4sQqqqqqqqI")
_SECOND_SLOT: Final = struct.Struct(">4sQqqqqqqI")
_FIRST_SLOT: Final = struct.Struct(">4sQqqqqq")
_COPIED: Final = 1
_RESETTING: Final = 2
_CRC: Final = struct.Struct(">I")
_SLOT_BYTES: Final = _SLOT.size + _CRC.size
_SLOT_STRIDE: Final = 512


class Point(NamedTuple):
    """Every batch below `offset` is on the disk; it would begin at `position` of that segment."""

    segment: int
    position: int
    offset: int


class Checkpoint(NamedTuple):
    start_offset: int
    cleaned_offset: int
    point: Point
    watermark: int = UNKNOWN
    copied: bool = False  # from a leader: offsets may have gaps
    resetting: bool = False  # whatever lies in the directory is to be removed
    purged_offset: int = 0  # tombstones and markers below it may be gone, and with them what they ended


class CheckpointFile:
    """Written by the loop and by sync jobs in threads, hence the lock. No sync is waited for under it, but
    for that of a truncation: a slow disk would hold up the loop.

    When a log is truncated it gets a new one, and this one is `retired`: a sync that was begun before can
    no longer tell its point. It holds `telling` while it tells that and what belongs to it.
    """

    def __init__(self, disk: Disk, directory: str, sequence: int, current: Checkpoint) -> None:
        self._disk = disk
        self._path = f"{directory}/{FILE_NAME}"
        self._file: File | None = None  # open since the first save: there is one after each sync
        self._lock = disk.mutex()
        self.telling = disk.mutex()
        self._sequence = sequence
        self.current = current
        self.retired = False

    def save_point(self, point: Point, watermark: int) -> None:
        """After a sync. Raises OSError."""
        with self._lock:
            if not self.retired:
                self._save(self.current._replace(point=point, watermark=watermark), sync=False)

    def mark_copied(self) -> None:
        """Gaps are allowed from here on, durably. Once in a log's life. Raises OSError."""
        with self._lock:
            before = self.current
            try:
                self._save(before._replace(copied=True), sync=True)
            except OSError:
                self.current = before
                raise

    def save_offsets(self, start_offset: int, cleaned_offset: int) -> None:
        """It survives a kill; with the next `sync` a power cut, too. Raises OSError."""
        with self._lock:
            if not self.retired:
                changed = self.current._replace(start_offset=start_offset, cleaned_offset=cleaned_offset)
                self._save(changed, sync=False)

    def save_purged(self, purged_offset: int) -> None:
        """Before tombstones below the offset go: it survives a power cut when the call returns.

        Raises OSError.
        """
        with self._lock:
            if self.retired or purged_offset <= self.current.purged_offset:
                return
            self._save(self.current._replace(purged_offset=purged_offset), sync=False)
        self.sync()

    def retire(self, last: Checkpoint) -> None:
        """Before a truncation: this is durable when the call returns, and nothing is saved after it."""
        with self.telling, self._lock:
            self._save(last, sync=True)
            self.retired = True
            self._file = None

    def sync(self) -> None:
        """What was saved before survives a power cut from here on. More may be saved meanwhile."""
        with self._lock:
            if self.retired:
                return
            self._save(self.current, sync=False)
            file = self._file
        if file is None:  # it was made anew, durably
            return
        try:
            file.sync()
        except OSError:
            with self._lock:
                if self._file is file:
                    self._file = None
            raise

    def release(self) -> None:
        """Let the descriptor go; it comes back on demand."""
        with self._lock:
            self._file = None

    def _save(self, checkpoint: Checkpoint, sync: bool) -> None:
        self.current = checkpoint
        sequence = self._sequence + 1
        try:
            file = self._file or self._disk.open(self._path)
        except FileNotFoundError:
            self._create(checkpoint)
            return
        self._file = None  # unless all goes well
        file.write(sequence % 2 * _SLOT_STRIDE, _encode(sequence, checkpoint))
        self._sequence = sequence  # a write that failed is repeated in the slot that it spoilt
        if sync:
            file.sync()
        self._file = file

    def _create(self, checkpoint: Checkpoint) -> None:
        """Both slots have their room from the beginning, so that writing never needs more."""
        slot = _encode(self._sequence, checkpoint)
        self._disk.replace(self._path, slot.ljust(_SLOT_STRIDE, b"\0") + slot)


def read_checkpoint(disk: Disk, directory: str) -> tuple[int, Checkpoint] | None:
    """The newest valid slot and its sequence, or None."""
    try:
        file = disk.open(f"{directory}/{FILE_NAME}")
    except FileNotFoundError:
        return None
    try:
        content = file.read(0, _SLOT_STRIDE + _SLOT_BYTES)
    finally:
        file.close()
    slots = [_decode(content[start : start + _SLOT_BYTES]) for start in (0, _SLOT_STRIDE)]
    return max((slot for slot in slots if slot is not None), default=None)


def _encode(sequence: int, checkpoint: Checkpoint) -> bytes:
    start_offset, cleaned_offset, point, watermark, copied, resetting, purged = checkpoint
    flags = (_COPIED if copied else 0) | (_RESETTING if resetting else 0)
    slot = _SLOT.pack(_MAGIC, sequence, start_offset, cleaned_offset, *point, watermark, purged, flags)
    return slot + _CRC.pack(crc32c(slot))


def _decode(slot: bytes) -> tuple[int, Checkpoint] | None:
    if slot[:4] == _FIRST_MAGIC and _holds(slot, _FIRST_SLOT):
        _, sequence, start_offset, cleaned_offset, *point = _FIRST_SLOT.unpack_from(slot)
        return sequence, Checkpoint(start_offset, cleaned_offset, Point(*point))
    if slot[:4] == _SECOND_MAGIC and _holds(slot, _SECOND_SLOT):
        _, sequence, start_offset, cleaned_offset, *point, watermark, flags = _SECOND_SLOT.unpack_from(slot)
        purged = 0
    elif slot[:4] == _MAGIC and _holds(slot, _SLOT):
        _, sequence, start_offset, cleaned_offset, *point, watermark, purged, flags = _SLOT.unpack_from(slot)
    else:
        return None
    copied, resetting = bool(flags & _COPIED), bool(flags & _RESETTING)
    known = Checkpoint(start_offset, cleaned_offset, Point(*point), watermark, copied, resetting, purged)
    return sequence, known


def _holds(slot: bytes, layout: struct.Struct) -> bool:
    end = layout.size + _CRC.size
    return len(slot) >= end and _CRC.unpack(slot[layout.size : end])[0] == crc32c(slot[: layout.size])
