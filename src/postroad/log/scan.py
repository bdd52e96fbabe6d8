"""Walking the batches of a segment file, with or without checking their CRC.

One loop serves recovery, index rebuilding, look-ups, verification, compaction and the offline tools.
It is tight because recovery is bound by it: some 2 µs a batch with the CRC, so 1 GiB of
1 KB batches takes a few seconds. No length found in a file is trusted with memory: a batch larger
than a chunk is checked piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.errors import CorruptMessage
from postroad.log.disk import File
from postroad.wire.batch import CRC_START, HEADER, HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader, crc32c

CHUNK_BYTES_MIN: Final = 8 << 10  # a look-up ends within one or two of these
CHUNK_BYTES_MAX: Final = 1 << 20
OFFSET_MAX: Final = (1 << 63) - 1


class DamagedBatch(CorruptMessage):
    """The batch at `position` can't be one: cut, torn, or altered since it was written."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"The batch at byte {position} of its segment {reason}.")
        self.position = position
        self.reason = reason


def walk(
    file: File, position: int, end: int, floor: int = 0, ceiling: int = OFFSET_MAX
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position` to `end`; lengths and offsets are checked.

    Offsets rise from `floor` and stay below `ceiling`.
    Raises DamagedBatch at the first batch that is none; those before it were yielded.
    """
    return _batches(file, position, end, floor, ceiling, CHUNK_BYTES_MIN, False)


def walk_unordered(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `walk`, whatever offsets the batches claim (see `order`)."""
    return _batches(file, position, end, 0, OFFSET_MAX, CHUNK_BYTES_MIN, False, ordered=False)


def scan_unordered(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """As `scan`, whatever offsets the batches claim (see `order`)."""
    return _batches(file, position, end, 0, OFFSET_MAX, CHUNK_BYTES_MAX, True, ordered=False)


def scan(
    file: File, position: int, end: int, floor: int = 0, ceiling: int = OFFSET_MAX
) -> Iterator[tuple[int, BatchHeader]]:
    """As `walk`, and each batch's CRC holds."""
    return _batches(file, position, end, floor, ceiling, CHUNK_BYTES_MAX, True)


def _batches(
    file: File,
    position: int,
    end: int,
    floor: int,
    ceiling: int,
    chunk_bytes: int,
    checked: bool,
    ordered: bool = True,
) -> Iterator[tuple[int, BatchHeader]]:
    unpack, make = HEADER.unpack_from, BatchHeader._make
    chunk, start, available = memoryview(b""), position, 0
    while position < end:
        at = position - start
        if at + HEADER_BYTES > available:
            chunk, start, at = memoryview(file.read(position, min(chunk_bytes, end - position))), position, 0
            available = len(chunk)
            chunk_bytes = min(2 * chunk_bytes, CHUNK_BYTES_MAX)
            if available < HEADER_BYTES:
                raise DamagedBatch(position, "is cut within its header")
        fields = unpack(chunk, at)
        base, length, _, magic, crc, _, delta, _, _, _, _, _, count = fields
        size = length + LENGTH_END
        if magic != MAGIC or delta < 0 or count < 0 or size < HEADER_BYTES or position + size > end:
            raise DamagedBatch(position, "has no batch's header, or a length that does not fit")
        if ordered and not floor <= base < ceiling - delta:
            raise DamagedBatch(position, f"claims offset {base}, which does not belong there")
        if checked:
            if at + size > available:
                chunk, start, at = (
                    memoryview(file.read(position, min(chunk_bytes, end - position))),
                    position,
                    0,
                )
                available = len(chunk)
            if size <= available:
                found = crc32c(chunk[at + CRC_START : at + size])
            else:
                found = crc_in_pieces(file, position + CRC_START, position + size)
            if found != crc:
                raise DamagedBatch(position, "does not match its CRC")
        yield position, make(fields)
        floor = base + delta + 1
        position += size


def crc_in_pieces(file: File, position: int, end: int, crc: int | None = None) -> int:
    """The CRC of these bytes, or of what `crc` is of and these bytes after it."""
    while position < end:
        piece = file.read(position, min(CHUNK_BYTES_MAX, end - position))
        if not piece:
            break
        crc = crc32c(piece) if crc is None else crc32c(piece, crc)
        position += len(piece)
    return crc or 0
