"""Produce: what is taken, what is refused and how, and when the answer comes."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.batch import CHOSEN_PRODUCERS, CONTROL, TRANSACTIONAL, crc32c, read_header
from postroad.wire.messages import fetch, produce
from postroad.wire.records import Record, decode_records, encode_batch
from tests.broker.fetching import fetch_request, only, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import RawConnection, batch_of, frame, produce_request, request_content, send_batch

(CORRUPT, UNKNOWN_TOPIC, TOO_LARGE, INVALID_TOPIC, LIST_TOO_LARGE, BAD_ACKS, BAD_TIME) = (
    2,
    3,
    10,
    17,
    18,
    21,
    32,
)
INVALID_REQUEST, OLD_FORMAT, OUT_OF_ORDER, OLD_PRODUCER, NO_TRANSACTIONS, INVALID, UNKNOWN_ID = (
    42, 43, 45, 47, 53, 87, 100,
)  # fmt: skip
NOT_ENOUGH_REPLICAS = 19
ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


def patched(batch: bytes | bytearray, at: int, layout: str, value: int) -> bytearray:
    """Another value in the header, with a CRC that holds."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, at, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return changed


def produce_at(running: Running, version: int, topic: str, topic_id: bytes, batch: Any, acks: int) -> Any:
    data = [produce.PartitionProduceData(index=0, records=batch)]
    topics = [produce.TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
    request = produce.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)
    return running.call(produce, version, request).responses[0].partition_responses[0]


@pytest.mark.parametrize("acks", [ACKS_LEADER, ACKS_ALL])
@pytest.mark.parametrize("version", range(produce.MIN_VERSION, produce.MAX_VERSION + 1))
def test_every_version_appends_and_answers_the_first_offset(shared: Running, version: int, acks: int) -> None:
    name = f"versions-{version}-{acks}"
    topic_id = shared.create(name)
    for first in (0, 2):
        answer = produce_at(shared, version, name, topic_id, batch_of(b"a", b"b"), acks)
        assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, first, -1)
        if version >= 5:
            assert answer.log_start_offset == 0


