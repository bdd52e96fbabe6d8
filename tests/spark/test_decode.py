"""The vectorised decoder gives, row for row, what the plain one gives, and clear errors for damaged bytes."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import CorruptMessage, PostroadError
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.decode import decode
from postroad.spark.fetched import Aborted
from postroad.testing import Node, node
from postroad.wire import batch as batches
from postroad.wire.compression import NAMES, ZSTD
from postroad.wire.records import Record, decode_records, encode_batch

PLACE = ("orders", 3)
EVERYTHING = 1 << 62
EVERY = columns.every(headers=True)
PATIENCE_S = 120.0


def rows(data: bytes, first: int = 0, until: int = EVERYTHING, **options: Any) -> list[dict[str, Any]]:
    found = list(decode(data, PLACE, first, until, EVERY, **options))
    for batch in found:
        batch.validate(full=True)
        assert batch.schema == EVERY.schema
    return [row for batch in found for row in batch.to_pylist()]


def plain_rows(data: bytes, first: int = 0, until: int = EVERYTHING) -> list[dict[str, Any]]:
    """The same by the decoder that clients use, which reads record by record."""
    found = []
    for at, header in batches.walk(memoryview(data)):
        kind = int(header.attributes & batches.LOG_APPEND_TIME != 0)
        found += [
            _row(record, kind)
            for record in decode_records(data[at : at + header.size])
            if first <= record.offset < until and not header.attributes & batches.CONTROL
        ]
    return found


def _row(record: Record, kind: int) -> dict[str, Any]:
    time = pa.scalar(record.timestamp * 1000, pa.timestamp("us", tz="UTC")).as_py()
    headers = [{"key": key, "value": value} for key, value in record.headers]
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    texts = (record.key, record.value, *PLACE, record.offset, time, kind, headers or None)
    return dict(zip(names, texts, strict=True))


def log(*sizes: int, first: int = 0, value: int = 20, compression: int = 0) -> bytes:
    """Batches of so many records each, one behind the other."""
    out, offset = b"", first
    for size in sizes:
        records = [
            Record(offset + n, 1_000_000 + 7 * n, None if n % 3 else b"key-%d" % n, b"v" * (value + n % 5))
            for n in range(size)
        ]
        out += encode_batch(records, base_offset=offset, compression=compression)
        offset += size
    return out


times = st.integers(0, 2_000_000_000_000)
texts = st.none() | st.binary(max_size=12) | st.sampled_from([b"", b"x" * 63, b"x" * 64, b"x" * 9000])
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


fields = st.tuples(times, texts, texts, headers)
shapes = st.tuples(
    st.dictionaries(st.integers(0, 200), fields, max_size=6),  # by offset delta
    st.integers(0, 200),
    st.integers(0, 4),
    st.sampled_from([0, 0, batches.LOG_APPEND_TIME, batches.CONTROL]),
)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches as producers and compaction leave them, with gaps in and between them; few, or many alike."""
    found = draw(st.lists(shapes, min_size=1, max_size=6))
    out, offset = b"", draw(st.sampled_from([0, 5, 1 << 40]))
    for deltas, gap, compression, kind in found * draw(st.sampled_from([1, 1, 20])):
        last = max([*deltas, gap])
        out += encode_batch(
            [Record(offset + delta, *deltas[delta]) for delta in sorted(deltas)],
            base_offset=offset,
            last_offset_delta=last,
            compression=compression,
            attributes=kind,
        )
        offset += last + 1 + gap % 3
    return out


@given(logs(), st.integers(0, 400), st.integers(0, 400))
def test_rows_are_those_of_the_plain_decoder(data: bytes, first: int, size: int) -> None:
    assert rows(data) == plain_rows(data)
    assert rows(data, first, first + size) == plain_rows(data, first, first + size)


@pytest.mark.parametrize("compression", range(5), ids=NAMES)
@pytest.mark.parametrize("sizes", [(1,), (300,) * 20, (300,) * 40, (1,) * 50, (9000,), (5, 900, 1) * 15])
def test_each_shape_of_log_is_read_whole(sizes: Sequence[int], compression: int) -> None:
    data = log(*sizes, compression=compression)
    assert rows(data) == plain_rows(data)


@pytest.mark.parametrize(("largest", "batch_count"), [(9000, 40), (3_000_000, 2)])
def test_values_of_any_size_stand_beside_each_other(largest: int, batch_count: int) -> None:
    lengths = [0, 1, 60, 61, 62, 63, 64, 8180, 8190, 8191, 8192, largest, 5, 5]
    out = b""
    for first in range(0, batch_count * len(lengths), len(lengths)):
        found = [Record(first + n, 0, None, b"z" * length) for n, length in enumerate(lengths)]
        out += encode_batch(found, base_offset=first)
    assert [len(row["value"]) for row in rows(out)] == lengths * batch_count


