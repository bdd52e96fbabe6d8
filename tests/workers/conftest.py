"""Apps on a real node, with topics and subscriptions of their own."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

import postroad
from postroad.client import Client, Consumer
from postroad.client.metadata import TopicPartition
from postroad.testing import Node
from postroad.wire.records import Record

PATIENCE_S = 60.0


@pytest.fixture
def name() -> str:
    """For a topic or a subscription that nothing else uses."""
    return f"w-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def app(postroad_session: Node) -> postroad.App:
    return postroad.App(postroad_session.bootstrap, timeout="20s")


@asynccontextmanager
async def working(app: postroad.App) -> AsyncIterator[None]:
    """The app's workers run within the block, and are stopped at its end."""
    async with asyncio.TaskGroup() as group:  # a worker that fails ends the block
        running = group.create_task(app.work())
        try:
            yield
        finally:
            app.stop()
            await asyncio.wait([running])
            await app.close()


async def until(is_so: Callable[[], bool], what: str = "it") -> None:
    """Wait for something that is to happen soon."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"{what} did not happen"
        await asyncio.sleep(0.01)


async def records(bootstrap: str, topic: str, count: int) -> Sequence[Record]:
    """The first records of a topic with one partition, which may be made yet."""
    found: list[Record] = []
    async with Client(bootstrap) as client:
        await client.topic(topic, create=True)
        async with Consumer(client) as consumer:
            await consumer.assign({TopicPartition(topic, 0): 0})
            deadline = time.monotonic() + PATIENCE_S
            while len(found) < count:
                assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
                for fetched in await consumer.poll(0.5):
                    found += fetched.records
    return found


def header(record: Record, name: str) -> str:
    return (dict(record.headers)[name] or b"").decode()
