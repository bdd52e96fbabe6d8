"""A gateway that serves web hooks, and subscriptions with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from postroad.client import subscriptions, topics
from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.gateway import Message
from postroad.gateway.webhooks import hook
from postroad.gateway.webhooks.hook import Webhook
from postroad.gateway.webhooks.supervisor import Supervisor
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, StartGateway

SOON_S = 20.0  # and not only when a lock of 25 s ends
PULL_MS = 15_000
SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ="


class Queue:
    """A topic and a subscription, as a test on another loop than the gateway's sees them."""

    def __init__(self, running: RunningGateway, name: str) -> None:
        self.running = running
        self.name = name
        self.topic = f"{name}-topic"

    async def in_gateway(self, work: Any) -> Any:
        return await asyncio.to_thread(self.running.run, work)

    async def create(self, **config: str) -> None:
        gateway = self.running.gateway
        await self.in_gateway(topics.create(gateway.client, self.topic))
        given = {"share.auto.offset.reset": "earliest", **config}
        await self.in_gateway(gateway.directory.create(self.name, [self.topic], given))

    async def publish(self, *messages: bytes | Message) -> None:
        wanted = [each if isinstance(each, Message) else Message(each) for each in messages]
        for sent in await self.in_gateway(self.running.gateway.publish(self.topic, wanted)):
            assert not isinstance(sent, Exception)

    async def set_hook(self, url: str, **settings: Any) -> None:
        wanted = Webhook(url, SECRET, verified=True, **settings)
        await self.in_gateway(
            self.running.gateway.directory.alter(self.name, {hook.CONFIG: hook.write(wanted)})
        )

    async def hook(self) -> Webhook | None:
        info = await self.in_gateway(self._info())
        return hook.read(info.config[hook.CONFIG])

    async def _info(self) -> SubscriptionInfo:
        directory = self.running.gateway.directory
        directory.forget(self.name)
        return await directory.subscription(self.name)

    async def lag(self) -> int:
        """How many messages are neither accepted nor dead."""
        found = await self.in_gateway(subscriptions.positions(self.running.gateway.client, self.name))
        return sum(position.lag for position in found.values())

    async def pull(self) -> list[bytes | None]:
        received = await self.in_gateway(self.running.gateway.receive(self.name, 100, PULL_MS, 30_000))
        return [each.message.value for each in received]


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([], webhooks_private=True)


@pytest.fixture
async def queue(gateway: RunningGateway, name: str) -> AsyncIterator[Queue]:
    """A queue whose web hook is removed after the test, before its endpoint goes."""
    queue = Queue(gateway, name)
    await queue.create()
    yield queue
    await queue.in_gateway(gateway.gateway.directory.alter(name, {hook.CONFIG: None}))


@asynccontextmanager
async def served(running: RunningGateway) -> AsyncIterator[Supervisor]:
    """The gateway serves web hooks."""

    async def make() -> Supervisor:
        supervisor = Supervisor(running.gateway, look_s=0.1)
        await supervisor.start()
        return supervisor

    supervisor = await asyncio.to_thread(running.run, make())
    try:
        yield supervisor
    finally:
        await asyncio.to_thread(running.run, supervisor.stop())


async def eventually(look: Callable[[], Awaitable[bool]]) -> None:
    await until_async(look, "it comes to that", SOON_S, pause_s=0.05)