def test_a_record_may_have_thousands_of_headers() -> None:
    many = [Record(n, 0, None, b"", [(f"h{k}", b"%d" % k) for k in range(n * 700)]) for n in range(4)]
    data = bytes(encode_batch(many))
    assert rows(data) == plain_rows(data)


def test_header_keys_that_are_no_text_are_mended() -> None:
    data = bytes(encode_batch([Record(0, 0, None, None, [("a\udcff", b"\xff"), ("b", None)])]))
    assert rows(data)[0]["headers"] == [{"key": "a\ufffd", "value": b"\xff"}, {"key": "b", "value": None}]


def test_only_the_wanted_columns_come_in_the_wanted_order() -> None:
    data = log(10)
    for names in (("offset",), ("value",), ("headers", "key"), ("timestamp", "topic", "offset")):
        (found,) = decode(data, PLACE, 2, 5, Columns(names))
        assert found.schema.names == list(names)
        assert found.to_pylist() == [{name: row[name] for name in names} for row in plain_rows(data, 2, 5)]


def test_no_records_are_no_batches() -> None:
    assert rows(b"") == []
    assert rows(log(5), 5) == []
    assert rows(log(5), 3, 3) == []
    assert rows(bytes(encode_batch([], last_offset_delta=9))) == []


def test_little_is_unpacked_before_it_is_asked_for() -> None:
    megabyte, size = bytes(1 << 20), 8
    data = b"".join(
        encode_batch(
            [Record(at + n, 0, None, megabyte) for n in range(size)], compression=ZSTD, base_offset=at
        )
        for at in range(0, 20 * size, size)
    )
    assert len(data) < 1 << 15
    before, peak, count = pa.total_allocated_bytes(), 0, 0
    for batch in decode(data, PLACE, 0, EVERYTHING, EVERY):
        peak = max(peak, pa.total_allocated_bytes() - before)
        count += len(batch)
    assert count == 20 * size
    assert peak < 4 * size * len(megabyte)


def test_damage_behind_the_wanted_records_is_for_others_to_find() -> None:
    data = log(5, 5)
    assert len(rows(data[:-1] + b"\xff", until=5)) == 5


# --- transactions ------------------------------------------------------------------------------


def transaction(offset: int, producer: int, *values: bytes) -> bytes:
    found = [Record(offset + n, 0, None, value) for n, value in enumerate(values)]
    kind = batches.TRANSACTIONAL
    return bytes(encode_batch(found, base_offset=offset, producer_id=producer, attributes=kind))


def marker(offset: int, producer: int, kind: int) -> bytes:
    record = Record(offset, 0, b"\0\0" + kind.to_bytes(2, "big"), b"\0" * 6)
    attributes = batches.TRANSACTIONAL | batches.CONTROL
    return bytes(encode_batch([record], base_offset=offset, producer_id=producer, attributes=attributes))


def test_aborted_transactions_are_left_out_and_their_markers_with_them() -> None:
    data = b"".join(
        [
            transaction(0, 1, b"a", b"b"),
            transaction(2, 2, b"kept"),
            log(1, first=3),
            marker(4, 1, 0),
            transaction(5, 1, b"kept, too"),
            marker(6, 2, 1),
            transaction(7, 2, b"c"),
            marker(8, 1, 1),
            marker(9, 2, 0),
        ]
    )
    assert [row["offset"] for row in rows(data)] == [0, 1, 2, 3, 5, 7]
    aborted = [Aborted(2, 7), Aborted(1, 0)]
    assert [row["offset"] for row in rows(data, aborted=aborted)] == [2, 3, 5]


def test_a_transaction_that_was_aborted_before_the_fetch_is_still_known() -> None:
    data = transaction(10, 1, b"a") + marker(11, 1, 0) + transaction(12, 1, b"b")
    assert [row["offset"] for row in rows(data, aborted=[Aborted(1, 3)])] == [12]


# --- damage ------------------------------------------------------------------------------------


def with_crc(data: bytearray) -> bytes:
    """One batch that lies, but with a checksum that holds."""
    data[17:21] = batches.crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


def test_a_flipped_bit_is_found_by_the_checksum() -> None:
    data = bytearray(log(20, 20))
    data[-3] ^= 1
    with pytest.raises(CorruptMessage, match=r"orders/3 from offset 0: .*CRC"):
        rows(bytes(data))


