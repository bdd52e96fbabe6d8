"""Descriptors that run out cost connections, never a partition."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from postroad.testing import Node, node
from tests.clients.wait import until

from .conftest import create_topic
from .raw import RawConnection, batch_of, fetch_at, send_batch

NOFILE = 320
FLOOD = 400  # idle connections
PARTITIONS = 20
STORAGE_ERROR = 56


@contextmanager
def started_with(limit: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node below a shell that has set this limit."""
    python = home / "python"
    python.write_text(f'#!/bin/sh\nulimit {limit}\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    with node(directory=home) as running:
        running.stop()
        monkeypatch.setattr(sys, "executable", str(python))
        running.start()
        monkeypatch.undo()
        yield running


@pytest.fixture
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    """A node that may open NOFILE files and not one more."""
    with started_with(f"-n {NOFILE}", tmp_path, monkeypatch) as running:
        yield running


def send_to_all(connection: RawConnection) -> list[int]:
    """The error codes of one message to each partition."""
    return [
        send_batch(connection, "busy", batch_of(b"x"), partition=partition).error_code
        for partition in range(PARTITIONS)
    ]


def open_files(running: Node) -> set[int]:
    return {int(entry.name) for entry in Path(f"/proc/{running.pid}/fd").iterdir()}


def take_descriptors(running: Node, hard: int) -> None:
    """The next one to be opened would have a number that the limit does not allow."""
    free = min(set(range(NOFILE)) - open_files(running))
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (free, hard))


def test_soft_limit_on_open_files_is_raised_to_the_hard_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started_with(f"-S -n {NOFILE}", tmp_path, monkeypatch) as running:
        soft, hard = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    assert soft == hard
    assert soft != NOFILE


def test_flood_of_connections_leaves_descriptors_to_the_logs(limited: Node) -> None:
    assert "connections: the limit on open files is 320" in limited.log_file.read_text()
    create_topic(limited, "busy", PARTITIONS)
    with RawConnection(limited.bootstrap) as early, ExitStack() as flood:
        idle = [flood.enter_context(RawConnection(limited.bootstrap)) for _ in range(FLOOD)]
        until(lambda: "are kept for the logs" in limited.log_file.read_text(), "some are refused")
        assert idle[-1].is_closed_by_broker()
        assert send_to_all(early) == [0] * PARTITIONS, "their files are opened only now"
        assert len(open_files(limited)) < NOFILE - 64
        assert "Too many open files" not in limited.log_file.read_text()
    until(lambda: len(open_files(limited)) < NOFILE // 2, "the flood has ended")
    with RawConnection(limited.bootstrap) as late:
        assert send_to_all(late) == [0] * PARTITIONS


def test_partitions_go_on_after_descriptors_had_run_out(own_node: Node) -> None:
    """Whoever took them: here the limit falls below what the node has open."""
    create_topic(own_node, "busy", PARTITIONS)
    own_node.restart()
    soft, hard = resource.prlimit(own_node.pid, resource.RLIMIT_NOFILE)
    with RawConnection(own_node.bootstrap) as connection:
        assert fetch_at(connection, "busy", 0).error_code == 0
        take_descriptors(own_node, hard)
        assert send_to_all(connection) == [STORAGE_ERROR] * PARTITIONS
        assert send_to_all(connection) == [STORAGE_ERROR] * PARTITIONS
        resource.prlimit(own_node.pid, resource.RLIMIT_NOFILE, (soft, hard))
        assert send_to_all(connection) == [0] * PARTITIONS
        found = [fetch_at(connection, "busy", 0, partition) for partition in range(PARTITIONS)]
        assert [part.high_watermark for part in found] == [1] * PARTITIONS, "what was refused left no trace"
