"""One client's connection: order, pipelining, back-pressure, and what ends it."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable

import pytest

from postroad.broker.connection import REQUESTS_IN_FLIGHT_MAX
from postroad.wire.messages import api_versions, fetch, produce
from tests.broker.failing_disk import use_failing_disk
from tests.broker.fetching import fetch_request, send, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import (
    ANSWER_S,
    Closed,
    batch_of,
    frame,
    produce_request,
    request_content,
    send_batch,
)
from tests.simulator.simulated_node import SimulatedNode


def ping(correlation: int) -> bytes:
    return frame(request_content(api_versions, 0, api_versions.ApiVersionsRequest(), correlation))


def correlation_of(answer: bytes) -> int:
    return int(struct.unpack_from(">i", answer)[0])


def produced(topic: str, correlation: int, acks: int = -1, value: bytes = b"x") -> bytes:
    request = produce_request(topic, batch_of(value), acks=acks)
    return frame(request_content(produce, 9, request, correlation))


def unanswerable(kind: str) -> bytes:
    """A request that ends its connection."""
    if kind == "an unknown api":
        return frame(struct.pack(">hhih", 9999, 0, 9, -1))
    if kind == "an api that is not there":
        return frame(struct.pack(">hhih", CREATE_DELEGATION_TOKEN, 1, 9, -1) + bytes(20))
    if kind == "a version that is not there":
        return frame(struct.pack(">hhih", produce.KEY, 99, 9, -1))
    if kind == "a length that can't be":
        return struct.pack(">i", -1)
    return frame(b"\0")


CREATE_DELEGATION_TOKEN = 38
UNANSWERABLE = [
    "an unknown api",
    "an api that is not there",
    "a version that is not there",
    "a length that can't be",
    "too short",
]


@pytest.mark.parametrize("kind", UNANSWERABLE)
def test_requests_before_one_that_cannot_be_answered_are_answered(shared: Running, kind: str) -> None:
    with shared.connect() as connection:
        connection.send(ping(1) + ping(2) + unanswerable(kind) + ping(3))
        assert [correlation_of(connection.receive()) for _ in range(2)] == [1, 2]
        assert connection.is_closed_by_broker()


@pytest.mark.parametrize("kind", UNANSWERABLE)
def test_a_message_in_flight_is_acknowledged_before_its_connection_is_closed(
    start: Callable[..., Running], kind: str
) -> None:
    running = start()
    disk = use_failing_disk(running)
    running.create("t")
    with running.connect() as connection:
        disk.gate.clear()
        try:
            connection.send(produced("t", 1))
            until(lambda: running.partition("t").log.written_offset == 1, "it is written")
            connection.send(unanswerable(kind))
            inside = running.inside(connection)
            until(lambda: inside._last_reason is not None, "the odd request has come")
            assert not inside.closed
        finally:
            disk.gate.set()
        answer = produce.decode_response(connection.receive()[5:], 9)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert connection.is_closed_by_broker()


# --- order


def test_answers_keep_the_order_though_a_long_poll_waits_in_front(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        send(connection, fetch_request(topic, wanted(), wait_ms=300), correlation=1)
        connection.send(produced("nowhere", 2) + ping(3))
        assert [correlation_of(connection.receive()) for _ in range(3)] == [1, 2, 3]


def test_a_produce_behind_a_long_poll_wakes_it(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        send(connection, fetch_request(topic, wanted(), wait_ms=60_000), correlation=1)
        connection.send(produced(topic, 2))
        polled, appended = connection.receive(), connection.receive()  # neither waits for a minute
    assert (correlation_of(polled), correlation_of(appended)) == (1, 2)
    assert fetch.decode_response(polled[5:], 12).responses[0].partitions[0].records


def test_hundreds_of_requests_in_one_write_are_answered_in_order(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        connection.send(b"".join(produced(topic, n) for n in range(500)))
        offsets = []
        for n in range(500):
            answer = connection.receive()
            assert correlation_of(answer) == n
            decoded = produce.decode_response(answer[5:], 9).responses[0].partition_responses[0]
            offsets.append(decoded.base_offset)
    assert offsets == list(range(500))


def test_a_request_that_comes_byte_by_byte_is_answered(shared: Running) -> None:
    with shared.connect() as connection:
        for n in range(3):
            for byte in ping(n):
                connection.send(bytes([byte]))
            assert correlation_of(connection.receive()) == n


def test_requests_cut_anywhere_are_put_together(shared: Running, topic: str) -> None:
    shared.create(topic)
    stream = b"".join(produced(topic, n, value=b"x" * (n * 97 % 5000)) for n in range(100))
    with shared.connect() as connection:
        for start in range(0, len(stream), 7919):
            connection.send(stream[start : start + 7919])
        assert [correlation_of(connection.receive()) for _ in range(100)] == list(range(100))
    assert shared.fetch(topic, 0).high_watermark == 100


# --- bounds and back-pressure


def test_a_flood_of_requests_pauses_the_connection_and_none_is_lost(shared: Running, topic: str) -> None:
    shared.create(topic)
    count = REQUESTS_IN_FLIGHT_MAX * 3
    with shared.connect() as connection:
        send(connection, fetch_request(topic, wanted(), wait_ms=60_000), correlation=0)
        until(lambda: shared.partition(topic).readers, "the first one waits")
        connection.send(b"".join(ping(n) for n in range(1, count)))
        mine = shared.inside(connection)
        until(lambda: mine._paused, "it pauses")
        assert len(mine._answers) == REQUESTS_IN_FLIGHT_MAX
        shared.publish(topic, b"what the first one waits for")
        assert [correlation_of(connection.receive()) for _ in range(count)] == list(range(count))


def test_a_flood_without_answers_is_taken_whole(shared: Running, topic: str) -> None:
    shared.create(topic)
    with shared.connect() as connection:
        connection.send(b"".join(produced(topic, n, acks=0) for n in range(3000)))
        connection.send(ping(7))
        assert correlation_of(connection.receive()) == 7
    until(lambda: shared.fetch(topic, 0).high_watermark == 3000, "all are there")


def test_large_answers_to_a_slow_reader_arrive_whole(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    running.create("t")
    running.publish("t", *[bytes([n]) * 500_000 for n in range(16)])
    log = running.partition("t").log
    expected = log.active.file.read(0, log.active.size)
    with running.connect(receive_buffer=8192) as slow:
        request = fetch_request("t", wanted(max_bytes=1 << 24), max_bytes=1 << 24)
        for n in range(3):
            send(slow, request, correlation=n)
        for n in range(3):
            time.sleep(0.05)
            answer = slow.receive()
            assert correlation_of(answer) == n
            records = fetch.decode_response(answer[5:], 12).responses[0].partitions[0].records
            assert bytes(records or b"") == expected


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(shared: Running, topic: str) -> None:
    shared.create(topic)
    for _ in range(5):
        with shared.connect() as connection:
            send(connection, fetch_request(topic, wanted(), wait_ms=10_000))
            until(lambda: shared.partition(topic).readers, "it waits")
    until(lambda: not shared.partition(topic).readers, "nobody waits any more")


def test_a_client_that_leaves_before_its_commit_harms_nobody(start: Callable[..., Running]) -> None:
    running = start(durability_flush="sync")
    running.create("t")
    for _ in range(20):
        with running.connect() as connection:
            connection.send(produced("t", 1))
    with running.connect() as connection:
        assert send_batch(connection, "t", batch_of(b"x")).error_code == 0
    until(lambda: not running.node.listener.connections, "all connections are gone")


# --- limits


def test_a_request_that_is_never_finished_ends_its_connection(start: Callable[..., Running]) -> None:
    running = start(limits_frame_ms=200)
    with running.connect() as connection, running.connect() as other:
        connection.send(ping(1) + ping(2)[:9])
        assert correlation_of(connection.receive()) == 1
        assert connection.is_closed_by_broker()
        other.send(ping(3))
        assert correlation_of(other.receive()) == 3


def test_a_connection_without_requests_is_closed_and_a_busy_one_is_not(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate(limits_idle_ms=60_000)
    with running.connect() as idle, running.connect() as busy:
        held = running.inside(idle)
        for n in range(3):
            assert not held.closed
            running.run_for(25)
            busy.send(ping(n))
            assert correlation_of(busy.receive()) == n
        assert idle.is_closed_by_broker()


def test_a_long_poll_is_not_idle(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate(limits_idle_ms=60_000)
    running.create("t")
    with running.connect() as connection:
        send(connection, fetch_request("t", wanted(), wait_ms=120_000))
        running.run_for(90)
        assert running.partition("t").readers, "it waits"
        running.publish("t", b"x")
        assert correlation_of(connection.receive()) == 1


def test_nobody_waits_longer_than_five_minutes(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate()
    running.create("t")
    with running.connect() as connection:
        send(connection, fetch_request("t", wanted(), wait_ms=24 * 60 * 60 * 1000))
        running.run_for(5 * 60 - 1)
        assert running.partition("t").readers, "it waits"
        running.run_for(2)
        assert not running.partition("t").readers
        assert correlation_of(connection.receive()) == 1


def test_more_connections_than_allowed_are_refused_and_room_is_given_back(
    start: Callable[..., Running],
) -> None:
    running = start(limits_connections_max=3)
    taken = [running.connect() for _ in range(3)]
    for connection in taken:
        connection.send(ping(1))
        connection.receive()
    with running.connect() as refused:
        assert refused.is_closed_by_broker()
    taken.pop().socket.close()
    until(lambda: len(running.node.listener.connections) == 2, "the node notices")
    with running.connect() as admitted:
        admitted.send(ping(1))
        admitted.receive()
    for connection in taken:
        connection.socket.close()


def test_connections_of_one_address_are_bounded_by_themselves(start: Callable[..., Running]) -> None:
    running = start(limits_connections_per_address_max=2)
    taken = [running.connect() for _ in range(2)]
    for connection in taken:
        connection.send(ping(1))
        connection.receive()
    with running.connect() as refused:
        assert refused.is_closed_by_broker()
    elsewhere = socket.create_connection(("127.0.0.1", running.node.port), source_address=("127.0.0.2", 0))
    elsewhere.settimeout(ANSWER_S)
    elsewhere.sendall(ping(9))
    assert elsewhere.recv(4)
    elsewhere.close()
    for connection in taken:
        connection.socket.close()
    until(lambda: not running.node.listener._per_address, "addresses are forgotten")


def test_a_request_above_the_limit_ends_its_connection_before_its_bytes_come(
    start: Callable[..., Running],
) -> None:
    running = start(limits_request_bytes_max=10_000)
    with running.connect() as connection:
        connection.send(struct.pack(">i", 10_001))
        assert connection.is_closed_by_broker()


def test_memory_for_unfinished_requests_is_bounded_over_all_connections(
    start: Callable[..., Running],
) -> None:
    running = start(limits_receive_bytes_max=4 << 20, limits_request_bytes_max=32 << 20)
    hogs = [running.connect() for _ in range(4)]
    inside = [running.inside(hog) for hog in hogs]
    for hog in hogs:
        with contextlib.suppress(Closed, OSError):
            hog.send(struct.pack(">i", 30 << 20) + b"\0" * (3 << 20))
    until(lambda: sum(not one.closed for one in inside) <= 1, "those beyond the bound are closed")
    assert sum(one.frames.capacity for one in inside if not one.closed) <= 8 << 20
    for hog in hogs:
        hog.socket.close()
    until(lambda: not running.node.listener.connections, "all are gone")
    running.on_loop(running.node.listener._sweep)  # it counts anew
    running.create("t")
    running.publish("t", b"x" * 500_000)


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_a_frame_without_a_length_ends_the_connection(shared: Running, length: int) -> None:
    with shared.connect() as connection:
        connection.send(ping(1) + struct.pack(">i", length))
        assert connection.is_closed_by_broker()
