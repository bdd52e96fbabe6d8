"""One client's trouble is nobody else's: nobody hangs, nothing spins, nothing is left behind."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import time
from collections.abc import Callable

import pytest

from postroad.broker.connection import Connection
from postroad.broker.listener import ACCEPT_PAUSE_S
from postroad.log.partition_log import PartitionLog
from postroad.wire.messages import api_versions, fetch, metadata, produce
from tests.broker.failing_disk import log_of, use_failing_disk
from tests.broker.fetching import fetch_request, offsets_of, only, receive, send, wanted
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import Closed, batch_of, frame, produce_request, request_content
from tests.simulator.simulated_node import SimulatedConnection, SimulatedNode

STORAGE_ERROR = 56


def test_a_reader_whose_disk_fails_keeps_no_producer_from_its_answer(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    disk = use_failing_disk(running)
    running.create("bad")
    running.create("good")
    with running.connect() as reader, running.connect() as writer:
        send(reader, fetch_request("bad", wanted(), wait_ms=15_000))
        until(lambda: running.partition("bad").readers, "it waits")
        disk.fail("read", log_of(running, "bad"), errno.EIO)
        request = produce_request("bad", batch_of(b"x"))
        request.topic_data += produce_request("good", batch_of(b"x")).topic_data
        answers = writer.call(produce, 9, request).responses
        assert [topic.partition_responses[0].error_code for topic in answers] == [0, 0]
        assert only(receive(reader)).error_code == STORAGE_ERROR
        disk.heal()
    assert running.publish("good", b"again") == 1
    assert running.publish("bad", b"again") == 1


def test_a_defect_in_one_reader_harms_no_other(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = start(durability_flush="os")
    running.create("t")

    class Defect:
        def wake(self) -> None:
            raise ValueError("a defect")

        expire = wake

    with running.connect() as reader:
        running.on_loop(lambda: running.partition("t").readers.update({Defect(): None}))
        send(reader, fetch_request("t", wanted(), wait_ms=15_000))
        until(lambda: len(running.partition("t").readers) == 2, "it waits")
        assert running.publish("t", b"x") == 0
        assert offsets_of(only(receive(reader))) == [0]
    assert "a defect" in caplog.text


def test_cold_data_that_can_not_be_checked_ends_the_connection_and_nobody_hangs(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    running.create("t")
    running.publish("t", b"x" * 100)
    running.stop()
    running.start()

    def defect(*_: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(PartitionLog, "verify", defect)
    with running.connect() as reader:
        send(reader, fetch_request("t", wanted(), wait_ms=100))
        with pytest.raises(Closed):
            reader.receive()


def test_a_client_that_leaves_frees_what_waited_in_its_name_at_once(shared: Running, topic: str) -> None:
    shared.create(topic, 2)
    both = [shared.partition(topic, index) for index in (0, 1)]
    for _ in range(20):
        with shared.connect() as connection:
            send(connection, fetch_request(topic, wanted(0), wanted(1), wait_ms=60_000))
            until(lambda: all(partition.readers for partition in both), "it waits")
        until(lambda: not any(partition.readers for partition in both), "nobody waits")


def test_a_fetch_of_nothing_waits_for_nothing(shared: Running) -> None:
    # nobody waits for an answer for a minute
    assert shared.call(fetch, 12, fetch_request("t", wait_ms=60_000)).responses == []


def test_a_pause_that_ends_at_once_loses_and_reorders_nothing(start: Callable[..., Running]) -> None:
    running = start(limits_write_buffer_bytes_max=1024)
    ping = [
        frame(request_content(api_versions, 0, api_versions.ApiVersionsRequest(), n)) for n in range(3000)
    ]
    with running.connect() as connection:
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        for start_at in range(0, 3000, 600):
            connection.send(b"".join(ping[start_at : start_at + 600]))
        received = [int.from_bytes(connection.receive()[:4], "big") for _ in range(3000)]
    assert received == list(range(3000))


def test_a_reader_that_takes_nothing_stops_being_read_and_is_served_when_it_does(
    start: Callable[..., Running],
) -> None:
    running = start(limits_write_buffer_bytes_max=65_536)
    names = [f"{n:04}".ljust(240, "-") for n in range(30)]  # long ones, to fill the answers
    for name in names:
        running.create(name)
    count, answer_bytes = 1200, 30 * 300
    ask = [
        frame(request_content(metadata, 9, metadata.MetadataRequest(topics=None), n)) for n in range(count)
    ]
    with running.connect(receive_buffer=4096) as slow:
        held = running.inside(slow)
        slow.socket.setblocking(False)
        sent, stream = 0, b"".join(ask)
        with contextlib.suppress(BlockingIOError):
            while sent < len(stream):
                sent += slow.socket.send(stream[sent : sent + 65_536])
        until(lambda: held._paused, "the node stops reading")
        assert held._out_bytes < 65_536 + 2 * answer_bytes, "what waits is bounded"
        slow.socket.settimeout(20)
        rest = stream[sent:]
        for n in range(count):
            if rest:
                piece, rest = rest[:20_000], rest[20_000:]
                slow.send(piece)
            assert int.from_bytes(slow.receive()[:4], "big") == n


def test_each_request_has_the_whole_deadline_to_itself(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate(limits_frame_ms=60_000)
    ping = frame(request_content(api_versions, 0, api_versions.ApiVersionsRequest(), 1))
    with running.connect() as connection:
        connection.send(ping[:5])
        for _ in range(3):  # there is always an unfinished request, but never one for long
            running.run_for(45)
            connection.send(ping[5:] + ping[:5])
            connection.receive()
        assert connection.is_closed_by_broker(within_s=100), "this one is never finished"


SLOW_READERS = {"limits_idle_ms": 60_000, "durability_flush": "os"}
ANSWER_BYTES = 3_000_000


def large_answer(running: SimulatedNode, slow: SimulatedConnection) -> Connection:
    """Asked for, and more than the network takes for a reader who takes nothing."""
    running.create("t")
    running.publish("t", *[b"x" * 500_000] * (ANSWER_BYTES // 500_000))
    send(slow, fetch_request("t", wanted(max_bytes=1 << 26), max_bytes=1 << 26))
    held = running.inside(slow)
    running.until(lambda: held.stuck)
    return held


def test_a_reader_that_takes_its_time_but_takes_is_not_stuck(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate(**SLOW_READERS)
    with running.connect() as slow:
        held = large_answer(running, slow)
        taken = 0
        for _ in range(4):
            running.run_for(50)
            taken += len(slow.take(100_000))
        assert taken < ANSWER_BYTES, "it takes its time"
        assert not held.closed
        while taken < ANSWER_BYTES:
            taken += len(slow.take_some())


def test_a_reader_that_takes_nothing_is_shown_out_after_a_while(
    simulate: Callable[..., SimulatedNode],
) -> None:
    running = simulate(**SLOW_READERS)
    with running.connect() as slow:
        held = large_answer(running, slow)
        running.run_for(25)
        assert not held.closed
        running.run_for(70)
        assert held.closed


def test_without_descriptors_the_node_waits_and_does_not_spin(
    start: Callable[..., Running], caplog: pytest.LogCaptureFixture
) -> None:
    running = start()
    sockets = [socket.socket() for _ in range(12)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []

    def refusals() -> int:
        return sum("can't accept" in record.getMessage() for record in list(caplog.records))

    began = time.monotonic()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 50, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        for one in sockets:
            one.connect(("127.0.0.1", running.node.port))
        until(refusals, "it can't accept them")
        time.sleep(0.3)  # long enough to spin
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
    until(lambda: len(running.node.listener.connections) == 12, "they are accepted when it is over")
    assert refusals() <= 1 + (time.monotonic() - began) / ACCEPT_PAUSE_S
    for one in sockets:
        one.close()


def test_a_closed_connections_memory_is_free_for_others_at_once(start: Callable[..., Running]) -> None:
    running = start(limits_receive_bytes_max=5 << 19)
    running.create("t")
    with running.connect() as hog:
        hog.send((50 << 20).to_bytes(4, "big") + b"\0" * 1_200_000)
        until(lambda: running.node.listener._buffered_bytes > 1 << 20, "it holds memory")
    until(lambda: not running.node.listener.connections, "it is gone")
    assert running.publish("t", b"x" * 900_000) == 0
