"""Starting, stopping and being alone: quick, light, and with clear words where it can't be."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition

from postroad.testing import Node, NodeFailed, node
from tests.clients.confluent import consumer, read_from, send_values
from tests.clients.wait import until

from .conftest import create_topic, resident_mb

READY_S = 1.0
READY_CPU_S = 0.9  # a busy machine charges a process for more than it does
TRIES = 3  # one of so many starts has the machine to itself
STOP_S = 10.0  # some tenths of a second are usual; the waiting client has asked for 30 s
IDLE_MB = 60


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[Node]:
    """A node that was stopped well, with a topic of 50 messages."""
    with node(directory=tmp_path) as running:
        create_topic(running, "stored", 3)
        send_values(running.bootstrap, "stored", 50)
        running.stop()
        yield running


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`postroad serve` that is expected to give up at once."""
    command = [sys.executable, "-m", "postroad", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_second_process_on_the_same_data_is_refused_with_the_first_ones_pid(own_node: Node) -> None:
    refused = serve("--data", str(own_node.data_dir), "--kafka", "127.0.0.1:0")
    assert refused.returncode != 0
    assert "in use" in refused.stderr
    assert str(own_node.pid) in refused.stderr
    assert "Traceback" not in refused.stderr
    send_values(own_node.bootstrap, "unharmed", 3)


def test_port_that_is_taken_is_named(own_node: Node, tmp_path: Path) -> None:
    refused = serve("--data", str(tmp_path / "other"), "--kafka", own_node.bootstrap)
    assert refused.returncode != 0
    assert own_node.bootstrap.rsplit(":", 1)[1] in refused.stderr
    assert "Traceback" not in refused.stderr


def test_address_for_others_needs_an_explicit_word(tmp_path: Path) -> None:
    refused = serve("--data", str(tmp_path / "data"), "--kafka", "0.0.0.0:0")
    assert refused.returncode != 0
    assert "insecure" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_logs_without_their_coordination_store_are_neither_served_nor_deleted(stopped: Node) -> None:
    for file in stopped.data_dir.glob("coordination.sqlite*"):
        file.unlink()
    before = sorted((stopped.data_dir / "logs").rglob("*.log"))
    with pytest.raises(NodeFailed, match="coordination"):
        stopped.start()
    assert sorted((stopped.data_dir / "logs").rglob("*.log")) == before


def test_symbolic_link_in_the_data_directory_is_refused(stopped: Node, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (stopped.data_dir / "logs" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NodeFailed, match="symbolic link"):
        stopped.start()


def test_data_directory_is_for_its_owner_only(own_node: Node) -> None:
    assert own_node.data_dir.stat().st_mode & 0o077 == 0


def is_ready_in_time(running: Node) -> bool:
    """By the clock; or by the node's own work, when the machine is busy with something else."""
    started = time.monotonic()
    running.start()
    took_s = time.monotonic() - started
    return took_s < READY_S or cpu_seconds(running) < READY_CPU_S


def cpu_seconds(running: Node) -> float:
    fields = Path(f"/proc/{running.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ready_within_a_second(stopped: Node) -> None:
    for _ in range(TRIES):
        if is_ready_in_time(stopped):
            return
        stopped.stop()
    raise AssertionError(f"not once in {TRIES} starts")


def test_ready_within_a_second_after_a_crash(stopped: Node) -> None:
    stopped.start()
    for _ in range(TRIES):
        stopped.kill()
        if is_ready_in_time(stopped):
            return
    raise AssertionError(f"not once in {TRIES} starts")


def test_idle_node_is_light(own_node: Node) -> None:
    assert resident_mb(own_node) < IDLE_MB


def test_stop_takes_seconds_though_clients_wait_and_stay_connected(own_node: Node) -> None:
    create_topic(own_node, "waited-for")
    host, port = own_node.bootstrap.rsplit(":", 1)
    with (
        socket.create_connection((host, int(port))),
        consumer(own_node.bootstrap, fetch_wait_max_ms=30_000) as source,
    ):
        source.assign([TopicPartition("waited-for", 0, OFFSET_END)])
        source.poll(1)
        started = time.monotonic()
        own_node.stop()
        assert time.monotonic() - started < STOP_S


def test_stop_under_load_loses_nothing_that_was_acknowledged(own_node: Node) -> None:
    create_topic(own_node, "busy")
    acknowledged: list[int] = []
    done = threading.Event()
    load = threading.Thread(target=_send_until, args=(own_node.bootstrap, done, acknowledged))
    load.start()
    try:
        until(lambda: len(acknowledged) >= 500, "500 messages are acknowledged")
        own_node.stop()
    finally:
        done.set()
        load.join(30)
    own_node.start()
    last = max(acknowledged)
    messages = read_from(own_node.bootstrap, TopicPartition("busy", 0, 0), last + 1)
    assert [int(message.value()) for message in messages] == list(range(last + 1))


def _send_until(bootstrap: str, done: threading.Event, acknowledged: list[int]) -> None:
    through = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    number = 0
    while not done.is_set():
        through.produce(
            "busy",
            str(number).encode(),
            on_delivery=lambda error, message: None if error else acknowledged.append(message.offset()),
        )
        number += 1
        through.poll(0.001)
    through.purge()  # of what is left nobody knows
    through.flush(5)


def test_stopped_node_leaves_no_process_and_no_lock(stopped: Node) -> None:
    with pytest.raises(ProcessLookupError):
        os.kill(stopped.pid, 0)
    stopped.start()
    messages = read_from(stopped.bootstrap, TopicPartition("stored", 0, 0), 50)
    assert len(messages) == 50


@pytest.mark.slow
def test_thousand_partitions_open_and_close_in_seconds(tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, "wide", 1000)
        started = time.monotonic()
        running.stop()
        stop_s = time.monotonic() - started
        started = time.monotonic()
        running.start()
        start_s = min(time.monotonic() - started, cpu_seconds(running))  # the machine may be busy
    assert stop_s < 20, f"stopped in {stop_s:.1f} s"
    assert start_s < 3, f"started in {start_s:.1f} s"
