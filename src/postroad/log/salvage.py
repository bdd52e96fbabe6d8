"""Finding the next whole batch behind a damaged one, so that damage costs what it hit and no more.

A damaged batch mostly still tells where it ends. Where its length is what was damaged, its CRC knows the
right one if a single bit was flipped. Otherwise the bytes behind it are searched for a batch that holds; what
lies between is lost with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from postroad.log.disk import File
from postroad.log.order import in_order
from postroad.log.scan import DamagedBatch, crc_in_pieces, scan, walk_unordered
from postroad.wire.batch import CRC_START, HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader, read_header

BATCH_BYTES_MAX: Final = 16 << 20  # some 10 ms to check; the end of a larger one is searched for

_SEARCH_BYTES: Final = 1 << 16
_MAGIC_AT: Final = 16  # where a batch has its format's number
_MAGIC: Final = bytes([MAGIC])
_LENGTH_BITS: Final = 31


def first_whole(
    file: File, position: int, end: int, floor: int, ceiling: int
) -> tuple[int, BatchHeader] | None:
    """The first batch that holds behind the damaged one at `position`; None if there is none up to `end`.

    Its offsets lie from `floor` to `ceiling`. Raises OSError.
    """
    if end - position < HEADER_BYTES:
        return None
    may_be_last = False
    for at in _likely_ends(file, position, end):
        may_be_last = may_be_last or at == end
        found = None if at == end else _whole_at(file, at, end, floor, ceiling)
        if found is not None:
            return at, found
    return None if may_be_last else _search(file, position + 1, end, floor, ceiling)


def walk_over_damage(
    file: File, position: int, end: int, floor: int, ceiling: int
) -> Iterator[tuple[int, int, BatchHeader | None]]:
    """(position, size, header) of everything in a segment; the header is None where bytes are damaged, or the
    offsets of a batch can't be right."""
    while position < end:
        try:
            for at, header, right in in_order(walk_unordered(file, position, end), floor, ceiling):
                yield at, header.size, header if right else None
                position, floor = at + header.size, header.next_offset if right else floor
        except DamagedBatch as damage:
            following = first_whole(file, damage.position, end, floor, ceiling)
            position = end if following is None else following[0]
            yield damage.position, position - damage.position, None


def is_whole(file: File, position: int, end: int) -> bool:
    """Whether these bytes are one batch that holds. Raises OSError."""
    header = read_header(file.read(position, HEADER_BYTES))
    return crc_in_pieces(file, position + CRC_START, end) == header.crc


def _likely_ends(file: File, position: int, end: int) -> Iterator[int]:
    """Where the damaged batch may end: as it says, or as it said before a bit of its length was flipped."""
    header = read_header(file.read(position, HEADER_BYTES))
    if HEADER_BYTES <= header.size <= end - position:
        yield position + header.size
    sizes = sorted((header.length ^ 1 << bit) + LENGTH_END for bit in range(_LENGTH_BITS))
    checked, crc = position + CRC_START, None
    for size in sizes:  # the CRC of one is the beginning of the next one's
        if HEADER_BYTES <= size <= min(end - position, BATCH_BYTES_MAX):
            crc = crc_in_pieces(file, checked, position + size, crc)
            checked = position + size
            if crc == header.crc:
                yield checked


def _whole_at(file: File, position: int, end: int, floor: int, ceiling: int) -> BatchHeader | None:
    try:
        return next(scan(file, position, end, floor, ceiling))[1]
    except DamagedBatch:
        return None


def _search(file: File, position: int, end: int, floor: int, ceiling: int) -> tuple[int, BatchHeader] | None:
    while position + HEADER_BYTES <= end:
        window = file.read(position, min(_SEARCH_BYTES + HEADER_BYTES, end - position))
        at = window.find(_MAGIC, _MAGIC_AT)
        while 0 <= at - _MAGIC_AT <= len(window) - HEADER_BYTES:
            start = at - _MAGIC_AT
            if floor <= read_header(window, start).base_offset < ceiling:
                found = _whole_at(file, position + start, end, floor, ceiling)
                if found is not None:
                    return position + start, found
            at = window.find(_MAGIC, at + 1)
        position += _SEARCH_BYTES
    return None
