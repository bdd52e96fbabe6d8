"""Mirrors that run in this process, and what others see of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

from postroad.client import Client, TopicPartition, groups, subscriptions
from postroad.mirrors.mirror import Mirror, MirrorSettings
from postroad.mirrors.positions import Wanted
from postroad.testing import Node
from tests.spark import plain
from tests.spark.plain import Message, Row


def fill(
    node: Node, topic: str, partitions: int = 1, count: int = 0, text: bytes = b"a", **config: str
) -> None:
    plain.create(node.bootstrap, topic, partitions, **config)
    send(node, topic, count, text)


def send(node: Node, topic: str, count: int, text: bytes) -> None:
    plain.send(node.bootstrap, topic, [Message(b"%s%d" % (text, number)) for number in range(count)])


async def mirror_once(source: Node, target: Node, *topics: str, **more: Any) -> Mirror:
    """All that is there is mirrored afterwards."""
    settings = MirrorSettings(source.bootstrap, target.bootstrap, topics, once=True, **more)
    async with (
        Client(source.bootstrap, timeout_s=10) as here,
        Client(target.bootstrap, timeout_s=10) as there,
    ):
        mirror = Mirror(settings, here, there)
        await mirror.run(asyncio.Event())
        return mirror


@asynccontextmanager
async def mirroring(source: Node, target: Node, *topics: str, **more: Any) -> AsyncIterator[Mirror]:
    """A mirror that runs for as long as the block."""
    settings = MirrorSettings(source.bootstrap, target.bootstrap, topics, **{"every_s": 0.2, **more})
    stopping = asyncio.Event()
    with (
        closing(Client(source.bootstrap, timeout_s=10)) as here,
        closing(Client(target.bootstrap, timeout_s=10)) as there,
    ):
        mirror = Mirror(settings, here, there)
        running = asyncio.create_task(mirror.run(stopping))
        try:
            yield mirror
        finally:
            stopping.set()
            await running


def copied(mirror: Mirror) -> int:
    return sum(each.partition.written for each in mirror.watched.values())


def named(*names: str) -> Wanted:
    return Wanted(names)


async def commit(node: Node, group: str, topic: str, partition: int, offset: int) -> None:
    async with Client(node.bootstrap) as client:
        await groups.commit(client, group, {TopicPartition(topic, partition): offset})


async def position(node: Node, group: str, topic: str, partition: int = 0) -> int | None:
    async with Client(node.bootstrap) as client:
        return (await groups.committed(client, group)).get(TopicPartition(topic, partition))


async def starts(node: Node, name: str) -> dict[int, int]:
    """Where a subscription begins, by partition."""
    async with Client(node.bootstrap) as client:
        found = await subscriptions.positions(client, name)
        return {at.partition: each.start for at, each in found.items()}


async def read_all(node: Node, topic: str) -> list[Row]:
    return await asyncio.to_thread(plain.read_all, node.bootstrap, topic)


def values(rows: Sequence[Row]) -> list[bytes]:
    return [row.value or b"" for row in rows]


def plainly(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Without topic, offset, and the origin's headers."""
    return [
        (
            row.partition,
            row.key,
            row.value,
            row.time_ms,
            [each for each in row.headers if "-origin-" not in each[0]],
        )
        for row in rows
    ]
