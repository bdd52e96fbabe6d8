"""The transactions that were aborted in a segment: what read_committed consumers must leave out.

File `<base offset, 20 digits>.aborted` beside the segment in which their markers lie, big endian, replaced as
a whole:

    4s    magic "PRab"
    u32   number of entries
    then for each, in the order of the markers:
      i64 producer id
      i64 first offset    of the transaction in this partition
      i64 marker          the offset of its abort marker
      i64 stable offset   when the marker was appended: no transaction that ends later begins before it
    u32   CRC32C of all before it

Valid if magic, size and CRC hold. Entries whose marker does not lie in the segment don't count: a file that
compaction has written for several segments may be there before they are merged. No file: nothing was aborted.
A file that is not valid is made anew from the segment's markers, which name where their transactions began.

Crash. A list grows in memory while its segment is the newest. It is written, durably, before the snapshot of
producers that lies behind its last marker (`sync`), so whichever snapshot is found, all entries with markers
below it are in the files, and those above it are found again by the replay that follows (`replay`).

B1 entries rise by their marker; each producer's do not overlap.
B2 an entry is true for as long as the log has the offset of its marker. One too many takes nothing away from
   a consumer; one too few shows it what was aborted (L4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from postroad.log.checked_file import read_checked, with_checksum
from postroad.log.disk import Disk

ABORTED_SUFFIX: Final = ".aborted"

_MAGIC: Final = b"PRab"
_HEAD: Final = struct.Struct(">4sI")
_ENTRY: Final = struct.Struct(">qqqq")


class AbortedTransaction(NamedTuple):
    """Batches of the producer from `first` to `marker` were aborted."""

    producer_id: int
    first: int
    marker: int
    stable_offset: int  # when the marker was appended


def aborted_path(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}{ABORTED_SUFFIX}"


def encode_aborted(entries: Iterable[AbortedTransaction]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    return with_checksum(_HEAD.pack(_MAGIC, len(packed)) + b"".join(packed))


def read_aborted(disk: Disk, path: str) -> list[AbortedTransaction] | None:
    """The entries; None if the file is missing or not valid. Raises OSError."""
    body = read_checked(disk, path)
    if body is None or len(body) < _HEAD.size:
        return None
    magic, count = _HEAD.unpack_from(body)
    if magic != _MAGIC or len(body) != _HEAD.size + count * _ENTRY.size:
        return None
    return [AbortedTransaction._make(fields) for fields in _ENTRY.iter_unpack(body[_HEAD.size :])]
