"""Sending: every compression, order, places, errors, and nodes that go away."""

from __future__ import annotations

import asyncio
import time

import pytest

from postroad.client import EARLIEST, Client, Consumer, Delivery, Producer, TopicPartition, topics
from postroad.errors import InvalidRecord, MessageTooLarge, NetworkException, UnknownTopicOrPartition
from postroad.testing import Node
from postroad.wire.compression import NAMES
from postroad.wire.records import Record

from .conftest import TopicMaker

PATIENCE_S = 30.0


async def read_all(client: Client, topic: str, count: int, partitions: int = 1) -> list[Record]:
    """`count` records, those of one partition together and in order."""
    found: dict[TopicPartition, list[Record]] = {}
    async with Consumer(client, reset=EARLIEST) as consumer:
        await consumer.assign({TopicPartition(topic, n): EARLIEST for n in range(partitions)})
        while sum(map(len, found.values())) < count:
            fetched = await consumer.poll(PATIENCE_S)
            assert fetched, f"only {found} came"
            for place, records, _ in fetched:
                found.setdefault(place, []).extend(records)
    return [record for _, records in sorted(found.items()) for record in records]


@pytest.mark.parametrize("compression", NAMES)
async def test_records_come_back_whole_with_every_compression(
    client: Client, new_topic: TopicMaker, compression: str
) -> None:
    topic = await new_topic()
    async with Producer(client, compression=compression) as producer:
        sent = [
            await producer.send(
                topic,
                b"value %d " % n * 20,
                key=b"key %d" % n,
                headers=[("n", b"%d" % n), ("null", None)],
                timestamp=1_700_000_000_000 + n,
            )
            for n in range(100)
        ]
        places = [await delivery for delivery in sent]
    assert [place.offset for place in places] == list(range(100))
    records = await read_all(client, topic, 100)
    assert records[42] == Record(
        42, 1_700_000_000_042, b"key 42", b"value 42 " * 20, [("n", b"42"), ("null", None)]
    )


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_each_kind_of_acks_delivers(client: Client, new_topic: TopicMaker, acks: int) -> None:
    topic = await new_topic()
    async with Producer(client, acks=acks) as producer:
        sent = await (await producer.send(topic, None, key=b"tombstone"))
    assert (sent.partition, sent.offset) == (0, -1 if acks == 0 else 0)
    assert (await read_all(client, topic, 1))[0].value is None


