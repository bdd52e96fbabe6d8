"""A node for all tests of this directory, a connected client and topics of their own for each."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from postroad.client import Client, topics
from postroad.testing import Node

TopicMaker = Callable[..., Awaitable[str]]


@pytest.fixture
async def client(postroad_session: Node) -> AsyncIterator[Client]:
    async with Client(postroad_session.bootstrap, timeout_s=10) as connected:
        yield connected


@pytest.fixture
def name() -> str:
    """For a topic or a group that nothing else uses."""
    return f"n-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def new_topic(client: Client) -> TopicMaker:
    async def create(partitions: int = 1, **config: str) -> str:
        made = f"t-{uuid.uuid4().hex[:10]}"
        named = {key.replace("_", "."): value for key, value in config.items()}
        await topics.create(client, made, partitions=partitions, config=named)
        return made

    return create
