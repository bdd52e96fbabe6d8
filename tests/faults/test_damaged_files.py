"""Torn tails are cut, damaged helpers are rebuilt, damaged messages are answered as such and never served.

Each partition of a topic is harmed in another way, so that one restart tries them all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Message, TopicPartition

from postroad.testing import Node, node
from postroad.wire.messages import init_producer_id
from postroad.wire.records import Record, encode_batch
from tests.clients.confluent import consumer, read, read_from

from .conftest import create_topic
from .files import HARM, cut_at, flip_bit, last_batch_at, partition_directories, segments
from .raw import RawConnection, batch_of, fetch_at, send_batch

CORRUPT = 2
KEPT = [b"kept-0", b"kept-1", b"kept-2"]
LAST = [b"last"]
LAST_BYTES = len(batch_of(*LAST))
EPOCH_FIELD = range(12, 16)  # lies outside the CRC: a change there is not seen, and changes no message


class Crashed(NamedTuple):
    node: Node
    directories: list[Path]  # of the partitions


@pytest.fixture
def crashed(tmp_path: Path) -> Iterator[Crashed]:
    """Killed; each partition holds a batch of three messages and a last one that was never synced."""
    with node(directory=tmp_path) as running:
        create_topic(running, "harmed", 2 * LAST_BYTES, **{"postroad.flush": "os"})
        with RawConnection(running.bootstrap) as connection:
            for partition in range(2 * LAST_BYTES):
                assert (
                    send_batch(connection, "harmed", bytes(batch_of(*KEPT)), partition=partition).error_code
                    == 0
                )
                assert (
                    send_batch(connection, "harmed", bytes(batch_of(*LAST)), partition=partition).base_offset
                    == 3
                )
        directories = partition_directories(running, "harmed")
        running.kill()
        yield Crashed(running, directories)


def values_by_partition(running: Node, topic: str, partitions: int) -> dict[int, list[bytes | None]]:
    """All messages of all partitions, read by a real client that checks every CRC."""
    with consumer(running.bootstrap, check_crcs=True) as source:
        places = [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)]
        ends = [source.get_watermark_offsets(place, timeout=60)[1] for place in places]
        assert max(ends) <= 1000, f"partition {ends.index(max(ends))} claims to end at offset {max(ends)}"
        source.assign(places)
        messages: list[Message] = read(source, sum(ends))
    found: dict[int, list[bytes | None]] = {partition: [] for partition in range(partitions)}
    for message in messages:
        assert message.offset() == len(found[message.partition()]), "offsets have neither gaps nor repeats"
        found[message.partition()].append(message.value())
    return found


def assert_next_offset_is_free(running: Node, topic: str, ends: dict[int, int]) -> None:
    with RawConnection(running.bootstrap) as connection:
        for partition, end in ends.items():
            answer = send_batch(connection, topic, bytes(batch_of(b"new")), partition=partition)
            assert (answer.error_code, answer.base_offset) == (0, end)


def test_last_batch_cut_at_every_byte_is_dropped_whole_and_the_rest_is_kept(crashed: Crashed) -> None:
    for length, directory in enumerate(crashed.directories[:LAST_BYTES]):
        (segment,) = segments(directory)
        cut_at(segment, last_batch_at(segment) + length)
    crashed.node.start()
    found = values_by_partition(crashed.node, "harmed", 2 * LAST_BYTES)
    for partition, values in found.items():
        assert values == (KEPT if partition < LAST_BYTES else KEPT + LAST), f"cut after {partition} bytes"
    assert_next_offset_is_free(
        crashed.node, "harmed", {partition: len(values) for partition, values in found.items()}
    )


def test_bit_flipped_in_every_byte_of_the_unsynced_batch_is_never_served(crashed: Crashed) -> None:
    for place, directory in enumerate(crashed.directories[:LAST_BYTES]):
        (segment,) = segments(directory)
        flip_bit(segment, last_batch_at(segment) + place, bit=place % 8)
    crashed.node.start()
    found = values_by_partition(crashed.node, "harmed", LAST_BYTES)
    for place, values in found.items():
        assert values == (KEPT + LAST if place in EPOCH_FIELD else KEPT), f"a bit of byte {place} flipped"


def test_what_a_power_cut_may_leave_behind_the_last_batch_is_cut_off(crashed: Crashed) -> None:
    tails = [
        bytes(4096),
        b"\xff" * 4096,
        bytes(batch_of(b"x"))[:30],
        bytes(61),
        bytes(batch_of(b"old offset")),
    ]
    for tail, directory in zip(tails, crashed.directories, strict=False):
        (segment,) = segments(directory)
        segment.write_bytes(segment.read_bytes() + tail)
    crashed.node.start()
    found = values_by_partition(crashed.node, "harmed", len(tails))
    assert found == dict.fromkeys(range(len(tails)), KEPT + LAST)
    assert_next_offset_is_free(crashed.node, "harmed", dict.fromkeys(range(len(tails)), 4))


# --- helpers beside the log ----------------------------------------------------------------------

HELPERS = ["*.index", "*.producers", "leader-epochs", "checkpoint"]
CASES = [(pattern, how) for pattern in HELPERS for how in HARM]
BATCHES = 40
BASE_MS = 1_700_000_000_000
LONG_AGO_IS_FINE = {"retention.ms": -1}
SMALL = {"segment.bytes": 1500, "index.interval.bytes": 100, **LONG_AGO_IS_FINE}


def numbered_batch(number: int, producer_id: int) -> bytes:
    record = Record(0, BASE_MS + number * 1000, b"key", b"value-%d" % number)
    return bytes(encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=number))


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_damaged_helper_files_are_rebuilt_from_the_log(tmp_path: Path, end: str) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, "helped", len(CASES), **SMALL)
        with RawConnection(running.bootstrap) as connection:
            asked = init_producer_id.InitProducerIdRequest(transaction_timeout_ms=1000)
            producer_id = connection.call(init_producer_id, 4, asked).producer_id
            for number in range(BATCHES):
                for partition in range(len(CASES)):
                    answer = send_batch(
                        connection, "helped", numbered_batch(number, producer_id), partition=partition
                    )
                    assert (answer.error_code, answer.base_offset) == (0, number)
        directories = partition_directories(running, "helped")
        running.stop() if end == "stopped" else running.kill()
        harmed = _harm(directories)
        assert harmed == set(HELPERS), "the files have other names by now"
        running.start()

        found = values_by_partition(running, "helped", len(CASES))
        for partition, (pattern, how) in enumerate(CASES):
            assert found[partition] == [b"value-%d" % n for n in range(BATCHES)], f"{pattern} {how}"
        assert_lookups_are_right(running)
        assert_duplicates_are_known(running, producer_id)


def _harm(directories: list[Path]) -> set[str]:
    """Harm every file of each case; the patterns that there were files for."""
    harmed = set()
    for directory, (pattern, how) in zip(directories, CASES, strict=True):
        for file in directory.glob(pattern):
            if file.stat().st_size:
                HARM[how](file)
                harmed.add(pattern)
    return harmed


def assert_lookups_are_right(running: Node) -> None:
    with consumer(running.bootstrap) as source:
        for number in (0, 1, 17, BATCHES - 1):
            asked = [TopicPartition("helped", p, BASE_MS + number * 1000) for p in range(len(CASES))]
            for place in source.offsets_for_times(asked, timeout=60):
                assert place.offset == number, CASES[place.partition]
    with RawConnection(running.bootstrap) as connection:
        for partition, case in enumerate(CASES):
            part = fetch_at(connection, "helped", 23, partition)
            assert part.error_code == 0, case
            assert int.from_bytes(part.records[:8]) == 23, case


def assert_duplicates_are_known(running: Node, producer_id: int) -> None:
    """The last batch sent again is answered with its first offset, the next one is appended."""
    with RawConnection(running.bootstrap) as connection:
        for partition, case in enumerate(CASES):
            for number in (BATCHES - 1, BATCHES):
                batch = numbered_batch(number, producer_id)
                answer = send_batch(connection, "helped", batch, partition=partition)
                assert (answer.error_code, answer.base_offset) == (0, number), case


# --- messages that were safe on disk and have rotted ----------------------------------------------


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_rotten_message_is_answered_as_corrupt_and_nothing_is_truncated(tmp_path: Path, end: str) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, "rotten", **SMALL)
        with RawConnection(running.bootstrap) as connection:
            for number in range(BATCHES):
                assert send_batch(connection, "rotten", numbered_batch(number, -1)).error_code == 0
        (directory,) = partition_directories(running, "rotten")
        running.stop() if end == "stopped" else running.kill()
        cold = segments(directory)[1]
        first_offset, size = int(cold.stem), cold.stat().st_size
        flip_bit(cold, len(numbered_batch(0, -1)) - 2)  # inside its first batch's value
        running.start()

        with RawConnection(running.bootstrap) as connection:
            rotten = fetch_at(connection, "rotten", first_offset)
            assert rotten.error_code == CORRUPT
            assert rotten.high_watermark == BATCHES
            assert not rotten.records
            before = fetch_at(connection, "rotten", 0)
            assert before.error_code == 0
        third = int(segments(directory)[2].stem)
        messages = read_from(
            running.bootstrap, TopicPartition("rotten", 0, third), BATCHES - third, check_crcs=True
        )
        assert [message.offset() for message in messages] == list(range(third, BATCHES))
        assert cold.stat().st_size == size
        assert_next_offset_is_free(running, "rotten", {0: BATCHES})


def test_what_lies_before_a_rotten_message_is_served_at_once(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, "rotten", **SMALL)
        with RawConnection(running.bootstrap) as connection:
            for number in range(BATCHES):
                assert send_batch(connection, "rotten", numbered_batch(number, -1)).error_code == 0
        (directory,) = partition_directories(running, "rotten")
        running.kill()
        cold = segments(directory)[1]
        flip_bit(cold, last_batch_at(cold) + len(numbered_batch(0, -1)) - 2)
        running.start()

        with RawConnection(running.bootstrap) as connection:
            before = fetch_at(connection, "rotten", int(cold.stem))
            assert before.error_code == 0
            assert len(before.records) == last_batch_at(cold)


def test_reader_of_a_rotten_log_never_sees_a_wrong_value(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, "rotten", **SMALL)
        with RawConnection(running.bootstrap) as connection:
            for number in range(BATCHES):
                send_batch(connection, "rotten", numbered_batch(number, -1))
        (directory,) = partition_directories(running, "rotten")
        running.stop()
        harmed = segments(directory)[1:-1:2]
        for segment in harmed:
            flip_bit(segment, segment.stat().st_size // 2)
        running.start()
        with consumer(running.bootstrap, check_crcs=False) as source:
            source.assign([TopicPartition("rotten", 0, OFFSET_BEGINNING)])
            seen = read(source, int(harmed[0].stem))  # what lies before the damage is served
            deadline = time.monotonic() + 1.5
            while time.monotonic() < deadline:
                seen += [message for message in source.consume(100, 0.2) if not message.error()]
        assert all(message.value() == b"value-%d" % message.offset() for message in seen)
