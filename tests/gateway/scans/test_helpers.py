"""Helpers look through topics in place of the gateway, and never outlive it or their callers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from postroad.client import topics
from postroad.client.metadata import TopicPartition
from postroad.client.scan import Scanned
from postroad.errors import InvalidTopic, PostroadError
from postroad.gateway import rest
from postroad.gateway.gateway import Message
from postroad.gateway.scans import Helpers
from postroad.gateway.scans.frames import ScanRequest
from tests.clients.wait import until
from tests.gateway.conftest import RunningGateway, StartGateway

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([rest.routes])


@pytest.fixture
def topic(gateway: RunningGateway, name: str) -> str:
    gateway.run(topics.create(gateway.gateway.client, name))
    values = [json.dumps({"n": n}).encode() for n in range(100)]
    headers = [("ok", None), ("\udcff", b"\xff")]
    messages = [Message(value, b"\xfe", headers) for value in values]
    for sent in gateway.run(gateway.gateway.publish(name, messages)):
        assert not isinstance(sent, PostroadError)
    return name


def request(topic: str, filter_: str, **more: object) -> ScanRequest:
    asked = {"found_max": 1000, "size_bytes": 1 << 20, "seconds": 20.0, "isolation": 0, **more}
    return ScanRequest(topic, {0: 0}, {0: 100}, filter_, **asked)  # type: ignore[arg-type]


def children() -> set[int]:
    """The helpers of this process."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    lines = [line.split(None, 1) for line in found.stdout.splitlines()]
    return {int(pid) for pid, command in lines if "postroad.gateway.scans" in command}


@pytest.fixture
def helpers(gateway: RunningGateway) -> Iterator[Helpers]:
    before = children()
    made = Helpers(gateway.bootstrap, None)
    yield made
    gateway.run(made.close())
    until(lambda: children() <= before, "none is left")


def scan(gateway: RunningGateway, helpers: Helpers, asked: ScanRequest) -> Scanned:
    return gateway.run(helpers.scan(asked, lambda: False))


def test_what_is_found_is_what_was_published(gateway: RunningGateway, helpers: Helpers, topic: str) -> None:
    done = scan(gateway, helpers, request(topic, "value.n in (7, 99)"))
    assert [json.loads(each.record.value or b"") for each in done.found] == [{"n": 7}, {"n": 99}]
    assert done.found[0].topic_partition == TopicPartition(topic, 0)
    assert done.found[0].record.key == b"\xfe"
    assert list(done.found[0].record.headers) == [("ok", None), ("\udcff", b"\xff")]
    assert (done.scanned, done.positions, done.is_over) == (100, {TopicPartition(topic, 0): 100}, True)


def test_a_helper_is_kept_for_the_next_scan(gateway: RunningGateway, helpers: Helpers, topic: str) -> None:
    before = children()
    scan(gateway, helpers, request(topic, "value.n = 1"))
    (first,) = children() - before
    done = scan(gateway, helpers, request(topic, "value.n < 50", found_max=3))
    assert (len(done.found), done.is_over, done.positions) == (3, False, {TopicPartition(topic, 0): 3})
    assert children() - before == {first}


def test_one_that_was_killed_meanwhile_is_replaced(
    gateway: RunningGateway, helpers: Helpers, topic: str
) -> None:
    before = children()
    scan(gateway, helpers, request(topic, "value.n = 1"))
    (first,) = children() - before
    os.kill(first, 9)
    assert len(scan(gateway, helpers, request(topic, "value.n = 1")).found) == 1
    assert first not in children()


def test_errors_of_the_nodes_come_back(gateway: RunningGateway, helpers: Helpers) -> None:
    with pytest.raises(InvalidTopic):
        scan(gateway, helpers, request("no such topic", "value.n = 1", seconds=1.0))


def test_a_caller_who_goes_ends_the_scan(gateway: RunningGateway, helpers: Helpers, topic: str) -> None:
    """It waits for messages that never come."""
    before = children()
    asked = request(topic, "value.n = -1", seconds=300.0)
    asked.ends = {0: 1_000_000}
    began = time.monotonic()
    done = gateway.run(helpers.scan(asked, lambda: time.monotonic() > began + 1))
    assert (done.found, done.is_over) == ([], False)
    until(lambda: children() <= before, "it is gone")


def test_an_idle_helper_ends(gateway: RunningGateway, topic: str) -> None:
    before = children()
    made = Helpers(gateway.bootstrap, None, idle_s=0.05)
    scan(gateway, made, request(topic, "value.n = 1"))
    until(lambda: children() <= before, "it is gone")


def test_a_helper_ends_with_its_gateway() -> None:
    """Whatever killed that: its standard input ends."""
    helper = subprocess.Popen(
        [sys.executable, "-m", "postroad.gateway.scans"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert helper.stdin is not None
    helper.stdin.close()
    assert helper.wait(PATIENCE_S) == 0


async def test_others_are_answered_while_a_scan_runs(gateway: RunningGateway, topic: str) -> None:
    """The gateway's loop only waits."""
    asked = request(topic, "value.n = -1", seconds=3.0)
    asked.ends = {0: 1_000_000}
    scanning = asyncio.run_coroutine_threadsafe(
        gateway.gateway.helpers.scan(asked, lambda: False), gateway.loop
    )
    looked = 0
    while not scanning.done():
        await asyncio.to_thread(gateway.run, asyncio.sleep(0))
        looked += 1
    assert looked > 100
    assert scanning.result().found == []