async def test_one_key_keeps_one_partition_and_its_order(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(partitions=4)
    async with Producer(client, batch_bytes=500) as producer:
        for n in range(400):
            await producer.send(topic, b"%d" % n, key=b"key %d" % (n % 10))
    records = await read_all(client, topic, 400, partitions=4)
    for key in {record.key for record in records}:
        values = [int(record.value or b"") for record in records if record.key == key]
        assert values == sorted(values)
        assert len(values) == 40


async def test_records_without_key_spread_over_partitions(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(partitions=3)
    async with Producer(client, batch_bytes=300) as producer:
        sent = [await producer.send(topic, b"x" * 100) for _ in range(200)]
        used = {(await delivery).partition for delivery in sent}
    assert used == {0, 1, 2}


async def test_first_record_makes_the_topic(client: Client, name: str) -> None:
    async with Producer(client) as producer:
        await producer.send(name, b"first")
    assert (await read_all(client, name, 1))[0].value == b"first"


async def test_partition_that_is_not_there_is_refused_at_once(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(partitions=2)
    async with Producer(client) as producer:
        with pytest.raises(UnknownTopicOrPartition, match="has 2 partitions; there is no 7"):
            await producer.send(topic, b"x", partition=7)
        assert (await (await producer.send(topic, b"x", partition=1))).partition == 1


async def test_refused_batch_fails_its_deliveries_and_the_next_one_goes_on(
    client: Client, new_topic: TopicMaker
) -> None:
    topic = await new_topic(max_message_bytes="1000")
    producer = Producer(client)
    large = await producer.send(topic, bytes(5000))
    with pytest.raises(MessageTooLarge):
        await large
    with pytest.raises(MessageTooLarge):
        await producer.flush()
    assert (await (await producer.send(topic, b"small"))).offset == 0
    await producer.flush()


async def test_a_record_that_is_refused_fails_alone(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(max_message_bytes="1000")
    compacted = await new_topic(cleanup_policy="compact")
    producer = Producer(client)
    sizes = (10, 2000, 10, 500, 3000, 10)
    sent = [await producer.send(topic, b"x" * size) for size in sizes]
    keyless = await producer.send(compacted, b"no key")
    keyed = await producer.send(compacted, b"x", key=b"key")
    outcomes = await asyncio.gather(*map(outcome, [*sent, keyless, keyed]), return_exceptions=True)
    offsets = [None if isinstance(got, Exception) else got for got in outcomes]
    assert offsets == [0, None, 1, 2, None, 3, None, 0]
    assert isinstance(outcomes[1], MessageTooLarge)
    assert isinstance(outcomes[-2], InvalidRecord)
    with pytest.raises((MessageTooLarge, InvalidRecord)):
        await producer.flush()
    assert (await (await producer.send(topic, b"next"))).offset == 4


async def outcome(delivery: Delivery) -> int:
    return (await delivery).offset


async def test_batch_that_the_topic_finds_too_large_goes_out_in_parts(
    client: Client, new_topic: TopicMaker
) -> None:
    topic = await new_topic(max_message_bytes="1000")
    async with Producer(client) as producer:
        sent = [await producer.send(topic, b"%d" % number * 50) for number in range(40)]
        offsets = [(await delivery).offset for delivery in sent]
    assert offsets == list(range(40))
    records = await read_all(client, topic, 40)
    assert [record.value for record in records] == [b"%d" % number * 50 for number in range(40)]


async def test_failure_that_nobody_awaits_is_raised_at_the_end(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(max_message_bytes="1000")
    with pytest.raises(MessageTooLarge):
        async with Producer(client) as producer:
            await producer.send(topic, bytes(5000))


async def test_full_buffer_makes_senders_wait(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    async with Producer(client, buffer_bytes_max=10_000, batch_bytes=1000) as producer:
        for _ in range(100):
            await producer.send(topic, bytes(1000))
            assert producer.buffered_bytes <= 10_000
    assert len(await read_all(client, topic, 100)) == 100


async def test_record_larger_than_the_buffer_is_refused(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    async with Producer(client, buffer_bytes_max=1000) as producer:
        with pytest.raises(MessageTooLarge, match="larger than the producer's buffer"):
            await producer.send(topic, bytes(2000))


async def test_deliveries_are_cancelled_with_their_producer(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    producer = Producer(client, batch_bytes=100)
    deliveries = [await producer.send(topic, bytes(90)) for _ in range(5)]
    await producer.__aexit__(ZeroDivisionError, None, None)
    with pytest.raises(asyncio.CancelledError):
        await deliveries[-1]


async def test_one_who_stops_waiting_takes_nothing_from_the_others(
    client: Client, new_topic: TopicMaker
) -> None:
    topic = await new_topic()
    async with Producer(client, linger_ms=100) as producer:
        deliveries = [await producer.send(topic, b"%d" % n) for n in range(3)]
        waiting = [asyncio.ensure_future(_place(delivery)) for delivery in deliveries]
        await asyncio.sleep(0)
        waiting[1].cancel()
        assert [await waiting[0], await waiting[2]] == [0, 2]
        assert (await deliveries[1]).offset == 1


async def _place(delivery: Delivery) -> int:
    return (await delivery).offset


async def test_linger_gathers_what_comes_within_it(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    async with Producer(client, linger_ms=50) as producer:
        first = await producer.send(topic, b"a")
        await asyncio.sleep(0.005)
        second = await producer.send(topic, b"b")
        assert (await first).offset == 0
        assert (await second).offset == 1


async def test_idempotent_producer_goes_on_through_a_kill_without_loss_or_repeat(postroad: Node) -> None:
    async with Client(postroad.bootstrap, timeout_s=30) as client:
        await topics.create(client, "t")
        async with Producer(client, batch_bytes=2000) as producer:
            acknowledged: list[int] = []

            async def send_all() -> None:
                for n in range(300):
                    await (await producer.send("t", b"%d" % n))
                    acknowledged.append(n)

            sending = asyncio.create_task(send_all())
            for wanted in (50, 150):
                while len(acknowledged) < wanted and not sending.done():  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(postroad.kill)
                await asyncio.to_thread(postroad.start)
            await sending
        values = [int(record.value or b"") for record in await read_all(client, "t", 300)]
        assert values == list(range(300))


async def test_delivery_ends_with_an_error_when_the_node_stays_away(postroad: Node) -> None:
    async with Client(postroad.bootstrap, timeout_s=10) as client:
        await topics.create(client, "t")
        producer = Producer(client, timeout_s=1.5)
        await (await producer.send("t", b"before"))
        await asyncio.to_thread(postroad.kill)
        started = time.monotonic()
        with pytest.raises(NetworkException, match="nothing listens"):
            await (await producer.send("t", b"after"))
        assert time.monotonic() - started < 0.8 * client.timeout_s


@pytest.mark.parametrize("acks", [-1, 0])
async def test_a_topic_that_others_made_anew_gets_what_is_sent_from_then_on(
    client: Client, new_topic: TopicMaker, postroad_session: Node, acks: int
) -> None:
    topic = await new_topic()
    async with Producer(client, acks=acks) as producer:
        former = await (await producer.send(topic, b"to the former"))
        async with Client(postroad_session.bootstrap) as somebody:
            await topics.delete(somebody, [topic])
            await topics.create(somebody, topic)
            found = await somebody.topic(topic)
        sent = await (await producer.send(topic, b"to the new one"))
        assert former.topic_id != found.id
        assert acks == 0 or sent.topic_id == found.id
        (record,) = await read_all(client, topic, 1)
        assert (record.offset, record.value) == (0, b"to the new one")
