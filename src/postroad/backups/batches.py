"""Record batches of a log on their way into a backup and out of it: cut whole, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from postroad.errors import CorruptMessage, UnsupportedForMessageFormat
from postroad.wire import batch as batches
from postroad.wire.batch import HEADER, HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader

EMPTY_LENGTH: Final = HEADER_BYTES - LENGTH_END


class Cut(NamedTuple):
    """The batches of an answer that belong to a log's copy."""

    bytes: int
    first: int
    next: int
    last_epoch: int


def cut(records: memoryview, offset: int, end: int) -> Cut | None:
    """The whole batches from the one that holds `offset` on, up to `end`, where a batch ends; None: none.

    Raises ValueError if one is damaged or out of place.
    """
    size, first, last, epoch = 0, -1, offset, -1
    for position, header in batches.walk(records):
        if header.base_offset >= end:
            break
        _check(records, position, header, last if first >= 0 else -1, epoch)
        if header.next_offset <= offset:
            raise ValueError(
                f"a batch ends at {header.next_offset}, before the offset {offset} that was asked for"
            )
        if header.next_offset > end:
            raise ValueError(f"a batch reaches over the end, {end}, from {header.base_offset}")
        first = header.base_offset if first < 0 else first
        size, last, epoch = position + header.size, header.next_offset, header.leader_epoch
    return None if first < 0 else Cut(size, first, last, epoch)


def pieces(content: memoryview, first: int, next_offset: int, bytes_max: int) -> Iterator[memoryview]:
    """A part's batches, in pieces of about so many bytes.

    Raises ValueError if they are damaged, out of place, or not exactly those from `first` to `next_offset`.
    """
    begin, at, last, epoch = 0, 0, -1, -1
    for position, header in batches.walk(content):
        _check(content, position, header, last, epoch)
        if last < 0 and header.base_offset != first:
            raise ValueError(f"it begins at offset {header.base_offset}, not at {first}")
        at, last, epoch = position + header.size, header.next_offset, header.leader_epoch
        if at - begin >= bytes_max:
            yield content[begin:at]
            begin = at
    if at != len(content):
        raise ValueError(f"{len(content) - at} bytes at its end are no batch")
    if last != next_offset:
        raise ValueError(f"it ends at offset {last}, not at {next_offset}")
    if at > begin:
        yield content[begin:at]


def _check(records: memoryview, position: int, header: BatchHeader, last: int, epoch: int) -> None:
    try:
        batches.check(records, header, position)
    except (CorruptMessage, UnsupportedForMessageFormat) as error:
        raise ValueError(f"the batch at offset {header.base_offset} is damaged: {error}") from None
    if header.base_offset < last:
        raise ValueError(f"the batch at offset {header.base_offset} lies behind offset {last}")
    if header.leader_epoch < epoch:
        raise ValueError(f"the leader epoch falls from {epoch} to {header.leader_epoch}")


def filler(base: int, end: int, leader_epoch: int) -> bytes:
    """A batch without records from `base` to `end`, as compaction leaves them: the log goes on at `end`."""
    fields = (base, EMPTY_LENGTH, leader_epoch, MAGIC, 0, 0, end - base - 1, 0, 0, -1, -1, -1, 0)
    made = bytearray(HEADER.pack(*fields))
    batches.stamp_crc(made)
    return bytes(made)
