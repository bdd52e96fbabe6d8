"""An excerpt is a valid batch with exactly the records that were asked for."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from postroad.wire import batch as batches
from postroad.wire.compression import NAMES
from postroad.wire.excerpt import Excerpts
from postroad.wire.records import Record, decode_records, encode_batch

CODECS = range(len(NAMES))
NOW = 1_700_000_000_000

blobs = st.none() | st.binary(max_size=60) | st.sampled_from([b"v" * 200, b"x" * 20_000])
contents = st.tuples(
    st.integers(-(10**6), 10**9), blobs, blobs, st.lists(st.tuples(st.text(max_size=5), blobs))
)
Ranges = list[tuple[int, int]]


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Half of them with gaps, as after compaction."""
    offset = draw(st.integers(0, 2**40))
    gap = draw(st.sampled_from([0, 0, 1, 9000]))
    records = []
    for timestamp, key, value, named in draw(st.lists(contents, min_size=1, max_size=12)):
        records.append(Record(offset, timestamp, key, value, named))
        offset += 1 + draw(st.integers(0, gap))
    return records


@st.composite
def ranges_in(draw: st.DrawFn, records: list[Record]) -> Ranges:
    """Ascending ranges that lie apart, from before the batch to behind it."""
    offsets = [records[0].offset - 2, *(record.offset for record in records), records[-1].offset + 3]
    edges = sorted(draw(st.sets(st.sampled_from([*offsets, *(offset + 1 for offset in offsets)]))))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return [(first, last - draw(st.integers(0, 1))) for first, last in pairs]


def batch_of(records: list[Record], codec: int = 0, room: int = 0) -> bytes:
    """With every field of the header set, so that a lost one is seen."""
    base = max(records[0].offset - room, 0)
    return bytes(
        encode_batch(
            records,
            compression=codec,
            base_offset=base,
            last_offset_delta=records[-1].offset - base + room,
            leader_epoch=5,
            producer_id=7,
            producer_epoch=2,
            base_sequence=11,
            attributes=batches.TRANSACTIONAL,
        )
    )


def messages(base: int, count: int, size: int = 40) -> list[Record]:
    return [Record(base + n, NOW + n, b"key%d" % n, b"v" * size, []) for n in range(count)]


def in_ranges(records: list[Record], ranges: Ranges) -> list[Record]:
    return [record for record in records if any(first <= record.offset <= last for first, last in ranges)]


def plain(records: list[Record]) -> list[tuple[object, ...]]:
    return [(*record[:4], list(record.headers)) for record in records]


def read(batch: bytes) -> list[Record]:
    batches.check(memoryview(batch), batches.read_header(batch))
    return decode_records(batch)


@settings(max_examples=250, deadline=None)
@given(data=st.data(), records=record_lists(), codec=st.sampled_from(CODECS), room=st.sampled_from([0, 0, 3]))
def test_an_excerpt_holds_the_records_in_its_ranges_and_no_other(
    data: st.DataObject, records: list[Record], codec: int, room: int
) -> None:
    batch = batch_of(records, codec, room)
    whole = batches.read_header(batch)
    excerpts = Excerpts(memoryview(batch))
    for _ in range(3):
        ranges = data.draw(ranges_in(records))
        cut = excerpts.take(ranges)
        wanted = in_ranges(records, ranges)
        assert plain(read(cut)) == plain(wanted)
        header = batches.read_header(cut)
        assert header == whole._replace(length=header.length, crc=header.crc, count=len(wanted))
        assert Excerpts(memoryview(batch)).take(ranges) == cut


def test_neighbours_are_taken_one_after_the_other_and_again() -> None:
    records = messages(100, 500)
    excerpts = Excerpts(memoryview(batch_of(records)))
    for first in (*range(100, 600, 50), 350, 100):
        assert plain(read(excerpts.take([(first, first + 49)]))) == plain(records[first - 100 : first - 50])


def test_all_records_are_the_batch_as_it_was() -> None:
    for codec in CODECS:
        batch = batch_of(messages(7, 20), codec)
        assert Excerpts(memoryview(batch)).take([(0, 15), (16, 99)]) == batch


def test_ranges_without_a_record_give_an_empty_batch() -> None:
    batch = batch_of([Record(3, NOW, b"k", b"v"), Record(9, NOW, b"k", b"v")])
    for ranges in ([], [(4, 8)], [(0, 2), (10, 99)]):
        cut = Excerpts(memoryview(batch)).take(ranges)
        assert read(cut) == []
        assert batches.read_header(cut).next_offset == 10


@pytest.mark.parametrize("codec", [codec for codec, name in enumerate(NAMES) if name != "zstd"])
def test_clients_accept_an_excerpt(codec: int) -> None:
    cut = Excerpts(memoryview(batch_of(messages(100, 50), codec))).take([(103, 104), (120, 120)])
    theirs = DefaultRecordBatch(cut)
    assert theirs.validate_crc()
    assert [(record.offset, record.key) for record in theirs] == [
        (103, b"key3"),
        (104, b"key4"),
        (120, b"key20"),
    ]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("room", [0, 3])
def test_a_batch_that_cannot_be_cut_is_given_whole(codec: int, room: int) -> None:
    batch = bytearray(batch_of(messages(100, 50), codec, room))
    batch[batches.HEADER_BYTES :] = b"\xff" * (len(batch) - batches.HEADER_BYTES)
    assert Excerpts(memoryview(batch)).take([(110, 111)]) == batch


def test_damaged_records_are_cut_or_given_whole() -> None:
    dice = random.Random(3)
    for room in (0, 3):
        batch = batch_of(messages(100, 20), 0, room)
        for _ in range(2000):
            mutant = bytearray(batch)
            mutant[dice.randrange(batches.HEADER_BYTES, len(mutant))] = dice.randrange(256)
            cut = Excerpts(memoryview(mutant)).take([(105, 107), (110, 110)])
            assert cut == mutant or batches.read_header(cut).count == 4
