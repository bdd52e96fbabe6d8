"""The short ways of the hot path answer as the long ones do, and whatever is odd about a frame ends there."""

from __future__ import annotations

import errno
import random
import struct
from collections.abc import Callable

import pytest

from postroad.broker.metrics.collect import collect
from postroad.wire.batch import CONTROL, TRANSACTIONAL
from postroad.wire.messages import fetch, produce
from tests.broker.failing_disk import use_failing_disk
from tests.broker.fetching import fetch_request, send, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import Closed, RawConnection, batch_of, frame, produce_request, request_content
from tests.simulator.simulated_node import SimulatedNode

VERSIONS = range(3, 14)
SHORT_WAYS = ["true", "false"]
STORAGE_FAILED, NOT_ENOUGH_REPLICAS, INVALID_ACKS, INVALID_REQUEST, NO_TRANSACTIONS = 56, 19, 21, 42, 53


def produced(
    topic: str | bytes,
    correlation: int,
    version: int,
    value: bytes = b"x",
    acks: int = -1,
    batch: bytes | bytearray | None = None,
) -> bytes:
    """`topic` is a name, or from version 13 on an id."""
    request = produce_request("", batch or batch_of(value), acks=acks)
    if isinstance(topic, bytes):
        request.topic_data[0].topic_id = topic
    else:
        request.topic_data[0].name = topic
    return frame(request_content(produce, version, request, correlation))


def answers(connection: RawConnection, version: int, count: int) -> list[tuple[int, int, int]]:
    """(correlation, error, base offset) of each."""
    found = []
    for _ in range(count):
        data = connection.receive()
        (correlation,) = struct.unpack_from(">i", data)
        response = produce.decode_response(data[5 if version >= 9 else 4 :], version)
        partition = response.responses[0].partition_responses[0]
        found.append((correlation, partition.error_code, partition.base_offset))
    return found


def until_closed(connection: RawConnection) -> int:
    """How many answers still come."""
    for count in range(10):
        try:
            connection.receive()
        except Closed:
            return count
    raise AssertionError("the connection goes on")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [-1, 1])
def test_repeated_produces_are_answered_each_with_its_own_offset(
    shared: Running, topic: str, version: int, acks: int
) -> None:
    topic_id = shared.create(topic)
    key = topic_id if version >= 13 else topic
    with shared.connect() as connection:
        connection.send(b"".join(produced(key, 100 + n, version, b"%d" % n, acks) for n in range(40)))
        assert answers(connection, version, 40) == [(100 + n, 0, n) for n in range(40)]


@pytest.mark.parametrize("version", [7, 9, 12])
def test_a_bad_batch_among_repeated_ones_is_refused_alone(shared: Running, topic: str, version: int) -> None:
    shared.create(topic)
    bad = bytearray(produced(topic, 3, version))
    bad[-8] ^= 1  # in the record: the CRC does not hold
    with shared.connect() as connection:
        connection.send(
            produced(topic, 1, version)
            + produced(topic, 2, version)
            + bytes(bad)
            + produced(topic, 4, version)
        )
        assert answers(connection, version, 4) == [(1, 0, 0), (2, 0, 1), (3, 2, -1), (4, 0, 2)]


@pytest.mark.parametrize("short_ways", SHORT_WAYS)
def test_acks_all_is_answered_after_the_sync_and_not_before(
    start: Callable[..., Running], short_ways: str
) -> None:
    running = start(kafka_short_ways=short_ways)
    disk = use_failing_disk(running)
    running.create("t")
    partition = running.partition("t")
    with running.connect() as connection:
        connection.send(produced("t", 1, 9))
        assert answers(connection, 9, 1) == [(1, 0, 0)]
        disk.gate.clear()
        try:
            connection.send(b"".join(produced("t", n, 9) for n in (2, 3, 4)))
            until(lambda: partition.log.written_offset == 4, "they are written")
            running.on_loop(lambda: None)  # the turn that wrote them is over
            assert not running.inside(connection).answered_all
            assert partition.high_watermark == 1
        finally:
            disk.gate.set()
        assert answers(connection, 9, 3) == [(2, 0, 1), (3, 0, 2), (4, 0, 3)]


