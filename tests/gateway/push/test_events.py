"""Figures as Server-Sent Events: all at first, then what has changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from postroad.gateway import history, push
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.push.conftest import Queue

SOON_S = 60.0


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    """One that samples."""
    return start_gateway([push.routes], contexts=[history.context])


@asynccontextmanager
async def events(gateway: RunningGateway, query: str = "") -> AsyncIterator[ClientResponse]:
    async with ClientSession() as session, session.get(f"{gateway.url}/v1/events?{query}") as response:
        assert response.status == 200, await response.text()
        assert response.content_type == "text/event-stream"
        yield response


async def until(response: ClientResponse, of: str, name: str) -> dict[str, Any]:
    """The next figures of that name, whatever comes before."""
    async with asyncio.timeout(SOON_S):
        while True:
            block = (await response.content.readuntil(b"\n\n")).decode().strip()
            if block.startswith("data: "):
                change = json.loads(block.removeprefix("data: "))
                if change["of"] == of and name in change["figures"]:
                    return dict(change["figures"][name])


async def test_what_changes_is_told(gateway: RunningGateway, queue: Queue) -> None:
    async with events(gateway, f"of=topic,subscription&prefix={queue.name}") as response:
        assert (await until(response, "topic", queue.topic))["messages"] == 0
        await asyncio.to_thread(queue.publish, [b"1", b"2"])
        assert (await until(response, "topic", queue.topic))["messages"] == 2
        assert (await until(response, "subscription", queue.name))["lag"] == 2


async def test_who_asks_for_what_there_is_not_is_told(gateway: RunningGateway) -> None:
    async with (
        ClientSession() as session,
        session.get(f"{gateway.url}/v1/events?of=topic,cats") as response,
    ):
        assert response.status == 400
        assert "'cats' is none of cluster, node, topic" in (await response.json(content_type=None))["detail"]


async def test_only_those_that_begin_so_are_told(gateway: RunningGateway, queue: Queue) -> None:
    async with events(gateway, f"of=topic&prefix={queue.topic}") as response, asyncio.timeout(SOON_S):
        while True:
            block = (await response.content.readuntil(b"\n\n")).decode().strip()
            if block.startswith("data: "):
                assert set(json.loads(block.removeprefix("data: "))["figures"]) == {queue.topic}
                return
