"""Records: round trips, other people's encoders as oracles, and every kind of damaged bytes."""

from __future__ import annotations

import contextlib
import io
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.records.readers import read_batch
from kio.records.schema import NewRecordBatch
from kio.records.schema import Record as KioRecord
from kio.records.schema import RecordHeader as KioHeader
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from postroad.errors import (
    CorruptMessage,
    MessageTooLarge,
    UnsupportedCompressionType,
    UnsupportedForMessageFormat,
)
from postroad.wire import batch as batches
from postroad.wire.compression import NAMES
from postroad.wire.records import Record, decode_records, encode_batch, recompress, without_key

CODECS = range(len(NAMES))
CLEAN = (CorruptMessage, MessageTooLarge, UnsupportedCompressionType, UnsupportedForMessageFormat)
NOW = 1_700_000_000_000

blobs = st.none() | st.binary(max_size=200)
headers = st.lists(st.tuples(st.text(max_size=10), blobs), max_size=4)
contents = st.tuples(st.integers(-(10**6), 10**12), blobs, blobs, headers)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records with rising offsets that may have gaps, as after compaction."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for timestamp, key, value, named in draw(st.lists(contents, min_size=1, max_size=12)):
        records.append(Record(offset, timestamp, key, value, named))
        offset += draw(st.integers(1, 300))
    return records


def same(left: list[Record], right: list[Record]) -> bool:
    return [(*r[:4], list(r.headers)) for r in left] == [(*r[:4], list(r.headers)) for r in right]


def a_batch(count: int = 3) -> bytearray:
    return encode_batch(
        [Record(i, NOW + i, b"key", b"value" * 20, [("h", b"1"), ("n", None)]) for i in range(count)]
    )


# --- round trips -------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(records=record_lists(), codec=st.sampled_from(CODECS), room=st.integers(0, 50))
def test_records_come_back_as_they_were(records: list[Record], codec: int, room: int) -> None:
    base = max(0, records[0].offset - room)
    batch = encode_batch(records, base_offset=base, compression=codec, leader_epoch=7)
    header = batches.read_header(batch)
    batches.check(memoryview(batch), header)
    assert same(decode_records(batch), records)
    assert (header.count, header.compression, header.leader_epoch) == (len(records), codec, 7)
    assert header.last_offset == records[-1].offset
    assert header.max_timestamp == max(record.timestamp for record in records)


@settings(max_examples=60, deadline=None)
@given(records=record_lists(), before=st.sampled_from(CODECS), after=st.sampled_from(CODECS))
def test_recompressing_changes_only_the_compression(records: list[Record], before: int, after: int) -> None:
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 40}
    batch = encode_batch(records, base_offset=records[0].offset, compression=before, **producer)
    again = recompress(memoryview(batch), after)
    assert again == encode_batch(records, base_offset=records[0].offset, compression=after, **producer)


def test_producer_fields_and_attributes_are_kept() -> None:
    batch = encode_batch(
        [Record(5, NOW, b"k", b"v")],
        base_offset=5,
        producer_id=77,
        producer_epoch=3,
        base_sequence=12,
        attributes=batches.TRANSACTIONAL | batches.CONTROL,
        compression=4,
    )
    header = batches.read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 12)
    assert header.attributes == batches.TRANSACTIONAL | batches.CONTROL | 4


def test_compaction_may_leave_gaps_and_even_an_empty_batch() -> None:
    kept = [Record(103, NOW, b"k", b"v")]
    header = batches.read_header(encode_batch(kept, base_offset=100, last_offset_delta=9))
    assert (header.base_offset, header.last_offset, header.count) == (100, 109, 1)
    empty = encode_batch([], base_offset=100, last_offset_delta=9, max_timestamp=NOW)
    assert batches.read_header(empty).next_offset == 110
    assert decode_records(empty) == []


def test_log_append_time_stands_for_every_record() -> None:
    batch = a_batch()
    batches.stamp_append_time(memoryview(batch), 0, len(batch), NOW + 999)
    assert {record.timestamp for record in decode_records(batch)} == {NOW + 999}


def test_times_are_relative_to_a_given_base() -> None:
    """A batch with a delete horizon holds it in place of its base timestamp."""
    records = [Record(0, NOW, b"k", None), Record(1, NOW - 50, b"k", None)]
    batch = encode_batch(records, base_timestamp=NOW + 86_400_000, attributes=batches.DELETE_HORIZON)
    assert [record.timestamp for record in decode_records(batch)] == [NOW, NOW - 50]


def test_header_keys_that_are_no_text_survive_byte_for_byte() -> None:
    batch = encode_batch([Record(0, NOW, None, b"", [("ab", b"")])])
    raw = bytes(batch).replace(b"\x04ab", b"\x04\xff\xfe")
    records = decode_records(raw)
    assert encode_batch(records)[61:] == raw[61:]


def test_a_record_without_key_is_found() -> None:
    with_keys = [Record(0, NOW, b"", b"v"), Record(1, NOW, b"k", b"v")]
    assert without_key(encode_batch(with_keys, compression=3)) == []
    assert without_key(encode_batch([*with_keys, Record(2, NOW, None, b"v")], compression=3)) == [2]


