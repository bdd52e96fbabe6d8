"""A partition's part of a Fetch answer in which transactions were aborted, up to its records: it is rare."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from postroad.wire.framing import write_uvarint

_HEAD: Final = Struct(">ihqq")  # index, error, high watermark, stable
_ENTRY: Final = Struct(">qq")  # producer id, first offset
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")


def numbers_with_aborted(
    version: int,
    index: int,
    error: int,
    high: int,
    stable: int,
    start: int,
    size: int,
    preferred: int,
    aborted: Sequence[tuple[int, int]],
    *,
    flexible: bool,
) -> bytes:
    """What stands before the partition's records, their size included."""
    head = bytearray(_HEAD.pack(index, error, high, stable))
    if version >= 5:
        head += _LONG.pack(start)
    head += write_uvarint(len(aborted) + 1) if flexible else _INT.pack(len(aborted))
    for entry in aborted:
        head += _ENTRY.pack(*entry) + (b"\0" if flexible else b"")  # no tags
    if version >= 11:
        head += _INT.pack(preferred)
    return bytes(head) + (write_uvarint(size + 1) if flexible else _INT.pack(size))
