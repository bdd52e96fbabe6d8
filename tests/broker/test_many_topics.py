"""What is done to one topic costs the same among few topics and among many.

Each function that the node's loop calls is counted: unlike times, counts are the same on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from postroad.wire.messages import create_topics, delete_topics, describe_topic_partitions
from tests.broker.harness import Running, running_node
from tests.clients.wait import until

MANY = 300
SOME = 20


class Calls:
    """How many functions the node's loop has called, while the profile is on."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.count = 0

    def of(self, work: Callable[[], None]) -> int:
        self.count = 0
        self._running.on_loop(lambda: sys.setprofile(self._note))
        try:
            work()
        finally:
            self._running.on_loop(lambda: sys.setprofile(None))
        return self.count

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        self.count += event in ("call", "c_call")


def create(running: Running, first: int, count: int) -> None:
    topics = [
        create_topics.CreatableTopic(name=f"topic-{number}", num_partitions=1, replication_factor=1)
        for number in range(first, first + count)
    ]
    request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=10_000)
    answer = running.call(create_topics, 7, request)
    assert [(each.name, each.error_code) for each in answer.topics] == [(each.name, 0) for each in topics]


def delete(running: Running, first: int, count: int) -> None:
    names = [f"topic-{number}" for number in range(first, first + count)]
    topics = [delete_topics.DeleteTopicState(name=name) for name in names]
    request = delete_topics.DeleteTopicsRequest(topics=topics, timeout_ms=10_000)
    answer = running.call(delete_topics, 6, request)
    assert [(each.name, each.error_code) for each in answer.responses] == [(name, 0) for name in names]
    until(lambda: not running.node.image.deleted, "their directories are gone")


def first_page(running: Running) -> None:
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(
        response_partition_limit=10,
        cursor=describe_topic_partitions.RequestCursor("topic-1"),
    )
    assert len(running.call(describe_topic_partitions, 0, request).topics) == 10


def test_a_topic_is_created_listed_and_deleted_at_the_same_cost_among_few_and_among_many(
    tmp_path: Path,
) -> None:
    with running_node(tmp_path) as running:
        calls = Calls(running)
        created = [calls.of(lambda: create(running, 0, SOME))]
        listed = [calls.of(lambda: first_page(running))]
        deleted = [calls.of(lambda: delete(running, 0, SOME))]
        create(running, SOME, MANY)
        created.append(calls.of(lambda: create(running, SOME + MANY, SOME)))
        listed.append(calls.of(lambda: first_page(running)))
        deleted.append(calls.of(lambda: delete(running, SOME + MANY, SOME)))
    assert created[1] < 1.3 * created[0], created
    assert listed[1] < 1.3 * listed[0], listed
    assert deleted[1] < 1.3 * deleted[0], deleted
