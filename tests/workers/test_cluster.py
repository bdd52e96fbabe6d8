"""Workers in front of several nodes."""

from __future__ import annotations

import asyncio
from collections import Counter

import postroad
from postroad.client import Client, topics
from postroad.testing import cluster

from .conftest import until, working


async def test_what_other_nodes_hand_out_meanwhile_is_not_held_without_a_renewal() -> None:
    """All nodes are asked at once. What is too much goes back, and does not count as an attempt."""
    attempts: Counter[int] = Counter()
    ended: list[str] = []
    with cluster(nodes=2) as running:
        app = postroad.App(running.bootstrap)

        @app.worker("slow", topic="jobs", lock="1s", concurrency=1, attempts=2)
        async def slow(job: str, message: postroad.Message) -> None:
            attempts[message.attempt] += 1
            await asyncio.sleep(1.5)
            ended.append(job)

        async with Client(running.bootstrap) as client:
            await topics.create(client, "jobs", partitions=4)
        async with app:
            for key in "abcdefgh":
                await app.publish("jobs", key, key=key)
        async with working(app):
            await until(lambda: len(ended) == 8)
    assert attempts == {1: 8}
