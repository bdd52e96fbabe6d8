"""The share consumer: messages are taken, held, and settled one by one in any order."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Iterable, Sequence

import pytest

from postroad.client import AckType, Client, Producer, ShareConsumer, ShareMessage, subscriptions, topics
from postroad.errors import InvalidRecordState
from postroad.testing import Node

from .conftest import TopicMaker

PATIENCE_S = 25.0  # less than a lock lasts


async def publish(client: Client, topic: str, numbers: Iterable[int], partition: int | None = None) -> None:
    async with Producer(client) as producer:
        for n in numbers:
            await producer.send(topic, b"%d" % n, partition=partition)


async def configure(client: Client, group: str, **config: str) -> None:
    wanted = {"share.auto.offset.reset": "earliest", "share.heartbeat.interval.ms": "100"}
    await subscriptions.alter_config(
        client, group, wanted | {name.replace("_", "."): value for name, value in config.items()}
    )


async def take(consumer: ShareConsumer, count: int, **poll: int) -> list[ShareMessage]:
    """Exactly so many messages, which must come soon."""
    found: list[ShareMessage] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
        found += await consumer.poll(count - len(found), 500, **poll)
    return found


def numbers(messages: Iterable[ShareMessage]) -> list[int]:
    return [int(message.value or b"") for message in messages]


def counts(messages: Iterable[ShareMessage]) -> set[int]:
    return {message.delivery_count for message in messages}


@pytest.fixture
async def group(client: Client, name: str) -> str:
    await configure(client, name)
    return name


async def test_message_comes_with_all_its_fields(client: Client, new_topic: TopicMaker, group: str) -> None:
    topic = await new_topic(partitions=3)
    async with Producer(client) as producer:
        sent = await producer.send(topic, b"v", key=b"k", headers=[("h", b"1"), ("n", None)], timestamp=1234)
        place = await sent
    async with ShareConsumer(client, group, [topic]) as consumer:
        (message,) = await take(consumer, 1)
    headers = [("h", b"1"), ("n", None)]
    assert message == ShareMessage(topic, place.partition, place.offset, 1234, b"k", b"v", headers, 1)


async def test_no_more_than_asked_for_comes_even_of_one_batch(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(100))
    async with ShareConsumer(client, group, [topic]) as consumer:
        assert [numbers(await take(consumer, count)) for count in (1, 7, 2)] == [
            [0],
            [1, 2, 3, 4, 5, 6, 7],
            [8, 9],
        ]


async def test_each_message_has_the_fate_that_it_was_given(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(9))
    fates = [AckType.ACCEPT, AckType.RELEASE, AckType.REJECT]
    async with ShareConsumer(client, group, [topic]) as consumer:
        messages = await take(consumer, 9)
        for message in reversed(messages):
            consumer.acknowledge(message, fates[message.offset % 3])
        assert await consumer.commit() == []
        again = await take(consumer, 3)
        assert (numbers(again), counts(again)) == ([1, 4, 7], {2})
        assert await consumer.settle(again) == []
        assert await consumer.poll(10, 100) == []


async def test_many_messages_are_held_and_settled_while_more_are_polled(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic(partitions=4)
    await publish(client, topic, range(5000))
    held: list[ShareMessage] = []
    async with ShareConsumer(client, group, [topic]) as consumer:
        settling: list[asyncio.Task[list[object]]] = []
        while len(held) < 5000:
            came = await take(consumer, 250)
            held += came
            settling += [asyncio.create_task(_settled(consumer, [message])) for message in came]
        assert [refusal for refused in await asyncio.gather(*settling) for refusal in refused] == []
    assert sorted(numbers(held)) == list(range(5000))
    assert {place.start for place in (await subscriptions.positions(client, group)).values()} == {
        place.start + place.lag for place in (await subscriptions.positions(client, group)).values()
    }


async def _settled(consumer: ShareConsumer, messages: Sequence[ShareMessage]) -> list[object]:
    return list(await consumer.settle(messages))


async def test_message_that_is_no_longer_held_does_not_spoil_it_for_its_neighbours(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(50))
    async with ShareConsumer(client, group, [topic]) as consumer:
        messages = await take(consumer, 50)
        assert await consumer.settle([messages[17], messages[40]], AckType.RELEASE) == []
        refused = await consumer.settle(messages)
        assert numbers(refusal.message for refusal in refused) == [17, 40]
        assert {type(refusal.error) for refusal in refused} == {InvalidRecordState}
        assert numbers(await take(consumer, 2)) == [17, 40]


async def test_last_word_on_a_message_counts(client: Client, new_topic: TopicMaker, group: str) -> None:
    topic = await new_topic()
    await publish(client, topic, [7])
    async with ShareConsumer(client, group, [topic]) as consumer:
        (message,) = await take(consumer, 1)
        consumer.acknowledge(message, AckType.RELEASE)
        consumer.acknowledge(message, AckType.ACCEPT)
        assert await consumer.commit() == []
        assert await consumer.poll(10, 100) == []


async def test_acknowledgement_does_not_wait_for_a_poll_that_waits(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(20))
    async with ShareConsumer(client, group, [topic]) as consumer:
        messages = await take(consumer, 20)
        polling = asyncio.create_task(consumer.poll(10, 10_000))
        await asyncio.sleep(0.05)
        waits: list[float] = []
        for message in messages:
            began = time.monotonic()
            assert await consumer.settle([message]) == []
            waits.append(time.monotonic() - began)
        assert statistics.median(waits) < 0.3  # a fetch waits 0.5 s
        await publish(client, topic, [99])
        assert numbers(await polling) == [99]


async def test_what_came_for_a_cancelled_poll_is_polled_next(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    async with ShareConsumer(client, group, [topic]) as consumer:
        polling = asyncio.create_task(consumer.poll(10, 5000))
        await asyncio.sleep(0.1)
        polling.cancel()
        await publish(client, topic, [1])
        (message,) = await take(consumer, 1)
        assert message.delivery_count == 1


async def test_what_a_member_held_comes_to_another_when_it_closes(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(10))
    async with ShareConsumer(client, group, [topic]) as first, ShareConsumer(client, group, [topic]) as other:
        messages = await take(first, 10)
        first.acknowledge(messages[3])
        await first.close()
        again = await take(other, 9)
        assert (numbers(again), counts(again)) == ([0, 1, 2, 4, 5, 6, 7, 8, 9], {2})


async def test_lock_may_be_shorter_for_one_poll_and_ends(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, [5])
    async with ShareConsumer(client, group, [topic]) as consumer:
        began = time.monotonic()
        (message,) = await take(consumer, 1, lock_ms=500)
        (again,) = await take(consumer, 1)
        assert 0.5 <= time.monotonic() - began < 15
        assert again.delivery_count == 2
        assert await consumer.settle([again]) == []
        assert len(await consumer.settle([message])) == 1


async def test_lock_is_renewed_for_as_long_as_asked(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(2))
    async with ShareConsumer(client, group, [topic]) as consumer:
        kept, lost = await take(consumer, 2, lock_ms=1500)
        assert await consumer.settle([kept], AckType.RENEW, lock_ms=60_000) == []
        (again,) = await take(consumer, 1)
        assert again.offset == lost.offset
        assert await consumer.settle([kept]) == []


async def test_released_message_comes_again_after_its_delay(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, [5])
    async with ShareConsumer(client, group, [topic]) as consumer:
        (message,) = await take(consumer, 1)
        began = time.monotonic()
        assert await consumer.settle([message], AckType.RELEASE, delay_ms=300) == []
        await take(consumer, 1)
        assert 0.25 < time.monotonic() - began < 15


async def test_several_topics_are_one_subscription(client: Client, new_topic: TopicMaker, group: str) -> None:
    first, second = await new_topic(), await new_topic(partitions=2)
    await publish(client, first, range(5))
    await publish(client, second, range(5, 15))
    async with ShareConsumer(client, group, [first, second]) as consumer:
        messages = await take(consumer, 15)
        assert sorted(numbers(messages)) == list(range(15))
        assert {message.topic for message in messages} == {first, second}


async def test_members_share_one_partition_and_nothing_comes_twice(
    client: Client, new_topic: TopicMaker, group: str
) -> None:
    topic = await new_topic()
    members = [ShareConsumer(client, group, [topic]) for _ in range(3)]
    for member in members:
        await member.__aenter__()
    await publish(client, topic, range(300))
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < 300:
        assert time.monotonic() < deadline
        for messages in await asyncio.gather(*(member.poll(10, 100) for member in members)):
            found += numbers(messages)
    assert sorted(found) == list(range(300))
    for member in members:
        await member.close()


async def test_consumer_goes_on_when_its_node_comes_back(postroad: Node) -> None:
    async with Client(postroad.bootstrap, timeout_s=PATIENCE_S) as client:
        await topics.create(client, "t", partitions=1)
        await configure(client, "g")
        await publish(client, "t", range(10))
        async with ShareConsumer(client, "g", ["t"]) as consumer:
            messages = await take(consumer, 10)
            assert await consumer.settle(messages[:4]) == []
            postroad.kill()
            postroad.start()
            refused = await consumer.settle(messages[4:])
            assert numbers(refusal.message for refusal in refused) == list(range(4, 10))
            again = await take(consumer, 6)
            assert sorted(numbers(again)) == list(range(4, 10))
            assert await consumer.settle(again) == []
            async with asyncio.timeout(PATIENCE_S):  # some heartbeats: then it has joined the new group
                while len((await subscriptions.describe(client, "g")).members) != 1:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
