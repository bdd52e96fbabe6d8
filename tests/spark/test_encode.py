"""The vectorised encoder writes, byte for byte, what the plain one writes, and plain consumers read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import HEADERS, KEY, TIMESTAMP, TYPES, VALUE
from postroad.spark.decode import decode
from postroad.spark.encode import encode
from postroad.testing import Node
from postroad.wire.compression import NAMES, codec_of
from postroad.wire.records import Record, encode_batch

TOP = 1_700_000_000_000

times = st.integers(0, TOP)
texts = st.none() | st.binary(max_size=12) | st.sampled_from([b"", b"x" * 63, b"x" * 64, b"x" * 9000])
headers = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)
records = st.lists(st.tuples(times, texts, texts, headers), min_size=1, max_size=30).map(
    lambda rows: [Record(n, *row) for n, row in enumerate(rows)]
)


def arrow(found: Sequence[Record], with_headers: bool = True) -> Any:
    pairs = [
        [{"key": key, "value": value} for key, value in record.headers] if record.headers or n % 2 else None
        for n, record in enumerate(found)
    ]
    arrays = {
        KEY: pa.array([record.key for record in found], pa.binary()),
        VALUE: pa.array([record.value for record in found], pa.binary()),
        TIMESTAMP: pa.array([record.timestamp for record in found], pa.int64()),
    }
    if with_headers:
        arrays[HEADERS] = pa.array(pairs, TYPES[HEADERS])
    return pa.RecordBatch.from_pydict(arrays)


@given(records, st.integers(0, 4))
def test_bytes_are_those_of_the_plain_encoder(found: list[Record], compression: int) -> None:
    options = {"compression": compression, "producer_id": 1 << 61, "producer_epoch": 7, "base_sequence": 5}
    assert encode(arrow(found), **options) == encode_batch(found, **options)


@given(records, st.data())
def test_a_slice_is_encoded_without_its_neighbours(found: list[Record], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(found) - 1))
    count = data.draw(st.integers(1, len(found) - first))
    mine = [record._replace(offset=n) for n, record in enumerate(found[first : first + count])]
    assert encode(arrow(found).slice(first, count)) == encode_batch(mine)


@given(records)
def test_what_was_encoded_is_decoded(found: list[Record]) -> None:
    data = bytes(encode(arrow(found)))
    (read,) = decode(data, ("t", 0), 0, len(found), columns.every(headers=True))
    assert encode(read.select([KEY, VALUE, TIMESTAMP, HEADERS])) == data


def test_columns_that_are_not_there_are_null() -> None:
    found = [Record(n, TOP, None, b"v%d" % n) for n in range(100)]
    assert encode(arrow(found, with_headers=False).drop_columns([KEY])) == encode_batch(found)


def test_numbers_of_every_length_are_written() -> None:
    times_ms = [0, 63, 64, 8191, 8192, 1 << 20, 1 << 27, 1 << 34, 1 << 41, 5, 0]
    found = [Record(n, time, b"k" * (n * 800), b"v" * (1 << n)) for n, time in enumerate(times_ms)]
    assert encode(arrow(found)) == encode_batch(found)
    many = [Record(n, TOP - n, None, None) for n in range(20_000)]
    assert encode(arrow(many)) == encode_batch(many)


def test_text_columns_are_taken_as_bytes() -> None:
    rows = pa.RecordBatch.from_pydict(
        {VALUE: pa.array(["ä", None]), TIMESTAMP: pa.array([1_000_999, 2_000_000], pa.timestamp("us"))}
    )
    assert encode(rows) == encode_batch([Record(0, 1000, None, "ä".encode()), Record(1, 2000, None, None)])


@pytest.mark.parametrize("compression", NAMES)
def test_plain_consumers_read_what_was_encoded(postroad_session: Node, compression: str) -> None:
    topic = f"encoded-{compression}"
    found = [
        Record(
            n,
            TOP + n,
            None if n % 3 else b"k%d" % n,
            b"v" * (n % 90) if n % 7 else None,
            [("h", b"x")] * (n % 3),
        )
        for n in range(500)
    ]
    with Cluster(postroad_session.bootstrap) as cluster:
        cluster.create_topic(topic, 1)
        batch = encode(arrow(found), compression=codec_of(compression))
        assert cluster.produce((topic, 0), bytes(batch)) == 0
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": postroad_session.bootstrap, "group.id": "plain"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    read: list[Record] = []
    while len(read) < len(found):
        for message in consumer.consume(500, timeout=10):
            assert message.error() is None
            texts = (message.timestamp()[1], message.key(), message.value(), message.headers() or [])
            read.append(Record(message.offset(), *texts))
    consumer.close()
    assert read == found
