"""The header of a record batch (format 2), read and patched in place.

A batch travels as bytes from socket to disk to socket; nothing here looks at single records
(that is `wire.records`). Layout, big endian (Kafka's message format v2):

    offset  size  field
       0     8    base offset                 outside the CRC: the broker assigns it
       8     4    batch length                bytes after this field
      12     4    partition leader epoch      outside the CRC: the broker assigns it
      16     1    magic (2)
      17     4    CRC32C of everything from offset 21 to the end
      21     2    attributes                  bits 0–2 compression, 3 log-append time,
                                              4 transactional, 5 control, 6 delete horizon
      23     4    last offset delta
      27     8    base timestamp
      35     8    max timestamp
      43     8    producer id (-1: none)
      51     2    producer epoch
      53     4    base sequence (-1: none)
      57     4    record count
      61     …    records, compressed as one block if at all

A batch is valid if its length reaches exactly to the next batch, its magic is 2 and its CRC holds.
Because the first twelve bytes and the epoch lie outside the CRC, giving a batch its place in the
log needs two writes of a few bytes and no new checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from fastcrc import crc32

from postroad.errors import (
    CorruptMessage,
    InvalidRecord,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)

HEADER_BYTES: Final = 61
LENGTH_END: Final = 12  # a batch is its length field's value plus these
CRC_START: Final = 21
MAGIC: Final = 2

NO_PRODUCER: Final = -1
NO_SEQUENCE: Final = -1
CHOSEN_PRODUCERS: Final = 1 << 61  # ids from here on are chosen by those who send (also `spark.identity`)
NAMED_PRODUCERS: Final = 1 << 62  # ids from here on are made from names (`client.publish_once`)

COMPRESSION_MASK: Final = 0x07
COMPRESSION_MAX: Final = 4  # none, gzip, snappy, lz4, zstd
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

HEADER: Final = Struct(">qiibIhiqqqhii")
_LENGTH: Final = Struct(">qi")  # base offset and length: enough to walk a file
_CRC: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")
_MAX_TIMESTAMP: Final = Struct(">q")

crc32c = crc32.iscsi


Fields = tuple[int, ...]
"""A header as it was unpacked, in the order of BatchHeader."""
LAST_OFFSET_DELTA: Final = 6
ATTRIBUTES: Final = 5
PRODUCER_ID: Final = 9
PRODUCER_EPOCH: Final = 10


class BatchHeader(NamedTuple):
    """The fields in their order on the wire; `size` and `next_offset` derive from them."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count

    @property
    def size(self) -> int:
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        return self.attributes & COMPRESSION_MASK

    @property
    def last_sequence(self) -> int:
        """Sequences count modulo 2^31, as Kafka's producers do."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF


def read_header(buffer: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """The header at `position`; the caller knows that HEADER_BYTES are there."""
    return BatchHeader._make(HEADER.unpack_from(buffer, position))


def check(buffer: memoryview, header: BatchHeader, position: int = 0) -> None:
    """Raise unless the whole batch at `position` is well formed and its CRC holds."""
    if header.magic != MAGIC:
        raise UnsupportedForMessageFormat()
    end = position + LENGTH_END + header.length
    if end < position + HEADER_BYTES or end > len(buffer):
        raise CorruptMessage("The batch's length does not fit the bytes that came with it.")
    if header.last_offset_delta < 0 or header.count < 0:
        raise CorruptMessage("The batch counts its records below zero.")
    if crc32c(buffer[position + CRC_START : end]) != header.crc:
        raise CorruptMessage("The batch's CRC does not hold: it was damaged on its way.")


def only_batch(records: memoryview) -> Fields:
    """The header of the one batch that is all of `records`, checked. For the hot path: no object is made."""
    size = len(records)
    if size < HEADER_BYTES:
        raise CorruptMessage("There is no whole record batch in the request.")
    fields = HEADER.unpack_from(records)
    _, length, _, magic, crc, attributes, delta, _, _, _, _, _, count = fields
    if magic != MAGIC:
        raise UnsupportedForMessageFormat()
    if length + LENGTH_END != size:
        if HEADER_BYTES <= length + LENGTH_END < size:
            raise InvalidRecord("Send exactly one record batch for each partition.")
        raise CorruptMessage("The batch's length does not fit the bytes that came with it.")
    if crc32c(records[CRC_START:]) != crc:
        raise CorruptMessage("The batch's CRC does not hold: it was damaged on its way.")
    if attributes & COMPRESSION_MASK > COMPRESSION_MAX:
        raise UnsupportedCompressionType()
    if delta < 0 or count < 0:
        raise CorruptMessage("The batch counts its records below zero.")
    if count != delta + 1:
        raise InvalidRecord("The batch's record count does not fit its last offset.")
    return fields


def stamp_append_time(buffer: memoryview, position: int, size: int, now_ms: int) -> None:
    """Mark the batch as stamped by the broker; its CRC is computed anew."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + 21)
    _ATTRIBUTES.pack_into(buffer, position + 21, attributes | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(buffer, position + 35, now_ms)
    _CRC.pack_into(buffer, position + 17, crc32c(buffer[position + CRC_START : position + size]))


def stamp_crc(batch: bytearray) -> None:
    """Give a whole batch the CRC of what it holds."""
    _CRC.pack_into(batch, 17, crc32c(memoryview(batch)[CRC_START:]))


def walk(buffer: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each whole batch; a cut one at the end is left out, as Fetch may cut."""
    position, end = 0, len(buffer)
    while position + HEADER_BYTES <= end:
        header = read_header(buffer, position)
        if header.length < HEADER_BYTES - LENGTH_END or position + header.size > end:
            return
        yield position, header
        position += header.size
