"""A gateway with REST in front of the session's node, and an HTTP client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from postroad.gateway import rest
from tests.clients.wait import until_async
from tests.gateway.conftest import RunningGateway, StartGateway

PATIENCE_S = 50.0  # with what comes soon


class Api:
    """Requests and answers in a word each: `await api.post("/v1/topics", {"name": "t"}, status=201)`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def call(
        self, method: str, path: str, body: Any = None, *, status: int = 200, **options: Any
    ) -> Any:
        """The answer's JSON. It has that status and a type that fits it."""
        if body is not None:
            options["json"] = body
        async with self.session.request(method, path, **options) as response:
            assert response.status == status, await response.text()
            if status == 204:
                return None
            problem = status >= 400
            assert response.content_type == ("application/problem+json" if problem else "application/json")
            found = await response.json(content_type=None)
            if problem:
                assert found["status"] == status
            return found

    async def get(self, path: str, **options: Any) -> Any:
        return await self.call("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return await self.call("POST", path, body, **options)

    async def queue(self, name: str, **fields: Any) -> None:
        """A topic and a subscription of the same name."""
        await self.post("/v1/topics", {"name": name}, status=201)
        await self.post("/v1/subscriptions", {"name": name, "topics": [name], **fields}, status=201)

    async def publish(self, topic: str, *values: Any) -> list[Any]:
        answer = await self.post(
            f"/v1/topics/{topic}/messages", [{"value": value} for value in values], status=201
        )
        return list(answer["messages"])

    async def receive(self, subscription: str, count: int = 1, **fields: Any) -> list[Any]:
        """Receive `count` messages, in as many calls as it takes."""
        found: list[Any] = []
        for _ in range(20):
            request = {"max": count - len(found), "wait_ms": 1000, **fields}
            found += (await self.post(f"/v1/subscriptions/{subscription}/receive", request))["messages"]
            if len(found) >= count:
                return found
        raise AssertionError(f"{len(found)} messages came, not {count}")

    async def settle(
        self, subscription: str, action: str, messages: list[Any], *, status: int = 200, **fields: Any
    ) -> Any:
        receipts = [message["receipt"] for message in messages]
        return (
            await self.post(
                f"/v1/subscriptions/{subscription}/{action}", {"receipts": receipts, **fields}, status=status
            )
        )["results"]


async def state_of(api: Api, message_id: str, subscription: str) -> Any:
    found = (await api.get(f"/v1/messages/{message_id}"))["subscriptions"]
    return next(state for state in found if state["subscription"] == subscription)


async def dead(api: Api, message_id: str, subscription: str) -> Any:
    """The message's state, once its dead letter has arrived."""

    async def state() -> Any:
        found = await state_of(api, message_id, subscription)
        return found if found["dead_letter"] else None

    return await until_async(state, "its letter has arrived", PATIENCE_S)


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([rest.routes])


@pytest.fixture
async def api(gateway: RunningGateway) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession(gateway.url) as session:
        yield Api(session)
