"""The records inside a batch: decoded, encoded, compressed anew.

The broker's hot path never comes here: only consumers, producers, compaction and validation do.
After the header (`wire.batch`) come `count` records, compressed as one block if at all. A record:

    varint  length           bytes after this field
    int8    attributes       unused
    varlong timestamp        minus the batch's base timestamp
    varint  offset           minus the batch's base offset
    varint  key length       -1: no key, then the key
    varint  value length     -1: no value (a tombstone where topics are compacted), then the value
    varint  header count     then for each: varint length, key, varint length (-1: null), value

Numbers are zigzag varints. Batch and records are valid if every length ends within what contains
it, the count holds, nothing is left over, and each offset lies between the batch's first and last.
Compaction takes records away and keeps the offsets of the others, so offsets may have gaps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final, NamedTuple, NoReturn

from postroad.errors import CorruptMessage, UnsupportedForMessageFormat
from postroad.wire import compression as codecs
from postroad.wire.batch import (
    COMPRESSION_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER,
    NO_SEQUENCE,
    BatchHeader,
    Fields,
    read_header,
    stamp_crc,
)

NO_TIMESTAMP: Final = -1
_TIMESTAMP_MAX: Final = 1 << 62  # sums of two of these stay within 64 bits
_VARINT_BITS_MAX: Final = 63
_NULL: Final = b"\x01"  # the varint -1


class Record(NamedTuple):
    """One message. A header's key that is no UTF-8 is kept by surrogate escapes, byte for byte."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


def decode_records(
    batch: memoryview | bytes | bytearray, limit: int = codecs.OUTPUT_BYTES_MAX
) -> list[Record]:
    """The records of one whole batch; `limit` caps what may be unpacked.

    The CRC is not looked at (`batch.check` does that). Raises CorruptMessage for any bytes that
    are no such batch, MessageTooLarge beyond `limit`, UnsupportedForMessageFormat for old formats.
    """
    header, data = _unpack(memoryview(batch), limit)
    if abs(header.base_timestamp) > _TIMESTAMP_MAX:
        _corrupt("The batch's base timestamp is no time.")
    records: list[Record] = []
    try:
        _decode(data, header, records)
    except IndexError:
        _corrupt("The batch ends within a record.")
    return records


def decode_readable(batch: memoryview | bytes | bytearray) -> list[Record]:
    """The records of a damaged batch up to the first that can't be read.

    None of them is to be believed. Raises as `decode_records` if it has no header, or can't be unpacked.
    """
    header, data = _unpack(memoryview(batch), codecs.OUTPUT_BYTES_MAX)
    records: list[Record] = []
    with contextlib.suppress(CorruptMessage, IndexError):
        _decode(data, header, records)
    return records


def without_key(batch: memoryview | bytes | bytearray, limit: int = codecs.OUTPUT_BYTES_MAX) -> list[int]:
    """Which records have no key (from 0 on), as a compacted topic refuses. Raises as decode_records does."""
    return [number for number, record in enumerate(decode_records(batch, limit)) if record.key is None]


def encode_batch(
    records: Sequence[Record],
    *,
    compression: int = codecs.NONE,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    attributes: int = 0,
) -> bytearray:
    """A whole batch with its CRC, writable so that it can be placed into a log as it is.

    Records keep their offsets: the deltas are against `base_offset`. Without `last_offset_delta`
    the batch ends with its last record; compaction passes the old one, so that the next offset and
    the producer's sequence stay what they were, even for a batch that has no record left.
    """
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=NO_TIMESTAMP)
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset if records else 0
    payload = _encode(records, base_offset, base_timestamp)
    producer = producer_id, producer_epoch, base_sequence
    times = base_timestamp, max_timestamp
    header = (base_offset, 0, leader_epoch, MAGIC, 0, attributes, last_offset_delta, *times, *producer)
    return pack_batch((*header, len(records)), payload, compression)


def recompress(
    batch: memoryview | bytes | bytearray, codec: int, limit: int = codecs.OUTPUT_BYTES_MAX
) -> bytearray:
    """The same batch, compressed with `codec` (0: not at all); all else in it stays as it is."""
    header, data = _unpack(memoryview(batch), limit)
    return pack_batch(header, data, codec)


# --- between a batch and its plain block of records --------------------------------------------


def _unpack(batch: memoryview, limit: int) -> tuple[BatchHeader, bytes]:
    if len(batch) < HEADER_BYTES:
        _corrupt("The batch is shorter than its header.")
    header = read_header(batch)
    if header.magic != MAGIC:
        raise UnsupportedForMessageFormat()
    if header.size != len(batch):
        _corrupt("The batch's length does not fit the bytes that came with it.")
    if header.count < 0 or header.last_offset_delta < 0:
        _corrupt("The batch counts its records below zero.")
    return header, codecs.decompress(header.compression, batch[HEADER_BYTES:], limit)