@pytest.mark.parametrize("short_ways", SHORT_WAYS)
def test_acks_all_is_refused_when_the_sync_fails(start: Callable[..., Running], short_ways: str) -> None:
    running = start(kafka_short_ways=short_ways)
    disk = use_failing_disk(running)
    running.create("t")
    with running.connect() as connection:
        connection.send(produced("t", 1, 9))
        assert answers(connection, 9, 1) == [(1, 0, 0)]
        disk.fail("sync", "", errno.EIO)
        connection.send(b"".join(produced("t", n, 9) for n in (2, 3, 4)))
        assert answers(connection, 9, 3) == [(n, STORAGE_FAILED, -1) for n in (2, 3, 4)]


@pytest.mark.parametrize("short_ways", SHORT_WAYS)
def test_control_and_transactional_batches_are_refused_also_when_they_repeat(
    start: Callable[..., Running], short_ways: str
) -> None:
    running = start(kafka_short_ways=short_ways)
    running.create("t")
    with running.connect() as connection:
        for attributes in (CONTROL, TRANSACTIONAL):
            bad = batch_of(b"x", attributes=attributes)
            connection.send(
                produced("t", 1, 9) + produced("t", 2, 9, batch=bad) + produced("t", 3, 9, batch=bad)
            )
            codes = [code for _, code, _ in answers(connection, 9, 3)]
            refusal = INVALID_REQUEST if attributes == CONTROL else NO_TRANSACTIONS
            assert codes == [0, refusal, refusal]
    assert running.partition("t").log.end_offset == 2


@pytest.mark.parametrize("short_ways", SHORT_WAYS)
def test_acks_all_needs_min_insync_replicas_and_acks_1_does_not(
    start: Callable[..., Running], short_ways: str
) -> None:
    running = start(kafka_short_ways=short_ways)
    running.create("t", min_insync_replicas=2)
    with running.connect() as connection:
        connection.send(b"".join(produced("t", n, 9) for n in (1, 2, 3)))
        assert answers(connection, 9, 3) == [(n, NOT_ENOUGH_REPLICAS, -1) for n in (1, 2, 3)]
        connection.send(b"".join(produced("t", n, 9, acks=1) for n in (1, 2, 3)))
        assert answers(connection, 9, 3) == [(n, 0, n - 1) for n in (1, 2, 3)]


@pytest.mark.parametrize("short_ways", SHORT_WAYS)
def test_acks_that_do_not_exist_are_refused_also_when_they_repeat(
    start: Callable[..., Running], short_ways: str
) -> None:
    running = start(kafka_short_ways=short_ways)
    running.create("t")
    with running.connect() as connection:
        connection.send(b"".join(produced("t", n, 9, acks=2) for n in (1, 2, 3)))
        assert answers(connection, 9, 3) == [(n, INVALID_ACKS, -1) for n in (1, 2, 3)]
    assert running.partition("t").log.end_offset == 0


@pytest.mark.parametrize(("short_ways", "taken"), [("true", 4), ("false", 0)])
def test_requests_that_take_a_short_way_are_counted(
    start: Callable[..., Running], short_ways: str, taken: int
) -> None:
    running = start(kafka_short_ways=short_ways)
    running.create("t")
    with running.connect() as connection:
        connection.send(produced("t", 0, 9))
        answers(connection, 9, 1)
        for n in range(4):
            connection.send(produced("t", n, 9))
            answers(connection, 9, 1)
        for n in range(5):
            send(connection, fetch_request("t", wanted(offset=n)), correlation=n)
            connection.receive()
    page = running.run(collect(running.node))
    for api in ("produce", "fetch"):
        line = f'postroad_short_way_requests_total{{node="1",api="{api}"}} {taken}\n'
        assert (line in page) == (taken > 0)
    assert ("short_way" in page) == (taken > 0)


