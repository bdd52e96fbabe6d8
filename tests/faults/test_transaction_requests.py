"""kill -9 of a gateway and of its node under workers that take and answer in one request."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from postroad.testing import Node, node
from tests.clients.wait import until_async
from tests.gateway.processes import gateway_pid

MESSAGES = 300
WORKERS = 3
LOCK_MS = 4_000
PATIENCE_S = 90.0  # what was held, or pledged by a gateway that died, comes again sooner
CRASHES = ["gateway", "node", "gateway"]
PASSING = (OSError, aiohttp.ClientError, TimeoutError)


class Api:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        async with self._session.post(path, json=body) as response:
            return response.status, await response.json(content_type=None)

    async def surely(self, path: str, body: Any) -> Any:
        """Try again until it is done."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                status, answer = await self.post(path, body)
                if status < 300 or status == 409:
                    return answer
            except PASSING:
                pass
            assert time.monotonic() < end, path
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_each_message_is_answered_once_over_kill_9_of_gateway_and_node(tmp_path: Path) -> None:
    settings = {"http.enabled": True, "kafka.transactions": True}
    with node(settings, directory=tmp_path) as running:
        async with aiohttp.ClientSession(running.http, timeout=aiohttp.ClientTimeout(20)) as session:
            api = Api(session)
            await api.surely("/v1/topics", {"name": "jobs", "partitions": 3})
            await api.surely("/v1/topics", {"name": "results"})
            for name, topic, isolation in (
                ("workers", "jobs", "read_uncommitted"),
                ("read", "results", "read_committed"),
            ):
                configs = {"share.isolation.level": isolation, "share.delivery.count.limit": "0"}
                new = {
                    "name": name,
                    "topics": [topic],
                    "start": "earliest",
                    "lock_ms": LOCK_MS,
                    "configs": configs,
                }
                await api.surely("/v1/subscriptions", new)
            for first in range(0, MESSAGES, 100):
                values = [{"value": str(n), "key": str(n)} for n in range(first, first + 100)]
                await api.surely("/v1/topics/jobs/messages", values)
            stop, done = asyncio.Event(), [0]
            workers = [asyncio.create_task(work(api, stop, done)) for _ in range(WORKERS)]
            for count, victim in enumerate(CRASHES, 1):
                await reached(done, count * MESSAGES // (len(CRASHES) + 2))
                await asyncio.sleep(random.Random(count).random() * 0.2)
                await asyncio.to_thread(crash, running, victim)
            found = await asyncio.wait_for(read_all(api, MESSAGES), PATIENCE_S)
            stop.set()
            await asyncio.gather(*workers)
        assert sorted(found, key=int) == [str(n) for n in range(MESSAGES)]


async def work(api: Api, stop: asyncio.Event, done: list[int]) -> None:
    """Take some, answer them and be done with them; whatever fails is left to come again."""
    while not stop.is_set():
        try:
            status, came = await api.post("/v1/subscriptions/workers/receive", {"max": 4, "wait_ms": 500})
            if status != 200 or not came["messages"]:
                continue
            publish = [{"topic": "results", "value": each["value"]} for each in came["messages"]]
            receipts = [each["receipt"] for each in came["messages"]]
            status, _ = await api.post("/v1/transactions", {"acknowledge": receipts, "publish": publish})
            done[0] += len(receipts) if status == 200 else 0
        except PASSING:
            await asyncio.sleep(0.05)


async def reached(done: list[int], count: int) -> None:
    async def is_reached() -> bool:
        return done[0] >= count

    await until_async(is_reached, f"{count} messages are answered", PATIENCE_S)


def crash(running: Node, victim: str) -> None:
    if victim == "gateway":
        os.kill(gateway_pid(running), signal.SIGKILL)
    else:
        running.kill()
        running.start()


async def read_all(api: Api, count: int) -> list[str]:
    """What a reader of what is committed finds, until there are as many, and then whether there are more."""
    found: dict[str, str] = {}
    quiet = 0
    while len(found) < count or quiet < 2:
        answer = await api.surely("/v1/subscriptions/read/receive", {"max": 1000, "wait_ms": 1000})
        messages = answer["messages"]
        quiet = 0 if messages else quiet + 1
        found.update({each["id"]: each["value"] for each in messages})
        if messages:
            receipts = [each["receipt"] for each in messages]
            await api.surely("/v1/subscriptions/read/acknowledge", {"receipts": receipts})
    return list(found.values())
