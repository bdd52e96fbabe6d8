"""Messages of a queue, taken and accepted in the transaction that writes what comes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import pytest

from postroad.client import (
    EARLIEST,
    Client,
    Consumer,
    ShareConsumer,
    ShareMessage,
    TopicPartition,
    offsets,
    subscriptions,
    topics,
)
from postroad.client.offsets import READ_COMMITTED
from postroad.client.transactions import TransactionalProducer
from postroad.errors import InvalidRecordState, UnsupportedVersion
from postroad.testing import Node, node

from .test_share_consumer import configure, numbers, publish, take


@pytest.fixture(scope="module")
def transacting() -> Iterator[Node]:
    with node() as running:
        yield running


@pytest.fixture
async def client(transacting: Node) -> AsyncIterator[Client]:
    async with Client(transacting.bootstrap, timeout_s=20) as connected:
        yield connected


@pytest.fixture
async def queue(client: Client, name: str) -> str:
    """A topic of three partitions with ten messages, and a subscription of the same name."""
    await topics.create(client, name, partitions=3)
    await topics.create(client, name + "-out")
    promises = {"postroad.topics": name, "share.record.lock.duration.ms": "60000"}
    await configure(client, name, **promises, **{"share.delivery.count.limit": "0"})
    await publish(client, name, range(10))
    return name


async def answer(producer: TransactionalProducer, queue: str, messages: Sequence[ShareMessage]) -> None:
    await producer.send(TopicPartition(queue + "-out", 0), [message.value or b"" for message in messages])


async def completed(client: Client, name: str) -> None:
    """The last transaction of the id has ended everywhere."""
    (await TransactionalProducer.begin(client, name)).close()


async def left(client: Client, queue: str) -> int:
    return sum(each.lag for each in (await subscriptions.positions(client, queue)).values())


async def answers(client: Client, queue: str) -> list[int]:
    """What a reader of what is committed finds."""
    out = TopicPartition(queue + "-out", 0)
    end, found = (await offsets.latest(client, [out], READ_COMMITTED))[out], list[int]()
    async with Consumer(client, reset=None, isolation=READ_COMMITTED) as consumer:
        await consumer.assign({out: EARLIEST})
        while consumer.positions[out] < end:
            for _, records, _ in await consumer.poll(0.2):
                found += [int(record.value or b"") for record in records]
    return sorted(found)


async def test_messages_are_taken_and_answered_all_or_nothing(client: Client, queue: str) -> None:
    async with ShareConsumer(client, queue, [queue]) as consumer:
        producer = await TransactionalProducer.begin(client, queue)
        taken = await take(consumer, 10)
        await answer(producer, queue, taken[:4])
        await producer.acknowledge(consumer, taken[:4])
        await producer.abort()
        again = await take(consumer, 4)
        assert sorted(numbers(again)) == sorted(numbers(taken[:4]))
        assert {message.delivery_count for message in again} == {2}
        await answer(producer, queue, again)
        await producer.acknowledge(consumer, again)
        await producer.acknowledge(consumer, taken[4:])
        await producer.commit()
        await completed(client, queue)
        assert await left(client, queue) == 0
        producer.close()


async def test_what_is_no_longer_held_can_not_be_part_of_a_transaction(client: Client, queue: str) -> None:
    """Nothing of its partition is taken: the rest stays held. What was taken elsewhere comes again."""
    await publish(client, queue, range(10, 14), partition=0)
    await publish(client, queue, range(14, 16), partition=1)
    async with ShareConsumer(client, queue, [queue]) as consumer:
        producer = await TransactionalProducer.begin(client, queue)
        taken = await take(consumer, 16)
        gone = next(message for message in taken if message.partition == 0)
        await consumer.settle([gone])
        with pytest.raises(InvalidRecordState, match=f"offset {gone.offset}"):
            await producer.acknowledge(consumer, taken)
        await producer.abort()
        held = [message for message in taken if message.partition == 0 and message is not gone]
        again = await take(consumer, 16 - 1 - len(held))
        assert {message.partition for message in again} <= {1, 2}
        assert await consumer.settle(held) == []
        producer.close()


async def test_transactions_follow_each_other_without_a_pause(client: Client, queue: str) -> None:
    """The next one's first message waits for the end of the one before, and is not refused."""
    async with ShareConsumer(client, queue, [queue]) as consumer:
        producer = await TransactionalProducer.begin(client, queue)
        for message in await take(consumer, 10):
            await producer.acknowledge(consumer, [message])
            await producer.commit()
        await completed(client, queue)
        assert await left(client, queue) == 0
        producer.close()


@pytest.mark.parametrize("commit", [True, False])
async def test_kill_9_between_taking_and_committing_changes_nothing(
    transacting: Node, client: Client, queue: str, commit: bool
) -> None:
    producer = await TransactionalProducer.begin(client, queue)
    consumer = ShareConsumer(client, queue, [queue])
    await consumer.__aenter__()
    taken = await take(consumer, 10)
    await answer(producer, queue, taken[:6])
    await producer.acknowledge(consumer, taken[:6])
    transacting.kill()
    transacting.start()
    await (producer.commit() if commit else producer.abort())
    await completed(client, queue)
    producer.close()
    assert await answers(client, queue) == (sorted(numbers(taken[:6])) if commit else [])
    async with ShareConsumer(client, queue, [queue]) as other:
        again = await take(other, 4 if commit else 10)
        assert sorted(numbers(again)) == sorted(numbers(taken[6:] if commit else taken))
    await consumer.close()


async def test_without_transactions_of_version_2_it_is_refused(client: Client, queue: str) -> None:
    producer = await TransactionalProducer.begin(client, queue, own_epochs=False)
    async with ShareConsumer(client, queue, [queue]) as consumer:
        taken = await take(consumer, 1)
        with pytest.raises(UnsupportedVersion, match=r"kafka\.transactions"):
            await producer.acknowledge(consumer, taken)
        assert await consumer.settle(taken) == []
    producer.close()


async def test_each_message_is_answered_once_by_workers_that_abort_now_and_then(
    client: Client, queue: str
) -> None:
    for name in ("a", "b", "c"):
        async with ShareConsumer(client, queue, [queue]) as consumer:
            producer = await TransactionalProducer.begin(client, f"{queue}-{name}")
            for commit in (False, True, False, name == "c"):
                taken = await take(consumer, 2)
                await answer(producer, queue, taken)
                await producer.acknowledge(consumer, taken)
                await (producer.commit() if commit else producer.abort())
            await completed(client, f"{queue}-{name}")
            producer.close()
    assert await left(client, queue) == 2
    async with ShareConsumer(client, queue, [queue]) as consumer:
        rest = await take(consumer, 2)
        assert sorted([*await answers(client, queue), *numbers(rest)]) == list(range(10))