def test_partitions_and_versions_may_change_between_requests(shared: Running, topic: str) -> None:
    shared.create(topic)
    other = f"{topic}-2"
    shared.create(other)
    with shared.connect() as connection:
        for turn in range(3):
            for version in (7, 9):
                connection.send(produced(topic, 1, version) + produced(other, 2, version))
                offset = 2 * turn + (version == 9)
                assert answers(connection, version, 2) == [(1, 0, offset), (2, 0, offset)]


def test_a_topic_that_goes_between_two_produces_is_noticed(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        connection.send(produced(topic, 1, 9))
        assert answers(connection, 9, 1) == [(1, 0, 0)]
        shared.delete(topic)
        connection.send(produced(topic, 2, 9))
        assert answers(connection, 9, 1) == [(2, 3, -1)]
        shared.create(topic)
        connection.send(produced(topic, 3, 9))
        assert answers(connection, 9, 1) == [(3, 0, 0)]


@pytest.mark.parametrize("size", range(1, 12))
def test_a_frame_too_short_for_a_header_after_a_produce_ends_its_connection_only(
    shared: Running, topic: str, size: int
) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        connection.send(produced(topic, 1, 9))
        assert answers(connection, 9, 1) == [(1, 0, 0)]
        connection.send(produced(topic, 2, 9) + frame(bytes(size)))
        assert until_closed(connection) <= 1
    assert shared.publish(topic, b"others go on") in (1, 2)


def test_mutants_of_a_repeated_produce_never_stop_the_node(shared: Running, topic: str) -> None:
    shared.create(topic)
    dice = random.Random(5)
    good = produced(topic, 1, 9)
    for _ in range(150):
        content = bytearray(good[4:])
        for _ in range(dice.randrange(1, 4)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        mutant = frame(bytes(content[: dice.randrange(1, len(content) + 1)]))
        with shared.connect() as connection:
            connection.send(good)
            assert answers(connection, 9, 1)[0][1] == 0
            connection.send(mutant)  # answered, or the end of this connection
    assert shared.publish(topic, b"alive") >= 150


def test_a_waiting_consumer_is_answered_by_the_next_commit_each_time(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader, shared.connect() as writer:
        for offset in range(20):
            send(reader, fetch_request(topic, wanted(offset=offset), wait_ms=10_000), correlation=offset)
            writer.send(produced(topic, offset, 9, b"%d" % offset))
            data = reader.receive()
            assert struct.unpack_from(">i", data) == (offset,)
            partition = fetch.decode_response(data[5:], 12).responses[0].partitions[0]
            assert (partition.error_code, partition.high_watermark) == (0, offset + 1)
            assert partition.records
            assert answers(writer, 9, 1) == [(offset, 0, offset)]


def test_a_waiting_consumer_gets_an_empty_answer_when_its_time_is_over(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate()
    running.create("t")
    with running.connect() as reader:
        for turn in range(3):
            began = running.world.now
            send(reader, fetch_request("t", wanted(), wait_ms=20_000), correlation=turn)
            partition = fetch.decode_response(reader.receive()[5:], 12).responses[0].partitions[0]
            assert (partition.error_code, bytes(partition.records or b"")) == (0, b"")
            assert 20 <= running.world.now - began < 20.2


def test_a_waiting_consumer_hears_that_its_topic_is_gone(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader:
        send(reader, fetch_request(topic, wanted(), wait_ms=50), correlation=1)
        reader.receive()
        send(reader, fetch_request(topic, wanted(), wait_ms=15_000), correlation=2)
        shared.delete(topic)
        partition = fetch.decode_response(reader.receive()[5:], 12).responses[0].partitions[0]
        assert partition.error_code == 3


def test_much_data_for_a_waiting_consumer_goes_the_long_way(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as reader, shared.connect() as writer:
        send(reader, fetch_request(topic, wanted(), wait_ms=20), correlation=1)
        reader.receive()
        send(reader, fetch_request(topic, wanted(), wait_ms=10_000), correlation=2)
        writer.send(produced(topic, 1, 9, bytes(200_000)))
        partition = fetch.decode_response(reader.receive()[5:], 12).responses[0].partitions[0]
        assert len(partition.records or b"") > 200_000