# --- other people's encoders -------------------------------------------------------------------


def to_kio(record: Record) -> KioRecord:
    return KioRecord(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(datetime.fromtimestamp(record.timestamp // 1000, UTC)),
        offset=i64(record.offset),
        key=record.key,
        value=record.value,
        headers=tuple(KioHeader(key=k.encode(), value=v) for k, v in record.headers),
    )


@settings(max_examples=60, deadline=None)
@given(records=record_lists())
def test_kio_reads_and_writes_the_same_bytes(records: list[Record]) -> None:
    records = [record._replace(timestamp=abs(record.timestamp) // 1000 * 1000) for record in records]
    theirs = io.BytesIO()
    new = NewRecordBatch(
        producer_id=i64(5),
        producer_epoch=i16(1),
        partition_leader_epoch=i32(3),
        base_sequence=i32(8),
        records=tuple(map(to_kio, records)),
        attributes=i16(0),
    )
    write_new_batch(theirs, new)
    ours = encode_batch(
        records,
        base_offset=records[0].offset,
        leader_epoch=3,
        producer_id=5,
        producer_epoch=1,
        base_sequence=8,
    )
    assert bytes(ours) == theirs.getvalue()
    assert same(decode_records(theirs.getvalue()), records)
    assert read_batch(bytes(ours), 0)[0].records == new.records


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_kafka_python_reads_ours_and_we_read_its(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    records = [Record(i, NOW + i * 7, b"%d" % i, b"v" * i, [("x", b"y")]) for i in range(200)]
    for record in records:
        builder.append(*record[:4], list(record.headers))
    assert same(decode_records(bytes(builder.build())), records)

    ours = DefaultRecordBatch(bytes(encode_batch(records, compression=codec)))
    assert ours.validate_crc()
    theirs = [Record(r.offset, r.timestamp, r.key, r.value, r.headers) for r in ours]
    assert same(theirs, records)


# --- damaged and hostile bytes -----------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=200), count=st.integers(-5, 2**31 - 1), codec=st.integers(0, 7))
def test_arbitrary_records_give_only_clean_errors(data: bytes, count: int, codec: int) -> None:
    batch = bytearray(batches.HEADER_BYTES) + data
    batches.HEADER.pack_into(
        batch, 0, 0, len(batch) - 12, 0, 2, 0, codec, 2**31 - 1, NOW, NOW, -1, -1, -1, count
    )
    with contextlib.suppress(*CLEAN):
        decode_records(batch, 1 << 20)


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, 10_000), value=st.integers(0, 255), codec=st.sampled_from(CODECS))
def test_any_changed_byte_gives_records_or_a_clean_error(at: int, value: int, codec: int) -> None:
    batch = recompress(a_batch(), codec)
    batch[at % len(batch)] = value
    with contextlib.suppress(*CLEAN):
        decode_records(batch, 1 << 20)


def test_a_batch_cut_at_any_byte_is_corrupt() -> None:
    batch = a_batch()
    for length in range(len(batch)):
        with pytest.raises(CorruptMessage):
            decode_records(batch[:length])


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("0c 00 00 00 01 01 00 ff", "left over"),
        ("0e 00 00 00 01 01 00 00", "length does not fit"),
        ("0c 00 00 02 01 01 00", "offset lies outside"),
        ("0c 00 00 01 01 01 00", "offset lies outside"),
        ("01 00 00 00 01 01 00", "past the end"),
        ("0c 00 00 00 03 01 00", "below -1"),
        ("0c 00 00 00 10 01 00", "past the end"),
        ("0c 00 00 00 01 01 7e", "more headers"),
        ("10 00 00 00 01 01 02 01 01", "no key"),
        ("18 00 ff ff ff ff ff ff ff ff ff ff 01", "too many bytes"),
        ("18 00 ff ff ff ff ff ff ff ff ff 01 00", "out of range"),
        ("0c 00 00 00 01 01", "past the end"),
        ("80", "ends within"),
    ],
)
def test_each_kind_of_damage_is_named(body: str, text: str) -> None:
    batch = bytearray(batches.HEADER_BYTES) + bytes.fromhex(body)
    batches.HEADER.pack_into(batch, 0, 0, len(batch) - 12, 0, 2, 0, 0, 0, NOW, NOW, -1, -1, -1, 1)
    with pytest.raises(CorruptMessage, match=text):
        decode_records(batch)


def test_older_formats_are_named_as_such() -> None:
    batch = a_batch()
    batch[16] = 1
    with pytest.raises(UnsupportedForMessageFormat):
        decode_records(batch)


def test_a_base_timestamp_beyond_all_times_is_corrupt() -> None:
    with pytest.raises(CorruptMessage, match="no time"):
        decode_records(encode_batch([], base_timestamp=2**63 - 1))


def test_a_claim_of_two_thousand_million_records_costs_nothing() -> None:
    batch = a_batch(1)
    batch[57:61] = (2**31 - 1).to_bytes(4, "big")
    started = time.thread_time()
    with pytest.raises(CorruptMessage):
        decode_records(batch)
    assert time.thread_time() - started < 1
