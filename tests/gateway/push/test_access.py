"""Streams and tails where there are access keys, and among all other dialects."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import ClientSession
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from postroad.gateway.dialects import DIALECTS
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.push.conftest import Queue

KEY = {"Authorization": "Bearer ours:secret"}
BASIC_KEY = {"Authorization": "Basic b3VyczpzZWNyZXQ="}


@pytest.fixture(scope="module")
def gateway(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway(DIALECTS, access_keys="ours:secret")


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer ours:wrong"}, {"Authorization": "?"}])
async def test_without_the_right_key_there_is_no_stream_and_no_tail(
    queue: Queue, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(queue.url, additional_headers=headers)
    assert refused.value.response.status_code == 401
    url = f"{queue.running.url}/v1/topics/{queue.topic}/tail"
    async with ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 401


async def test_with_a_key_both_work(queue: Queue) -> None:
    await asyncio.to_thread(queue.publish, [b"1"])
    async with connect(f"{queue.url}?credit=1", additional_headers=KEY) as socket:
        assert json.loads(await socket.recv())["value"] == "1"
    url = f"{queue.running.url}/v1/topics/{queue.topic}/tail?from=beginning"
    async with ClientSession(headers=BASIC_KEY) as session, session.get(url) as response:
        assert response.status == 200
        assert b"retry" in await response.content.readuntil(b"\n\n")


async def test_a_request_that_is_no_handshake_is_refused(queue: Queue) -> None:
    url = queue.url.replace("ws://", "http://")
    async with ClientSession(headers=KEY) as session, session.get(url) as response:
        assert response.status == 400
