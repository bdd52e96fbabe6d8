"""A ShareFetch is answered with no more bytes than it asks for, over all partitions together."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import share_fetch
from tests.broker.harness import Running
from tests.broker.test_queues import GROUP, configure, publish_together
from tests.clients.share_session import Fate, one, session
from tests.faults.raw import RawConnection

LARGE = b"x" * 600_000
LIMIT = 999_000


class Fetcher:
    """A member's session over all partitions of a topic."""

    def __init__(self, connection: RawConnection, topic_id: bytes, partitions: int) -> None:
        self._connection = connection
        self._member, self._epoch = str(uuid.uuid4()), 0
        parts = [share_fetch.FetchPartition(index, []) for index in range(partitions)]
        self._topics = [share_fetch.FetchTopic(topic_id, parts)]

    def fetch(self, max_bytes: int) -> tuple[int, dict[tuple[int, int], int]]:
        """(how large the answer is, the deliveries of each message by partition and offset)."""
        request = share_fetch.ShareFetchRequest(
            GROUP, self._member, self._epoch, 5_000, 1, max_bytes, 500, 500, topics=self._topics
        )
        answer: Any = self._connection.call(share_fetch, 1, request)
        assert answer.error_code == 0
        self._epoch += 1
        held = {
            (part.partition_index, offset): run.delivery_count
            for topic in answer.responses
            for part in topic.partitions
            for run in part.acquired_records
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        return len(share_fetch.encode_response(answer, 1)), held


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_large_messages_come_one_by_one_each_delivered_once(
    start: Callable[..., Running], partitions: int
) -> None:
    running = start(durability_flush="os")
    topic_id = running.create("jobs", partitions)
    configure(running, postroad_topics="jobs")
    for number in range(4):
        running.publish("jobs", LARGE, partition=number % partitions)
    with running.connect() as connection:
        fetcher = Fetcher(connection, topic_id, partitions)
        deliveries: dict[tuple[int, int], int] = {}
        for _ in range(4):
            size, held = fetcher.fetch(LIMIT)
            assert size <= LIMIT
            assert len(held) == 1, "one fits; the others are not handed out"
            deliveries |= held
        assert list(deliveries.values()) == [1] * 4


def test_message_above_the_limit_comes_alone(start: Callable[..., Running]) -> None:
    running = start(durability_flush="os")
    topic_id = running.create("jobs", 2)
    configure(running, postroad_topics="jobs")
    for index in (0, 1):
        running.publish("jobs", LARGE, b"small", partition=index)
    with running.connect() as connection:
        fetcher = Fetcher(connection, topic_id, 2)
        _, held = fetcher.fetch(1000)
        assert len(held) == 1


def test_ranges_that_were_acquired_count(start: Callable[..., Running]) -> None:
    """With every other message done, what is said of the messages takes as much as they do."""
    running = start(durability_flush="os")
    topic_id = running.create("jobs")
    configure(running, postroad_topics="jobs")
    for _ in range(40):
        publish_together(running, "jobs", 50)
    with session(running.bootstrap, GROUP, "jobs") as worker:
        done = 0
        while done < 2000:
            offsets = worker.fetch_some().offsets
            assert worker.acknowledge(*(one(n, Fate.ACCEPT) for n in offsets if n % 2)) == 0
            done += len(offsets)
    with running.connect() as connection:
        fetcher = Fetcher(connection, topic_id, 1)
        found = 0
        while found < 1000:
            size, held = fetcher.fetch(5_000)
            assert held
            assert size <= 5_000
            found += len(held)
