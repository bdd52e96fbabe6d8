"""Nodes to be harmed, and the measure of harm: memory, and what a well-behaved client notices."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import Node, node
from tests.clients.confluent import consumer, producer, read, send_all
from tests.clients.wait import until

from . import figures


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all tests of a file that leave it unharmed; that they do is the promise."""
    with node(directory=tmp_path_factory.mktemp("node")) as running:
        yield running


@pytest.fixture
def own_node(tmp_path: Path) -> Iterator[Node]:
    """A node that the test may kill."""
    with node(directory=tmp_path) as running:
        yield running


# Some milliseconds are usual. Who is stuck behind another waits for ever, or for a deadline of half a minute;
# what keeps a machine busy for a few seconds is no harm done.
SLOWEST_S = 10.0


def create_topic(running: Node, name: str, partitions: int = 1, **config: Any) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    settings = {key: str(value) for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result(60)


def resident_mb(running: Node) -> float:
    """The node's memory that is really in RAM."""
    for line in Path(f"/proc/{running.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("the node is not running")


@contextmanager
def memory_stays_flat(running: Node, grows_mb_max: float) -> Iterator[None]:
    """The node's memory grows by no more than this, also at the worst moment inside the block."""
    before = resident_mb(running)
    highest = before
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.05):
            highest = max(highest, resident_mb(running))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert highest - before <= grows_mb_max, f"from {before:.0f} to {highest:.0f} MB"


@pytest.fixture
def others_unharmed(shared: Node) -> Callable[[], AbstractContextManager[None]]:
    return lambda: unharmed(shared)


@contextmanager
def unharmed(running: Node, slowest_s: float = SLOWEST_S) -> Iterator[None]:
    """A well-behaved client sends and reads all the time, and never waits longer than `slowest_s`."""
    topic = f"well-behaved-{time.monotonic_ns()}"
    create_topic(running, topic)
    waits: list[float] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def behave() -> None:
        try:
            with consumer(running.bootstrap) as source:
                source.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
                through = producer(running.bootstrap)
                while not done.wait(0.01):
                    started = time.monotonic()
                    send_all(through, topic, [{"value": b"%d" % len(waits)}])
                    assert read(source, 1)[0].value() == b"%d" % len(waits)
                    waits.append(time.monotonic() - started)
        except BaseException as error:
            errors.append(error)

    client = threading.Thread(target=behave)
    client.start()
    try:
        until(lambda: waits or errors, "the well-behaved client's first message")
        yield
        seen = len(waits)
        until(lambda: len(waits) > seen or errors, "the well-behaved client's next message")
    finally:
        done.set()
        client.join()
    assert not errors, errors[0]
    assert max(waits) < slowest_s, f"the well-behaved client once waited {max(waits):.1f} s"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what the failure matrix has measured."""
    if figures.SEEN:
        terminalreporter.section("figures of the failure matrix")
        for line in figures.SEEN:
            terminalreporter.line(line)
