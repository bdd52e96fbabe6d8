"""One run of `postroad cluster chaos`: a publisher, a striker, and a reader in the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import click

from postroad.cli.session import Failed
from postroad.client import Client, offsets, topics
from postroad.client.consumer import Consumer
from postroad.client.metadata import Cluster, TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.client.producer import Delivery, Producer
from postroad.errors import PostroadError

TOPIC: Final = "postroad-chaos"
PARTITIONS: Final = 6
PUBLISH_S: Final = 0.02  # between two messages
LOOK_S: Final = 0.2
REST_S: Final = (1.0, 5.0)  # between two faults, when all is well again
WHOLE_S: Final = 180.0  # a node is started again, and has caught up, within so long

Position = tuple[int, int]
"""A partition and an offset."""


class Published(NamedTuple):
    """A numbered message, and where it was said to be stored."""

    number: int
    position: Position


class ChaosRun:
    def __init__(self, client: Client, directories: Sequence[Path], pause_s: float, seed: int) -> None:
        self.acknowledged: list[Published] = []
        self.failed: list[int] = []
        self.stored: dict[Position, int] = {}
        self.found: list[str] = []  # promises that were broken
        self.longest_s = 0.0
        self.kills = self.pauses = 0
        self._client = client
        self._directories = directories
        self._pause_s = pause_s
        self._random = random.Random(seed)
        self._nodes = 0

    async def play(self, seconds: float) -> None:
        """Publish and strike for so long, then read all that is stored."""
        await self._prepare()
        done = asyncio.Event()
        publishing = asyncio.create_task(self._publish(done))
        try:
            await self._strike(asyncio.get_running_loop().time() + seconds)
        finally:
            done.set()
            await publishing
        await self._read()
        self.found = findings(self.acknowledged, self.stored)
        if not self.found:
            await topics.delete(self._client, [TOPIC])

    async def _prepare(self) -> None:
        seen = await self._client.retry(self._client.cluster)
        self._nodes = len(seen.nodes)
        if TOPIC in seen.topics:
            raise Failed(f"there is a topic {TOPIC} of a run that failed: look at it, then delete it")
        await topics.create(self._client, TOPIC, partitions=PARTITIONS, replicas=min(3, self._nodes))
        await self._wait_until_whole()

    # --- messages

    async def _publish(self, done: asyncio.Event) -> None:
        number = 0
        async with Producer(self._client) as producer:
            while not done.is_set():
                sent_at = asyncio.get_running_loop().time()
                delivery = await producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
                delivery.then(partial(self._delivered, delivery, number, sent_at))
                number += 1
                await asyncio.sleep(PUBLISH_S)
        await asyncio.sleep(0)  # the last ones are told

    def _delivered(self, delivery: Delivery, number: int, sent_at: float) -> None:
        try:
            sent = delivery.result()
        except (PostroadError, asyncio.CancelledError):
            self.failed.append(number)  # it may be stored or not
            return
        self.acknowledged.append(Published(number, (sent.partition, sent.offset)))
        self.longest_s = max(self.longest_s, asyncio.get_running_loop().time() - sent_at)

    async def _read(self) -> None:
        parts = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
        ends = await offsets.latest(self._client, parts)
        async with Consumer(self._client, reset=None) as consumer:
            await consumer.assign(dict.fromkeys(parts, EARLIEST))
            while any(consumer.positions[part] < end for part, end in ends.items()):
                for part, records, _ in await consumer.poll(5.0):
                    self.stored |= {
                        (part.partition, record.offset): int(record.value or b"-1") for record in records
                    }

    # --- faults

    async def _strike(self, until_s: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until_s:
            directory = self._random.choice(list(self._directories))
            if self.kills <= self.pauses:
                await self._kill(directory)
            else:
                await self._pause(directory)
            await self._wait_until_whole()
            await asyncio.sleep(self._random.uniform(*REST_S))

    async def _kill(self, directory: Path) -> None:
        pid = pid_of(directory)
        click.echo(f"killing the node in {directory} (process {pid})", err=True)
        os.kill(pid, signal.SIGKILL)
        self.kills += 1
        deadline = asyncio.get_running_loop().time() + WHOLE_S
        while pid_of(directory) == pid:
            if asyncio.get_running_loop().time() > deadline:
                raise Failed(f"nobody has started the node in {directory} again")
            await asyncio.sleep(LOOK_S)

    async def _pause(self, directory: Path) -> None:
        pid = pid_of(directory)
        click.echo(f"pausing the node in {directory} (process {pid})", err=True)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(self._pause_s)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self.pauses += 1

    async def _wait_until_whole(self) -> None:
        deadline = asyncio.get_running_loop().time() + WHOLE_S
        while True:
            with contextlib.suppress(PostroadError):
                if self._is_whole(await self._client.cluster()):
                    return
            if asyncio.get_running_loop().time() > deadline:
                raise Failed("the cluster is not whole again: see `postroad cluster status`")
            await asyncio.sleep(LOOK_S)

    def _is_whole(self, seen: Cluster) -> bool:
        partitions = [each for topic in seen.topics.values() for each in topic.partitions]
        return len(seen.nodes) >= self._nodes and all(
            each.leader in seen.nodes and sorted(each.isr) == sorted(each.replicas) for each in partitions
        )


def findings(acknowledged: Sequence[Published], stored: Mapping[Position, int]) -> list[str]:
    """What is wrong with the numbers that are stored, given where they were said to be."""
    found = []
    for number, position in acknowledged:
        if stored.get(position) != number:
            there = stored.get(position)
            is_there = "nothing is" if there is None else f"message {there} is"
            found.append(f"message {number} was acknowledged at {_shown(position)}, where {is_there}")
    seen: dict[int, Position] = {}
    last: dict[int, int] = {}
    for position, number in sorted(stored.items()):
        if number in seen:
            found.append(f"message {number} is at {_shown(seen[number])} and at {_shown(position)}")
        elif number < last.get(position[0], -1):
            found.append(f"message {number} at {_shown(position)} comes after message {last[position[0]]}")
        seen.setdefault(number, position)
        last[position[0]] = max(number, last.get(position[0], -1))
    return found


def _shown(position: Position) -> str:
    return f"{TOPIC}/{position[0]} offset {position[1]}"


def pid_of(directory: Path) -> int:
    """The process that uses the data directory."""
    try:
        return int((directory / "lock").read_text())
    except (OSError, ValueError):
        raise Failed(f"no node runs in {directory}") from None