def pack_batch(header: Fields, payload: codecs.Data, codec: int) -> bytearray:
    """A whole batch of these plain records, packed: length, CRC and compression are set here."""
    batch = bytearray(HEADER_BYTES)
    batch += codecs.compress(codec, payload)
    base, _, epoch, magic, _, attributes, *rest = header
    attributes = attributes & ~COMPRESSION_MASK | codec
    HEADER.pack_into(batch, 0, base, len(batch) - LENGTH_END, epoch, magic, 0, attributes, *rest)
    stamp_crc(batch)
    return batch


# --- decoding ----------------------------------------------------------------------------------


def _decode(data: bytes, header: BatchHeader, records: list[Record]) -> None:
    """One-byte varints are read in place: they are nearly all, and a call costs as much as a record."""
    base_offset, last_delta = header.base_offset, header.last_offset_delta
    base_timestamp, total, position = header.base_timestamp, len(data), 0
    fixed_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    for _ in range(header.count):
        length, position = read_varint(data, position)
        end = position + length
        if length < 0 or end > total:
            _corrupt("A record reaches past the end of its batch.")
        position += 1  # attributes

        if (byte := data[position]) < 0x80:
            timestamp, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            timestamp, position = read_varint(data, position)
        if (byte := data[position]) < 0x80:
            delta, position = (byte >> 1) ^ -(byte & 1), position + 1
        else:
            delta, position = read_varint(data, position)
        if not 0 <= delta <= last_delta:
            _corrupt("A record's offset lies outside its batch.")

        key, position = _nullable(data, position, end)
        value, position = _nullable(data, position, end)
        headers: Sequence[tuple[str, bytes | None]] = ()
        if data[position] == 0:
            position += 1
        else:
            headers, position = _headers(data, position, end)
        if position != end:
            _corrupt("A record's length does not fit what is in it.")
        time = base_timestamp + timestamp if fixed_time is None else fixed_time
        records.append(Record(base_offset + delta, time, key, value, headers))
    if position != total:
        _corrupt("Bytes are left over after the last record.")


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    if (byte := data[position]) < 0x80:
        length, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        length, position = read_varint(data, position)
    if length < 0:
        if length != -1:
            _corrupt("A length is below -1.")
        return None, position
    stop = position + length
    if stop > end:
        _corrupt("A field reaches past the end of its record.")
    return data[position:stop], stop


def _headers(data: bytes, position: int, end: int) -> tuple[list[tuple[str, bytes | None]], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        _corrupt("A record counts more headers than it has bytes.")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key, position = _nullable(data, position, end)
        if key is None:
            _corrupt("A header has no key.")
        value, position = _nullable(data, position, end)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return headers, position


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """One and two bytes (numbers up to 8191) take the short way."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        number = byte & 0x7F | second << 7
        return (number >> 1) ^ -(number & 1), position + 2
    return _long_varint(data, position)


def _long_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
        if shift > _VARINT_BITS_MAX:
            _corrupt("A number has too many bytes.")
    if number > 2 * _TIMESTAMP_MAX:
        _corrupt("A number is out of range.")
    return (number >> 1) ^ -(number & 1), position


def _corrupt(text: str) -> NoReturn:
    raise CorruptMessage(text)


# --- encoding ----------------------------------------------------------------------------------


def _encode(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytes:
    parts: list[bytes] = []
    for offset, timestamp, key, value, headers in records:
        fields = [b"\0", _zigzag(timestamp - base_timestamp), _zigzag(offset - base_offset)]
        if key is None:
            fields.append(_NULL)
        else:
            fields += (_zigzag(len(key)), key)
        if value is None:
            fields.append(_NULL)
        else:
            fields += (_zigzag(len(value)), value)
        fields.append(_zigzag(len(headers)))
        for name, content in headers:
            raw = name.encode("utf-8", "surrogateescape")
            fields += (_zigzag(len(raw)), raw)
            fields += (_NULL,) if content is None else (_zigzag(len(content)), content)
        record = b"".join(fields)
        parts += (_zigzag(len(record)), record)
    return b"".join(parts)


def _zigzag(number: int) -> bytes:
    if 0 <= number < _SMALL_NUMBERS:
        return _SMALL[number]
    return _unsigned(number << 1 if number >= 0 else (-number << 1) - 1)


def _unsigned(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


_SMALL_NUMBERS: Final = 8192  # lengths and deltas in nearly all batches: those of one and of two bytes
_SMALL: Final = [bytes((number << 1,)) for number in range(64)] + [
    bytes((number << 1 & 0x7F | 0x80, number >> 6)) for number in range(64, _SMALL_NUMBERS)
]
