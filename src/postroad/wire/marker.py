"""Markers: control batches that end a transaction in a partition.

A marker is a batch of one record with the attributes transactional and control, the producer's id and epoch
and no sequence number. Its record, big endian, as in Kafka:

    key      i16 version (0), i16 type (0 abort, 1 commit)
    value    i16 version (0), i32 epoch of the coordinator that sent it
    header   "first": i64, the offset at which the transaction began; missing where nothing was written to it

Kafka has no record headers here, and clients pass over what is in a control record. The header is ours: with
it the list of aborted transactions (`log.aborted`) can be made anew from markers alone.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from postroad.errors import InvalidRecord
from postroad.wire.batch import CONTROL, NO_SEQUENCE, TRANSACTIONAL
from postroad.wire.records import Record, decode_records, encode_batch

ABORT: Final = 0
COMMIT: Final = 1
UNKNOWN: Final = -1

_FIRST: Final = "first"
_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_OFFSET: Final = Struct(">q")


class Marker(NamedTuple):
    """What a marker says."""

    commit: bool
    coordinator_epoch: int
    first_offset: int = UNKNOWN  # where the transaction began; unknown where the marker does not say so


def make_marker(producer_id: int, producer_epoch: int, marker: Marker, now_ms: int) -> bytearray:
    """The marker as a batch with offset 0, to be placed by the log."""
    key = _KEY.pack(0, COMMIT if marker.commit else ABORT)
    headers = [(_FIRST, _OFFSET.pack(marker.first_offset))] if marker.first_offset >= 0 else ()
    record = Record(0, now_ms, key, _VALUE.pack(0, marker.coordinator_epoch), headers)
    return encode_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        attributes=TRANSACTIONAL | CONTROL,
    )


def read_marker(batch: memoryview | bytes | bytearray) -> Marker:
    """What a whole control batch says. Raises ApiError if it is no end of a transaction."""
    records = decode_records(batch)
    key = records[0].key if records else None
    value = records[0].value if records else None
    if key is None or len(key) < _KEY.size or _KEY.unpack_from(key)[1] not in (ABORT, COMMIT):
        raise InvalidRecord("The control batch is not the end of a transaction.")
    coordinator_epoch = _VALUE.unpack_from(value)[1] if value and len(value) >= _VALUE.size else UNKNOWN
    first = next((found for name, found in records[0].headers if name == _FIRST), None)
    first_offset = _OFFSET.unpack(first)[0] if first is not None and len(first) == _OFFSET.size else UNKNOWN
    return Marker(_KEY.unpack_from(key)[1] == COMMIT, coordinator_epoch, first_offset)
