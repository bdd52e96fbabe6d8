"""What compaction does to batches: of each key the newest record stays.

`KeyMap` holds the newest offset of each key in the dirty part of a log; `clean_batch` takes away what
the map supersedes. Both see one batch at a time.

C1 a record stays if no newer one of its key was seen. Offsets never change.
C2 a tombstone (no value) stays for delete.retention.ms after the first compaction that saw it: that is
   when its batch gets a delete horizon (attribute bit 6, the time in place of the base timestamp, as
   in Kafka), so every consumer that is at most that far behind hears of the deletion. A horizon that was
   copied with its batch from another replica is replaced: the values before it may still be here.
C3 the last batch of each producer stays, if only as an empty one: its sequence numbers must not be lost.
C4 a batch that can't be read stays byte for byte.
C5 batches of an aborted transaction go at once and supersede nothing. A marker stays as long as there are
   records of its transaction, or it is the last that the log has of its producer; after that it goes as a
   tombstone does (C2), so that whoever has read some of the records hears of their end.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from postroad.errors import ApiError
from postroad.wire.batch import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, BatchHeader, check
from postroad.wire.records import NO_TIMESTAMP, Record, decode_records, encode_batch

KEYS_MAX: Final = 500_000  # of one compaction: some 100 MB
_DIGEST_BYTES: Final = 16  # two keys with one digest are not to be expected, nor to be found


class KeyMap:
    """Newest offset of each key, in bounded memory: it holds digests, not keys."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._offsets: dict[bytes, int] = {}

    def has_room_for(self, header: BatchHeader) -> bool:
        """An empty map takes any batch, so that compaction always gets on."""
        return not self._offsets or len(self._offsets) + header.count <= self._limit

    def add(self, records: list[Record]) -> None:
        for record in records:
            if record.key is not None:
                self._offsets[_digest(record.key)] = record.offset

    def is_newest(self, record: Record) -> bool:
        """A record without a key can't be superseded and has no place in a compacted topic: it goes."""
        return record.key is not None and self._offsets.get(_digest(record.key), -1) <= record.offset


def readable_records(batch: memoryview, header: BatchHeader) -> list[Record] | None:
    """None for a control batch and for one that is damaged."""
    if header.attributes & CONTROL:
        return None
    try:
        check(batch, header)
        return decode_records(batch)
    except ApiError:
        return None


def clean_batch(
    batch: memoryview,
    header: BatchHeader,
    keys: KeyMap,
    keep_empty: bool,
    is_new: bool,
    horizon_ms: int,
    now_ms: int,
) -> memoryview | bytearray | None:
    """The batch as it was, or with fewer records, or None if nothing of it stays.

    `is_new`: no compaction of this log has seen it, so that a horizon which it has is another log's (C2).
    """
    records = readable_records(batch, header)
    if records is None:
        return batch
    has_horizon = bool(header.attributes & DELETE_HORIZON) and not is_new
    forgotten = has_horizon and header.base_timestamp <= now_ms
    kept = [
        record for record in records if keys.is_newest(record) and not (forgotten and record.value is None)
    ]
    if not kept and not keep_empty:
        return None
    new_horizon = not has_horizon and any(record.value is None for record in kept)
    if len(kept) == len(records) and not new_horizon:
        return batch
    return _encode(header, kept, horizon_ms if new_horizon else None)


def clean_aborted(batch: memoryview, header: BatchHeader, keep_empty: bool) -> memoryview | bytearray | None:
    """The batch of an aborted transaction without its records; None if nothing of it stays (C5)."""
    if not keep_empty:
        return None
    return _encode(header, [], None) if header.count else batch


def clean_marker(
    batch: memoryview, header: BatchHeader, is_new: bool, horizon_ms: int, now_ms: int
) -> memoryview | bytearray | None:
    """The marker of a transaction that has no records any more: it stays until its horizon has passed."""
    if header.attributes & DELETE_HORIZON and not is_new:
        return None if header.base_timestamp <= now_ms else batch
    try:
        check(batch, header)
        return _encode(header, decode_records(batch), horizon_ms)
    except ApiError:
        return batch


def _encode(header: BatchHeader, kept: list[Record], horizon_ms: int | None) -> bytearray:
    max_timestamp = None if kept else NO_TIMESTAMP
    if header.attributes & LOG_APPEND_TIME:
        max_timestamp = header.max_timestamp
    return encode_batch(
        kept,
        compression=header.compression,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp if horizon_ms is None else horizon_ms,
        max_timestamp=max_timestamp,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        attributes=header.attributes if horizon_ms is None else header.attributes | DELETE_HORIZON,
    )


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
