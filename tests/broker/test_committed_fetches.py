"""A read_committed consumer that waits at the end: however it is answered, it hears what is stable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.broker.fetching import fetch_request, offsets_of, only, receive, send, wanted
from tests.broker.harness import Running
from tests.broker.test_transactions import READ_COMMITTED, Worker
from tests.clients.wait import until
from tests.faults.raw import RawConnection

WAIT_MS = 60_000


class Tail:
    """A consumer that has read everything, and asks for what follows with the request that it sent before."""

    def __init__(self, running: Running, topic: str, connection: RawConnection) -> None:
        self._running = running
        self._topic = topic
        self._connection = connection
        self._request(0)
        receive(connection)

    def wait(self, offset: int) -> None:
        self._request(WAIT_MS, offset)
        readers = self._running.partition(self._topic).readers
        until(lambda: readers, "it waits")

    def answered(self) -> Any:
        return only(receive(self._connection))

    def _request(self, wait_ms: int, offset: int = 0) -> None:
        request = fetch_request(self._topic, wanted(offset=offset), wait_ms=wait_ms)
        request.isolation_level = READ_COMMITTED
        send(self._connection, request)


@pytest.fixture(params=["true", "false"])
def running(start: Callable[..., Running], request: pytest.FixtureRequest) -> Running:
    found = start(kafka_short_ways=request.param, durability_flush="os")
    found.create("t")
    return found


@contextmanager
def tail_and_worker(running: Running) -> Iterator[tuple[Tail, Worker]]:
    with running.connect() as reader, running.connect() as writer:
        tail, worker = Tail(running, "t", reader), Worker(writer, "worker")
        for end in range(2):  # from the second time on the request is known
            tail.wait(end)
            running.publish("t", b"plain")
            answer = tail.answered()
            assert (answer.high_watermark, answer.last_stable_offset) == (end + 1, end + 1)
        yield tail, worker


def test_a_commit_is_told_with_its_marker(running: Running) -> None:
    with tail_and_worker(running) as (tail, worker):
        tail.wait(2)
        assert (worker.add("t"), worker.write("t")) == ([0], 0)
        running.publish("t", b"behind")
        assert running.on_loop(lambda: len(running.partition("t").readers)) == 1, "nothing of it is stable"
        assert worker.end(commit=True) == 0
        answer = tail.answered()
        assert (answer.high_watermark, answer.last_stable_offset) == (5, 5)
        assert offsets_of(answer) == [2, 3, 4]
        assert not answer.aborted_transactions


def test_an_abort_is_told_with_what_to_leave_out(running: Running) -> None:
    with tail_and_worker(running) as (tail, worker):
        tail.wait(2)
        assert (worker.add("t"), worker.write("t")) == ([0], 0)
        assert worker.end(commit=False) == 0
        answer = tail.answered()
        [aborted] = answer.aborted_transactions
        assert (aborted.producer_id, aborted.first_offset) == (worker.id, 2)
        assert answer.last_stable_offset == 4


def test_who_waits_at_the_stable_offset_waits_for_the_marker(running: Running) -> None:
    with tail_and_worker(running) as (tail, worker):
        assert (worker.add("t"), worker.write("t")) == ([0], 0)
        tail.wait(2)
        running.publish("t", b"behind")
        assert running.on_loop(lambda: len(running.partition("t").readers)) == 1
        assert worker.end(commit=True) == 0
        assert offsets_of(tail.answered()) == [2, 3, 4]
        tail.wait(5)
        running.publish("t", b"next")
        assert offsets_of(tail.answered()) == [5]
