"""What a partition of an internal topic can no longer tell: batches that were damaged on the disk.

A batch in which one bit was flipped is put right by its CRC, and nothing is in doubt. Any other damaged batch
is passed over and the rest is loaded: nobody knows what it held. What can still be read of it is not to be
believed; it is good for knowing of somebody who would otherwise be forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from postroad.errors import ApiError
from postroad.log.flipped_bit import restored
from postroad.wire.batch import HEADER_BYTES, LENGTH_END, MAGIC
from postroad.wire.records import Record, decode_readable, decode_records


class Suspect(NamedTuple):
    """A record of a damaged batch; either part of it may be wrong."""

    key: bytes
    value: bytes | None


class DamagedRange(NamedTuple):
    """Offsets of an internal topic's partition that were passed over."""

    first: int
    end: int
    suspects: list[Suspect]


def restored_records(content: bytes) -> list[Record] | None:
    """The records of a batch in which one bit was flipped; None if it was damaged otherwise."""
    batch = restored(content)
    try:
        return None if batch is None else decode_records(batch)
    except ApiError:
        return None


def suspects_in(content: bytes) -> list[Suspect]:
    """What can be read of a damaged batch of our own."""
    if len(content) < HEADER_BYTES:
        return []
    batch = bytearray(content)
    batch[8:12] = (len(batch) - LENGTH_END).to_bytes(4)  # what may have been damaged, and is known: length,
    batch[16] = MAGIC  # format
    batch[21:23] = b"\0\0"  # and attributes, for the node does not compress
    try:
        records = decode_readable(batch)
    except ApiError:
        return []
    return [Suspect(record.key or b"", record.value) for record in records]
