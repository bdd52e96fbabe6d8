"""A queue that keeps its node busy is spread over all nodes, a queue by keys is not (`partitions.auto`)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from postroad.client import Client, Producer, ShareConsumer, subscriptions, topics
from postroad.cluster.topic_config import PARTITIONS_AUTO
from postroad.testing import cluster
from postroad.wire.subscription_names import TOPICS_CONFIG

WITHIN_S = 60.0
PLAIN, BY_KEY = "plain", "by-key"
SETTINGS = {"topics.replicas": 3, "cluster.busy_percent": 0, "cluster.busy_ms": 600}  # each node is busy


async def prepare(client: Client, topic: str, order: str) -> None:
    await topics.create(client, topic, partitions=1, config={PARTITIONS_AUTO: "5"})
    config = {TOPICS_CONFIG: topic, "postroad.order": order, "share.auto.offset.reset": "earliest"}
    await subscriptions.alter_config(client, topic, config)


async def leaders(client: Client, topic: str) -> list[int]:
    seen = await client.retry(lambda: client.cluster([topic]))
    return [each.leader for each in seen.topics[topic].partitions]


async def spread(bootstrap: str) -> None:
    sent: set[bytes] = set()
    async with Client(bootstrap) as client, Producer(client) as producer:
        await prepare(client, PLAIN, "none")
        await prepare(client, BY_KEY, "key")

        async def send(topic: str, partition: int | None = None) -> None:
            value = b"%s-%d" % (topic.encode(), len(sent))
            await (await producer.send(topic, value, key=value, partition=partition))
            sent.add(value)

        async with asyncio.timeout(WITHIN_S):
            while len(await leaders(client, PLAIN)) == 1:
                for _ in range(5):
                    await send(PLAIN)
                await send(BY_KEY, 0)
        # As long again with nothing but messages of the other one: it stays as it is.
        for _ in range(40):
            await send(BY_KEY, 0)
            await asyncio.sleep(0.05)
        assert len(await leaders(client, BY_KEY)) == 1
        assert sorted(await leaders(client, PLAIN)) == [1, 2, 3]
        for partition in range(3):
            await send(PLAIN, partition)
        assert await received(client, sent) == {(PLAIN, 0), (PLAIN, 1), (PLAIN, 2), (BY_KEY, 0)}


async def received(client: Client, sent: set[bytes]) -> set[tuple[str, int]]:
    """Take all of it; where it came from. What was accepted must not come again."""
    accepted: set[bytes] = set()
    came_from = set()
    for topic in (PLAIN, BY_KEY):
        async with ShareConsumer(client, topic, [topic]) as consumer, asyncio.timeout(WITHIN_S):
            wanted = {value for value in sent if value.startswith(topic.encode() + b"-")}
            while not wanted <= accepted:
                messages = await consumer.poll(max_wait_ms=200)
                assert not accepted & {each.value for each in messages}
                refused = {refusal.message.value for refusal in await consumer.settle(messages)}
                accepted |= {each.value or b"" for each in messages} - refused
                came_from |= {(topic, each.partition) for each in messages}
    assert accepted == sent
    return came_from


def test_a_busy_queue_is_spread_over_all_nodes_unless_it_goes_by_keys(tmp_path: Path) -> None:
    with cluster(nodes=3, settings=SETTINGS, directory=tmp_path) as running:
        asyncio.run(spread(running.bootstrap))
