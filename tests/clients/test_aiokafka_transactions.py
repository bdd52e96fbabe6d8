"""Promises to transactional producers and read_committed consumers of aiokafka."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced

from .conftest import Broker, TopicMaker
from .wait import PATIENCE_S


async def values(broker: Broker, topic: str, isolation: str) -> list[bytes | None]:
    where = TopicPartition(topic, 0)
    settings = {"isolation_level": isolation, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, **settings) as source:
        source.assign([where])
        end = (await source.end_offsets([where]))[where]
        found: list[bytes | None] = []
        while await source.position(where) < end:
            for batch in (await source.getmany(timeout_ms=200)).values():
                found += [message.value for message in batch]
        return found


async def check_committed(broker: Broker, topic: str, expected: list[bytes]) -> None:
    """The answer to a commit comes before its markers: they are there a moment later."""
    deadline = time.monotonic() + PATIENCE_S
    found = await values(broker, topic, "read_committed")
    while found != expected and time.monotonic() < deadline:
        found = await values(broker, topic, "read_committed")
    assert found == expected


async def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    broker: Broker, topic: str, unused_name: str
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unused_name) as through:
        for number in range(9):
            await through.begin_transaction()
            for part in range(3):
                await through.send(topic, f"{number}.{part}".encode(), partition=0)
            if number % 3 == 2:
                await through.flush()
                await through.abort_transaction()
            else:
                await through.commit_transaction()
    expected = [f"{n}.{part}".encode() for n in range(9) if n % 3 != 2 for part in range(3)]
    await check_committed(broker, topic, expected)
    assert len(await values(broker, topic, "read_uncommitted")) == 27


async def test_a_new_instance_fences_the_old_one(broker: Broker, topic: str, unused_name: str) -> None:
    settings = {"bootstrap_servers": broker.bootstrap, "transactional_id": unused_name}
    old, new = AIOKafkaProducer(**settings), AIOKafkaProducer(**settings)
    await old.start()
    await old.begin_transaction()
    await old.send_and_wait(topic, b"never seen", partition=0)
    await new.start()
    with pytest.raises(ProducerFenced):
        await asyncio.wait_for(old.commit_transaction(), PATIENCE_S)
    async with new.transaction():
        await new.send(topic, b"seen", partition=0)
    await check_committed(broker, topic, [b"seen"])
    await new.stop()
    await old.stop()


async def test_a_fenced_producer_can_not_write_either(broker: Broker, topic: str, unused_name: str) -> None:
    settings = {"bootstrap_servers": broker.bootstrap, "transactional_id": unused_name}
    old, new = AIOKafkaProducer(**settings), AIOKafkaProducer(**settings)
    await old.start()
    await new.start()
    await old.begin_transaction()
    with pytest.raises(ProducerFenced):
        await asyncio.wait_for(old.send_and_wait(topic, b"late", partition=0), PATIENCE_S)
    await new.stop()
    await old.stop()
    assert await values(broker, topic, "read_uncommitted") == []


async def test_transactions_of_nothing_are_fine(broker: Broker, topic: str, unused_name: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unused_name) as through:
        for commit in (True, False, True):
            await through.begin_transaction()
            await (through.commit_transaction() if commit else through.abort_transaction())
        async with through.transaction():
            await through.send(topic, b"x", partition=0)
    await check_committed(broker, topic, [b"x"])


async def test_an_open_transaction_holds_back_read_committed_only(
    broker: Broker, topic: str, unused_name: str
) -> None:
    where = TopicPartition(topic, 0)

    async def ends() -> list[int]:
        found = []
        for isolation in ("read_uncommitted", "read_committed"):
            async with AIOKafkaConsumer(
                bootstrap_servers=broker.bootstrap, isolation_level=isolation
            ) as source:
                found.append((await source.end_offsets([where]))[where])
        return found

    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unused_name) as through:
        await through.begin_transaction()
        await through.send_and_wait(topic, b"open", partition=0)
        assert await ends() == [1, 0]
        await through.commit_transaction()
        await check_committed(broker, topic, [b"open"])
        assert await ends() == [2, 2]


async def test_consume_transform_produce_with_every_third_aborted(
    broker: Broker, new_topic: TopicMaker, topic: str, unused_name: str
) -> None:
    out, where, group = new_topic(), TopicPartition(topic, 0), f"{unused_name}-group"
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as plain:
        for number in range(20):
            await plain.send_and_wait(topic, str(number).encode(), partition=0)
    async with (
        AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=unused_name) as through,
        AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap,
            group_id=group,
            enable_auto_commit=False,
            isolation_level="read_committed",
        ) as source,
    ):
        source.assign([where])
        done = tries = 0
        while done < 20:
            tries += 1
            source.seek(where, done)
            await through.begin_transaction()
            for number in range(done, done + 4):
                message = await asyncio.wait_for(source.getone(), PATIENCE_S)
                assert message.offset == number
                await through.send(out, (message.value or b"") + b"!", partition=0)
            await through.send_offsets_to_transaction({where: done + 4}, group)
            if tries % 3 == 0:
                await through.abort_transaction()
            else:
                await through.commit_transaction()
                done += 4
            deadline = time.monotonic() + PATIENCE_S
            found = await source.committed(where) or 0
            while found != done and time.monotonic() < deadline:
                found = await source.committed(where) or 0
            assert found == done
    await check_committed(broker, out, [b"%d!" % n for n in range(20)])