def test_bytes_that_end_within_a_batch_are_refused() -> None:
    with pytest.raises(CorruptMessage, match="whole batch"):
        rows(log(5, 5)[:-1])


@pytest.mark.parametrize("batch_count", [1, 50])
@pytest.mark.parametrize(
    ("at", "lie"),
    [
        (57, b"\x7f\xff\xff\xff"),  # more records than bytes
        (57, b"\0\0\0\x04"),  # one record less than there are
        (61, b"\x7f"),  # a record of another length
        (61, b"\x01"),  # a negative length
        (61, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        (63, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),  # a time without an end
        (64, b"\x09"),  # an offset below zero
        (64, b"\x7e"),  # an offset behind the batch's last
        (65, b"\x03"),  # a key's length of -2
        (65, b"\x7e"),  # a key that is longer than its record
        (71, b"\x7e"),  # a value that is longer than its record
        (71, b"\xfe\xff\xff\xff\xff\xff\xff\x7f"),
        (27, b"\x7f\xff\xff\xff\xff\xff\xff\xff"),  # a base timestamp that is no time
    ],
)
def test_a_batch_that_lies_is_refused(at: int, lie: bytes, batch_count: int) -> None:
    data = bytearray(log(5))
    data[at : at + len(lie)] = lie
    honest = b"".join(log(5, first=5 * n) for n in range(1, batch_count))
    with pytest.raises(CorruptMessage, match="orders/3"):
        rows(with_crc(data) + honest)


@given(st.randoms(use_true_random=False), st.integers(1, 6), st.sampled_from([1, 40]))
def test_random_damage_gives_rows_or_a_clear_error(
    chance: random.Random, flips: int, batch_count: int
) -> None:
    """Nothing else: no other exception, no read outside, no endless loop."""
    found = [Record(n, n, b"k", b"v" * 70, [("h", b"x")] * (n % 3)) for n in range(12)]
    data = bytearray(encode_batch(found))
    for _ in range(flips):
        data[chance.randrange(23, len(data))] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
    honest = b"".join(log(5, first=1000 + 5 * n) for n in range(batch_count))
    try:
        rows(with_crc(data) + honest)
    except PostroadError as error:
        assert str(error)  # noqa: PT017


@given(st.binary(min_size=7, max_size=300), st.integers(1, 8))
def test_random_records_give_rows_or_a_clear_error(block: bytes, count: int) -> None:
    data = bytearray(encode_batch([], last_offset_delta=count - 1))
    data[57:61] = count.to_bytes(4, "big")
    data[8:12] = (len(data) - 12 + len(block)).to_bytes(4, "big")
    try:
        rows(with_crc(data + block))
    except PostroadError as error:
        assert str(error)  # noqa: PT017


# --- against a client that others wrote --------------------------------------------------------


@pytest.fixture(scope="module")
def running() -> Iterator[Node]:
    with node() as one:
        yield one


def consume(running: Node, topic: str, count: int) -> list[tuple[Any, ...]]:
    settings = {"bootstrap.servers": running.bootstrap, "group.id": "plain", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    deadline = monotonic() + PATIENCE_S
    while len(found) < count:
        assert monotonic() < deadline
        for message in consumer.consume(count - len(found), timeout=1):
            assert message.error() is None
            kind, time = message.timestamp()
            head = (message.offset(), kind - 1, time, message.key(), message.value())
            found.append((*head, message.headers() or []))
    consumer.close()
    return found


@pytest.mark.parametrize("time_type", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("compression", NAMES)
def test_rows_are_those_of_a_plain_consumer(running: Node, compression: str, time_type: str) -> None:
    topic = f"plain-{uuid.uuid4()}"
    with Cluster(running.bootstrap) as cluster:
        cluster.create_topic(topic, 1, {"message.timestamp.type": time_type})
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": running.bootstrap, "compression.type": compression, "linger.ms": 5}
    )
    for n in range(500):
        key, value = (None if n % 4 else b"k%d" % n), (None if n % 7 == 0 else b"v" * (n % 90))
        producer.produce(topic, value, key, 0, headers=[("n", b"%d" % n), ("none", None)] * (n % 3))
    assert producer.flush(PATIENCE_S) == 0
    with Cluster(running.bootstrap) as cluster:
        data, offset = b"", 0
        while offset < 500:
            fetched = cluster.fetch((topic, 0), offset)
            data, offset = data + bytes(fetched.data), fetched.next_offset
    found = [
        (
            row["offset"],
            row["timestampType"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            [(header["key"], header["value"]) for header in row["headers"] or []],
        )
        for row in rows(data)
    ]
    assert found == consume(running, topic, 500)
