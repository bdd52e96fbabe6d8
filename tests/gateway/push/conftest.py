"""A gateway with push, and a topic with a subscription for each test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from postroad.client import topics
from postroad.gateway import push
from postroad.gateway.gateway import Message
from tests.gateway.conftest import RunningGateway, StartGateway

LOCK_MS = 30_000


class Queue:
    """A topic, a subscription to it, and a gateway in front of both."""

    def __init__(self, running: RunningGateway, name: str) -> None:
        self.running = running
        self.name = name
        self.topic = f"{name}-topic"
        self.url = f"ws{running.url.removeprefix('http')}/v1/subscriptions/{name}/stream"

    def create(self, partitions: int = 1, **config: str) -> None:
        gateway = self.running.gateway
        self.running.run(topics.create(gateway.client, self.topic, partitions=partitions))
        given = {"share.auto.offset.reset": "earliest", **config}
        self.running.run(gateway.directory.create(self.name, [self.topic], given))

    def publish(self, values: Sequence[bytes | Message]) -> None:
        messages = [value if isinstance(value, Message) else Message(value) for value in values]
        for sent in self.running.run(self.running.gateway.publish(self.topic, messages)):
            assert not isinstance(sent, Exception)

    def pull(self, wait_ms: int = 0, max_messages: int = 1000) -> list[bytes | None]:
        """What others can get now; it stays locked for a moment only."""
        received = self.running.run(
            self.running.gateway.receive(self.name, max_messages, wait_ms, lock_ms=LOCK_MS)
        )
        return [each.message.value for each in received]


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([push.routes])


@pytest.fixture
def queue(gateway: RunningGateway, name: str) -> Queue:
    queue = Queue(gateway, name)
    queue.create()
    return queue
