"""Mirrors of topics some of which are refused, damaged or made anew, and their lag under load."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.client import Client, TopicPartition
from postroad.client.append import append
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.mirror import Mirror, MirrorSettings
from postroad.testing import Node, cluster
from postroad.wire.batch import HEADER_BYTES
from postroad.wire.records import Record, encode_batch
from tests.clients.wait import until_async
from tests.spark import plain

from .runs import copied, fill, mirror_once, mirroring, read_all, send, values


async def write(node: Node, where: TopicPartition, done: asyncio.Event) -> None:
    """One message after the other, without a pause."""
    async with Client(node.bootstrap) as client:
        while not done.is_set():
            await append(client, where, encode_batch([Record(0, 0, None, b"x")]))


async def test_a_topic_that_the_target_refuses_holds_up_no_other(
    west: Node, east: Node, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Names that differ in '.' and '_' only can't both be there."""
    plain.create(east.bootstrap, f"{topic}-a_b")
    async with mirroring(west, east, pattern=f"{topic}-.*") as mirror:
        fill(west, f"{topic}-a.b", count=2)
        fill(west, f"{topic}-later", count=3)
        await until_async(lambda: copied(mirror) == 3, "the other one is mirrored")
        await until_async(lambda: f"{topic}-a.b" in mirror.halted_topics, "it is told")
        plain.delete(east.bootstrap, f"{topic}-a_b")
        await until_async(lambda: copied(mirror) == 5, "nothing is in its way any more")
        assert not mirror.halted_topics
    assert caplog.text.count(f"halted: {topic}-a.b at the target: ") == 1
    plain.delete(east.bootstrap, f"{topic}-a.b")
    plain.create(east.bootstrap, f"{topic}-a_b")
    send(west, f"{topic}-later", 1, b"more ")
    with pytest.raises(MirrorError, match=f"{topic}-a.b at the target: "):
        await mirror_once(west, east, pattern=f"{topic}-.*")
    assert len(await read_all(east, f"{topic}-later")) == 4


async def test_a_damaged_partition_holds_up_no_other(
    postroad: Node, east: Node, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroad.mirrors.mirror.HALTED_PAUSE_S", 0.05)
    west = postroad
    fill(west, topic, partitions=2, count=3)
    (segment,) = [path for path in west.data_dir.glob("logs/*-0/*.log") if b"a0" in path.read_bytes()]
    with segment.open("r+b") as file:
        file.seek(HEADER_BYTES)
        file.write(b"\xff")
    done = asyncio.Event()
    writing = asyncio.create_task(write(west, TopicPartition(topic, 1), done))
    async with mirroring(west, east, topic) as mirror:
        await until_async(lambda: copied(mirror) > 50, "the other partition is mirrored")
        damaged = mirror.watched[TopicPartition(topic, 0)]
        await until_async(lambda: damaged.halted, "it is told, though others have messages all the time")
        done.set()
        await writing
        assert f"source: {topic}/0 is damaged at offset 0" in damaged.halted
    with pytest.raises(MirrorError, match="is damaged at offset 0"):
        await mirror_once(west, east, topic)


async def test_a_copy_that_is_made_anew_at_the_target_begins_at_the_beginning(
    west: Node, east: Node, topic: str
) -> None:
    """Else it would go on in the middle: a log that knows no producer takes any number."""
    fill(west, topic, count=5)
    async with mirroring(west, east, topic, every_s=3600) as mirror:
        await until_async(lambda: copied(mirror) == 5, "it is mirrored")
        plain.delete(east.bootstrap, topic)
        plain.create(east.bootstrap, topic)
        send(west, topic, 4, b"more ")
        await until_async(lambda: copied(mirror) == 9, "all of it is mirrored anew")
    assert values(await read_all(east, topic)) == values(await read_all(west, topic))


async def test_the_lag_of_a_mirror_stays_small_while_messages_come_all_the_time(
    west: Node, east: Node, topic: str
) -> None:
    """There is no moment at which it has all that there is."""
    fill(west, topic)
    done = asyncio.Event()
    async with mirroring(west, east, topic) as mirror:
        await until_async(lambda: mirror.watched, "it has begun")
        (watched,) = mirror.watched.values()
        writers = [asyncio.create_task(write(west, TopicPartition(topic, 0), done)) for _ in range(4)]
        began = asyncio.get_running_loop().time()
        await until_async(
            lambda: (watched.lag.caught_up_at or 0) > began + 3, "what was written lately is mirrored"
        )
        done.set()
        await asyncio.gather(*writers)


async def test_a_partition_without_a_leader_falls_behind_alone(
    east: Node, topic: str, tmp_path: Path
) -> None:
    with cluster(2, {"topics.replicas": 1}, directory=tmp_path) as west:
        admin = AdminClient({"bootstrap.servers": west.bootstrap})
        admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1], [2]])])[topic].result(60)
        async with (
            Client(west.node(1).bootstrap, timeout_s=10) as here,
            Client(east.bootstrap, timeout_s=10) as there,
        ):
            mirror = Mirror(MirrorSettings(west.bootstrap, east.bootstrap, [topic]), here, there)
            stopping = asyncio.Event()
            running = asyncio.create_task(mirror.run(stopping))
            await until_async(lambda: len(mirror.watched) == 2, "both are mirrored")
            alive, dead = (mirror.watched[TopicPartition(topic, number)] for number in range(2))
            await until_async(lambda: alive.lag.caught_up_at and dead.lag.caught_up_at, "both are there")
            west.node(2).kill()
            killed_at = asyncio.get_running_loop().time()
            await until_async(lambda: (alive.lag.caught_up_at or 0) > killed_at + 3, "the other goes on")
            assert (dead.lag.caught_up_at or 0) < killed_at + 2
            stopping.set()
            await running
