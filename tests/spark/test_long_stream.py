"""A stream that runs for long with a trigger every 100 ms: neither Spark, its workers nor the node grow.

It takes STREAM_S seconds (a minute unless that says otherwise): 600 are what a release is held to.
The first half is for warming up: what each process has in the last quarter is compared with the third one.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from postroad.testing import Node
from postroad.testing import node as start_node
from tests.spark import plain
from tests.spark.driver import Driver, driver, members

pytestmark = pytest.mark.spark_slow

SECONDS = float(os.environ.get("STREAM_S", "60"))
SAMPLES = 40
MESSAGES_A_SECOND = 200
BURST_S = 0.05
MB = 1024 * 1024
# Spark's own bookkeeping of some hundred micro-batches, and what the allocator keeps.
GROWTH_MAX = 0.05
GROWTH_MAX_BYTES = 16 * MB
# A heap that is as large from the start as it may become: what grows beside it is seen in the resident size.
HEAP = "-Xms512m -XX:+AlwaysPreTouch -XX:+UseSerialGC"

# By process, or `heap`: bytes, one figure for each sample.
Figures = dict[str, list[int]]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Driver]:
    config = {
        "spark.master": "local[2]",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": HEAP,
        "spark.python.authenticate.socketTimeout": "120",
    }
    with driver(tmp_path, config) as running:
        yield running


def test_memory_stays_flat_while_a_stream_runs(application: Driver, topic: str, tmp_path: Path) -> None:
    target = f"{topic}-copied"
    with start_node() as node:
        plain.create(node.bootstrap, topic, 2)
        plain.create(node.bootstrap, target, 2)
        with filling(node, topic):
            application.do("begin_copy", bootstrap=node.bootstrap, topic=topic, to=target, home=str(tmp_path))
            figures = sampled(application, node)
        batches = application.do("end_copy")
        copied = len(plain.read_all(node.bootstrap, target))
        assert copied == len(plain.read_all(node.bootstrap, topic))
    print(
        f"\n{SECONDS:g} s, {batches} micro-batches, {copied} messages; MB in the third and the last quarter:"
    )
    grown = {}
    for name, sizes in figures.items():
        third, last = (statistics.median(part) for part in quarters(sizes)[2:])
        print(f"{name:<8} {third / MB:7.1f} {last / MB:7.1f}")
        if last - third > max(third * GROWTH_MAX, GROWTH_MAX_BYTES):
            grown[name] = sizes
    assert not grown


@contextmanager
def filling(node: Node, topic: str) -> Iterator[None]:
    """Messages come all the time, so that nearly every trigger has some."""
    done = threading.Event()
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 5})

    def fill() -> None:
        count = 0
        while not done.wait(BURST_S):
            for _ in range(int(MESSAGES_A_SECOND * BURST_S)):
                producer.produce(topic, b"%200d" % count, partition=count % 2)
                count += 1
            producer.poll(0)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        assert producer.flush(60) == 0


def sampled(application: Driver, node: Node) -> Figures:
    figures: Figures = defaultdict(list)
    begin = time.monotonic()
    for number in range(1, SAMPLES + 1):
        time.sleep(max(0.0, begin + number * SECONDS / SAMPLES - time.monotonic()))
        figures["heap"].append(application.do("live_heap"))
        for name, size in resident(application, node).items():
            figures[name].append(size)
    return figures


def resident(application: Driver, node: Node) -> dict[str, int]:
    """What is in memory of the driver, its JVM, all its Python workers together, and the node."""
    found: dict[str, int] = defaultdict(int)
    found["node"] = size_of(node.pid)
    for process in members(application.process.pid):
        with suppress(OSError):  # a worker that has just ended
            command = Path(f"/proc/{process}/cmdline").read_text()
            name = "driver" if process == application.process.pid else "workers"
            found["JVM" if "java" in command.partition("\0")[0] else name] += size_of(process)
    return found


def size_of(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS:"))


def quarters(sizes: list[int]) -> list[list[int]]:
    quarter = len(sizes) // 4
    return [sizes[number * quarter : (number + 1) * quarter] for number in range(4)]