def test_acks_zero_is_never_answered_but_appended(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        silent = produce_request(topic, batch_of(b"silent"), acks=ACKS_NONE)
        connection.send(frame(request_content(produce, 9, silent, 1)))
        answer = send_batch(connection, topic, batch_of(b"loud"))  # the next answer is the next request's
        assert (answer.error_code, answer.base_offset) == (0, 1)


def test_a_refused_message_with_acks_zero_ends_the_connection(shared: Running) -> None:
    with shared.connect() as connection:
        request = produce_request("nowhere", batch_of(b"x"), acks=ACKS_NONE)
        connection.send(frame(request_content(produce, 9, request, 1)))
        assert connection.is_closed_by_broker()


@pytest.mark.parametrize("acks", [2, -2, 0x7FFF])
def test_other_acks_are_refused_and_nothing_is_appended(shared: Running, topic: str, acks: int) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x"), acks=acks).error_code == BAD_ACKS
        assert send_batch(connection, topic, batch_of(b"x")).base_offset == 0


def test_an_unknown_topic_partition_or_id_is_refused(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    with shared.connect() as connection:
        assert send_batch(connection, "nowhere", batch_of(b"x")).error_code == UNKNOWN_TOPIC
        assert send_batch(connection, topic, batch_of(b"x"), partition=1).error_code == UNKNOWN_TOPIC
        assert send_batch(connection, topic, batch_of(b"x"), partition=-1).error_code == UNKNOWN_TOPIC
    assert produce_at(shared, 13, "", b"\1" * 16, batch_of(b"x"), ACKS_ALL).error_code == UNKNOWN_ID
    assert produce_at(shared, 13, "", topic_id, batch_of(b"x"), ACKS_ALL).error_code == 0


def test_topics_of_the_nodes_own_are_written_by_nobody_else(shared: Running) -> None:
    with shared.connect() as connection:
        assert send_batch(connection, "__consumer_offsets", batch_of(b"x")).error_code == INVALID_TOPIC


def test_a_transaction_needs_all_replicas(shared: Running, topic: str) -> None:
    shared.create(topic)
    request = produce_request(topic, batch_of(b"x", attributes=TRANSACTIONAL))
    request.transactional_id, request.acks = "mine", 1
    answer = shared.call(produce, 9, request).responses[0].partition_responses[0]
    assert answer.error_code == BAD_ACKS


GOOD = batch_of(b"one", b"two")
BAD_BATCHES = {
    "null": (None, CORRUPT),
    "empty": (b"", CORRUPT),
    "cut": (bytes(GOOD[:-1]), CORRUPT),
    "header only": (bytes(GOOD[:60]), CORRUPT),
    "bad crc": (bytes(GOOD[:-1]) + b"\xff", CORRUPT),
    "magic 0": (patched(GOOD, 16, ">b", 0), OLD_FORMAT),
    "magic 1": (patched(GOOD, 16, ">b", 1), OLD_FORMAT),
    "two batches": (bytes(GOOD + GOOD), INVALID),
    "bytes behind it": (bytes(GOOD) + b"\0", INVALID),
    "count too high": (patched(GOOD, 57, ">i", 3), INVALID),
    "last offset too high": (patched(GOOD, 23, ">i", 7), INVALID),
    "count below zero": (patched(GOOD, 57, ">i", -1), CORRUPT),
    "control": (patched(GOOD, 21, ">h", CONTROL), INVALID_REQUEST),
    "transactional without an id": (patched(GOOD, 21, ">h", TRANSACTIONAL), NO_TRANSACTIONS),
    "sequence without number": (patched(patched(GOOD, 43, ">q", 5), 51, ">h", 0), INVALID),
}


@pytest.mark.parametrize("what", BAD_BATCHES)
def test_a_bad_batch_is_refused_with_its_reason_and_changes_nothing(
    shared: Running, topic: str, what: str
) -> None:
    records, code = BAD_BATCHES[what]
    shared.create(topic)
    with shared.connect() as connection:
        answer = send_batch(connection, topic, records)
        assert (answer.error_code, answer.base_offset) == (code, -1)
        assert answer.error_message
        assert send_batch(connection, topic, GOOD).base_offset == 0


def test_a_batch_above_the_topics_limit_is_refused(shared: Running, topic: str) -> None:
    shared.create(topic, max_message_bytes=1000)
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x" * 1000)).error_code == TOO_LARGE
        assert send_batch(connection, topic, batch_of(b"x" * 500)).error_code == 0


def test_a_batch_above_a_segments_size_is_refused(shared: Running, topic: str) -> None:
    shared.create(topic, segment_bytes=1000)
    with shared.connect() as connection:
        assert send_batch(connection, topic, batch_of(b"x" * 1000)).error_code == LIST_TOO_LARGE


def test_one_bad_partition_leaves_the_others_of_a_request_alone(shared: Running, topic: str) -> None:
    shared.create(topic, 2)
    data = [produce.PartitionProduceData(index=n, records=batch_of(b"x")) for n in (0, 9, 1)]
    data[2].records = b"junk"
    request = produce.ProduceRequest(
        acks=ACKS_ALL, timeout_ms=1000, topic_data=[produce.TopicProduceData(name=topic, partition_data=data)]
    )
    answers = shared.call(produce, 9, request).responses[0].partition_responses
    assert [(a.index, a.error_code) for a in answers] == [(0, 0), (9, UNKNOWN_TOPIC), (1, CORRUPT)]


def test_a_request_for_nothing_is_answered(shared: Running) -> None:
    request = produce.ProduceRequest(acks=ACKS_ALL, timeout_ms=1000, topic_data=[])
    assert shared.call(produce, 9, request).responses == []


# --- timestamps


def test_log_append_time_is_the_nodes_and_is_told(shared: Running, topic: str) -> None:
    shared.create(topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    with shared.connect() as connection:
        old = encode_batch([Record(0, 1000, b"k", b"v")])
        answer = send_batch(connection, topic, old)
    assert before <= answer.log_append_time_ms <= before + 60_000
    batch = memoryview(bytes(shared.fetch(topic, 0).records))
    assert read_header(batch).max_timestamp == answer.log_append_time_ms
    assert decode_records(batch)[0].timestamp == answer.log_append_time_ms


def test_a_timestamp_too_far_ahead_is_refused(shared: Running, topic: str) -> None:
    shared.create(topic)
    ahead = encode_batch([Record(0, int(time.time() * 1000) + 7_200_000, b"k", b"v")])
    with shared.connect() as connection:
        assert send_batch(connection, topic, ahead).error_code == BAD_TIME


# --- idempotence


def numbered(connection: RawConnection, topic: str, sequence: int, epoch: int = 0, producer: int = 77) -> Any:
    batch = batch_of(b"x", producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    answer = send_batch(connection, topic, batch)
    return answer.error_code, answer.base_offset


def test_a_repeated_batch_is_answered_with_its_first_offset_and_kept_once(
    shared: Running, topic: str
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        assert [numbered(connection, topic, n) for n in (0, 1, 2)] == [(0, 0), (0, 1), (0, 2)]
        assert numbered(connection, topic, 1) == (0, 1)
        assert numbered(connection, topic, 3) == (0, 3)
    assert shared.fetch(topic, 0).high_watermark == 4


def test_a_gap_in_the_sequence_and_an_old_epoch_are_refused(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        assert numbered(connection, topic, 0, epoch=1) == (0, 0)
        assert numbered(connection, topic, 2, epoch=1)[0] == NOT_ENOUGH_REPLICAS  # it may be filled
        assert numbered(connection, topic, 2, epoch=1, producer=CHOSEN_PRODUCERS) == (0, 1)
        assert numbered(connection, topic, 4, epoch=1, producer=CHOSEN_PRODUCERS)[0] == OUT_OF_ORDER
        assert numbered(connection, topic, 1, epoch=0)[0] == OLD_PRODUCER
        assert numbered(connection, topic, 1, epoch=1) == (0, 2)


# --- when the answer comes


def test_many_connections_get_offsets_of_their_own(shared: Running, topic: str) -> None:
    shared.create(topic)
    connections = [shared.connect() for _ in range(20)]
    for connection in connections:
        connection.send(frame(request_content(produce, 9, produce_request(topic, batch_of(b"x")), 1)))
    offsets = [
        produce.decode_response(connection.receive()[5:], 9).responses[0].partition_responses[0].base_offset
        for connection in connections
    ]
    assert sorted(offsets) == list(range(20))
    for connection in connections:
        connection.socket.close()


def test_acks_all_waits_for_the_sync_and_acks_one_does_not(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    running.create("t")
    partition = running.partition("t")
    running.on_loop(lambda: setattr(partition, "syncing", True))  # as if a sync were under way
    with running.connect() as eager, running.connect() as careful, running.connect() as reader:
        assert send_batch(eager, "t", batch_of(b"1"), acks=ACKS_LEADER).base_offset == 0
        careful.send(frame(request_content(produce, 9, produce_request("t", batch_of(b"2")), 1)))
        until(lambda: partition.producers, "the careful one waits")
        unseen = only(reader.call(fetch, 12, fetch_request("t", wanted(), min_bytes=0)))
        assert (unseen.high_watermark, bytes(unseen.records or b"")) == (0, b"")

        def sync() -> None:
            partition.syncing = False
            running.node.flusher.request(partition)

        running.on_loop(sync)
        answer = produce.decode_response(careful.receive()[5:], 9).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, 1)
    assert running.fetch("t", 0).high_watermark == 2
