"""Batches that are damaged, lie or explode are refused with a clear code; what is refused is not stored."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from confluent_kafka import TopicPartition

from postroad.testing import Node
from postroad.wire.batch import crc32c
from tests.clients.confluent import producer, read_from, send_all

from .conftest import create_topic, memory_stays_flat, unharmed
from .raw import RawConnection, batch_of, fetch_at, metadata_of, send_batch

CORRUPT, INVALID_RECORD, INVALID_TOPIC, INVALID_ACKS, TOO_LARGE = 2, 87, 17, 21, 10
# Kafka itself answers some of these with CORRUPT_MESSAGE and some with INVALID_RECORD; both are final or
# harmless for clients. What matters: never stored, never UNKNOWN_SERVER_ERROR.
CLEAR = {CORRUPT, TOO_LARGE, 18, 42, 43, 48, 53, 76, INVALID_RECORD}


def with_crc(batch: bytearray) -> bytes:
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def changed(format_: str, position: int, value: int) -> bytes:
    """A good batch of two records with one field of its header changed, and a CRC that holds."""
    batch = batch_of(b"one", b"two")
    struct.pack_into(format_, batch, position, value)
    return with_crc(batch)


def attributes(flags: int) -> bytes:
    return changed(">h", 21, flags)


def flipped(position: int) -> bytes:
    batch = batch_of(b"one", b"two")
    batch[position] ^= 1
    return bytes(batch)


BAD_BATCHES: dict[str, Callable[[], bytes | None]] = {
    "a bit of a value flipped": lambda: flipped(-3),
    "a bit of the CRC flipped": lambda: flipped(18),
    "a bit of the timestamps flipped": lambda: flipped(30),
    "magic 0": lambda: changed(">b", 16, 0),
    "magic 1": lambda: changed(">b", 16, 1),
    "magic 3": lambda: changed(">b", 16, 3),
    "unknown compression": lambda: attributes(5),
    "control batch": lambda: attributes(0x20),
    "transactional batch": lambda: attributes(0x10),
    "fewer than no records": lambda: changed(">i", 57, -3),
    "no records though offsets": lambda: changed(">i", 57, 0),
    "more records than offsets": lambda: changed(">i", 57, 7),
    "last offset below zero": lambda: changed(">i", 23, -1),
    "more offsets than records": lambda: changed(">i", 23, 9),
    "length too long": lambda: changed(">i", 8, 1000),
    "length below its header": lambda: changed(">i", 8, 10),
    "length below zero": lambda: changed(">i", 8, -5),
    "only zeros": lambda: bytes(100),
    "shorter than a header": lambda: bytes(batch_of(b"one"))[:40],
    "nothing": lambda: b"",
    "producer id without a sequence": lambda: bytes(batch_of(b"one", producer_id=7, producer_epoch=0)),
}


@pytest.fixture(scope="module")
def topic(shared: Node) -> str:
    create_topic(shared, "hostile")
    return "hostile"


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_bad_batch_is_refused_and_not_stored(shared: Node, topic: str, name: str) -> None:
    with RawConnection(shared.bootstrap) as connection:
        before = fetch_at(connection, topic, 0).high_watermark
        answer = send_batch(connection, topic, BAD_BATCHES[name]())
        assert answer.error_code in CLEAR, f"error {answer.error_code}: {answer.error_message}"
        assert answer.base_offset == -1
        # The same connection goes on, and the next good batch is the next offset.
        assert send_batch(connection, topic, bytes(batch_of(b"good"))).base_offset == before


def test_flipped_bit_is_a_corrupt_message(shared: Node, topic: str) -> None:
    with RawConnection(shared.bootstrap) as connection:
        assert send_batch(connection, topic, flipped(-1)).error_code == CORRUPT


def test_wrong_acks_are_refused(shared: Node, topic: str) -> None:
    with RawConnection(shared.bootstrap) as connection:
        assert send_batch(connection, topic, bytes(batch_of(b"one")), acks=5).error_code == INVALID_ACKS


def test_good_partition_is_stored_beside_a_refused_one(shared: Node) -> None:
    create_topic(shared, "beside", partitions=2)
    with RawConnection(shared.bootstrap) as connection:
        assert send_batch(connection, "beside", flipped(-1), partition=0).error_code == CORRUPT
        assert send_batch(connection, "beside", bytes(batch_of(b"one")), partition=1).error_code == 0


def test_compacted_topic_refuses_a_message_without_a_key(shared: Node) -> None:
    config: dict[str, Any] = {"cleanup.policy": "compact"}
    create_topic(shared, "compacted", **config)
    with RawConnection(shared.bootstrap) as connection:
        refused = send_batch(connection, "compacted", bytes(batch_of(b"one", key=None)))
        assert refused.error_code == INVALID_RECORD
        assert send_batch(connection, "compacted", bytes(batch_of(b"one", key=b"k"))).error_code == 0


# --- decompression bombs: a few dozen kilobytes that unpack to a gigabyte --------------------------

PIECE = bytes(16 << 20)
PIECES = 64


def _snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(1 << 20)))
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + (struct.pack(">i", len(block)) + block) * 20  # 20 MB: snappy packs 20 times at best


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (1, lambda: gzip.compress(PIECE) * PIECES),
    "snappy": (2, _snappy_bomb),
    "lz4": (3, lambda: bytes(cramjam.lz4.compress(PIECE)) * PIECES),
    "zstd": (4, lambda: bytes(cramjam.zstd.compress(PIECE)) * PIECES),
}


@pytest.mark.parametrize("config", [{"cleanup.policy": "compact"}, {"compression.type": "uncompressed"}])
@pytest.mark.parametrize("codec", BOMBS)
def test_decompression_bomb_is_refused_at_once_and_never_unpacked(
    shared: Node, codec: str, config: dict[str, str]
) -> None:
    """Both kinds of topic make the broker look inside."""
    name = f"bomb-{codec}-{'-'.join(config.values())}"
    settings: dict[str, Any] = {**config, "max.message.bytes": 20_000_000}
    create_topic(shared, name, **settings)
    number, pack = BOMBS[codec]
    batch = batch_of(b"")[:61] + pack()
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, number)
    bomb = with_crc(batch)
    with (
        unharmed(shared),
        memory_stays_flat(shared, grows_mb_max=150),
        RawConnection(shared.bootstrap) as connection,
    ):
        started = time.monotonic()
        answer = send_batch(connection, name, bomb)
        assert answer.error_code in CLEAR, f"error {answer.error_code}: {answer.error_message}"
        assert time.monotonic() - started < 10
        assert fetch_at(connection, name, 0).high_watermark == 0


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "/etc/passwd", "../../x", "a\0b", "x" * 250, "", "ü", "a b"]
)
def test_illegal_topic_name_is_refused_everywhere(shared: Node, name: str) -> None:
    with RawConnection(shared.bootstrap) as connection:
        (asked,) = metadata_of(connection, name).topics
        assert asked.error_code == INVALID_TOPIC
        assert send_batch(connection, name, bytes(batch_of(b"one"))).error_code in {3, INVALID_TOPIC}
        assert fetch_at(connection, name, 0).error_code in {3, INVALID_TOPIC}
    paths = {path.name for path in shared.data_dir.rglob("*")}
    assert name not in paths
    assert not (shared.data_dir.parent / "x").exists()


def test_topic_is_still_read_by_a_real_client(shared: Node, topic: str) -> None:
    (acknowledged,) = send_all(producer(shared.bootstrap), topic, [{"value": b"last"}])
    (message,) = read_from(shared.bootstrap, TopicPartition(topic, 0, acknowledged.offset()), 1)
    assert message.value() == b"last"
