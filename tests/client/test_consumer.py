"""Reading: positions, resets, groups that share and go on where they stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from postroad.client import EARLIEST, LATEST, Client, Consumer, Producer, TopicPartition, groups, topics
from postroad.cluster.ids import id_text
from postroad.errors import CorruptMessage, IllegalGeneration, OffsetOutOfRange, UnknownTopicOrPartition
from postroad.testing import Node
from postroad.wire.batch import HEADER_BYTES, walk

from .conftest import TopicMaker

FAST = {"heartbeat_ms": 100, "session_timeout_ms": 6000}
PATIENCE_S = 30.0


async def publish(client: Client, topic: str, numbers: Iterable[int], partition: int | None = None) -> None:
    async with Producer(client, batch_bytes=200) as producer:
        for number in numbers:
            await producer.send(topic, b"%d" % number, partition=partition)


async def take(consumer: Consumer, count: int) -> list[int]:
    values: list[int] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(values) < count:
            for _, records, _ in await consumer.poll(0.2):
                values += (int(record.value or b"") for record in records)
    return values


async def test_reading_starts_where_it_is_told_even_within_a_batch(
    client: Client, new_topic: TopicMaker
) -> None:
    topic = await new_topic()
    place = TopicPartition(topic, 0)
    async with Producer(client) as producer:
        for number in range(10):
            await producer.send(topic, b"%d" % number)
    async with Consumer(client) as consumer:
        await consumer.assign({place: 7})
        assert await take(consumer, 3) == [7, 8, 9]
        await consumer.assign({place: EARLIEST})
        assert await take(consumer, 10) == list(range(10))
        assert consumer.positions == {place: 10}
        consumer.rewind(place, 9)
        assert await take(consumer, 1) == [9]


async def test_record_that_comes_later_wakes_a_waiting_reader(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    async with Consumer(client) as consumer:
        await consumer.assign({TopicPartition(topic, 0): LATEST})
        assert await consumer.poll(0.01) == []
        waiting = asyncio.create_task(consumer.poll(PATIENCE_S))
        await publish(client, topic, [1])
        assert (await waiting)[0].records[0].value == b"1"


async def test_many_partitions_are_read_together(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(partitions=20)
    for partition in range(20):
        await publish(client, topic, [partition], partition)
    async with Consumer(client, partition_bytes=100, max_bytes=300) as consumer:
        await consumer.assign({TopicPartition(topic, n): EARLIEST for n in range(20)})
        assert sorted(await take(consumer, 20)) == list(range(20))


async def test_other_partitions_can_be_chosen_at_any_moment(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(2)
    places = [TopicPartition(topic, number) for number in (0, 1)]
    for place in places:
        await publish(client, topic, range(5), place.partition)
    async with Consumer(client, partition_bytes=1) as consumer:
        await consumer.assign(dict.fromkeys(places, 0))
        assert await consumer.poll(PATIENCE_S)  # the next fetch is on its way already
        await consumer.assign({places[1]: 3})
        assert await take(consumer, 2) == [3, 4]


async def test_position_that_is_gone_is_reset_or_raised(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    place = TopicPartition(topic, 0)
    await publish(client, topic, range(5))
    await topics.delete_before(client, {place: 3})
    async with Consumer(client, reset=EARLIEST) as consumer:
        await consumer.assign({place: 0})
        assert await take(consumer, 2) == [3, 4]
    async with Consumer(client, reset=None) as consumer:
        await consumer.assign({place: 0})
        with pytest.raises(OffsetOutOfRange, match=f"{topic}/0 has no offset 0"):
            await consumer.poll(PATIENCE_S)


async def test_topic_that_is_not_there_is_an_error(client: Client, name: str) -> None:
    async with Consumer(client) as consumer:
        with pytest.raises(UnknownTopicOrPartition):
            await consumer.assign({TopicPartition(name, 0): EARLIEST})


async def test_topic_that_is_deleted_while_it_is_read_is_told(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    async with Consumer(client) as consumer:
        await consumer.assign({TopicPartition(topic, 0): EARLIEST})
        assert await consumer.poll(0.01) == []
        await topics.delete(client, [topic])
        with pytest.raises(UnknownTopicOrPartition):
            await take(consumer, 1)


async def test_damaged_messages_are_told_and_not_waited_for(postroad: Node) -> None:
    async with Client(postroad.bootstrap, timeout_s=10) as client:
        await publish(client, "t", range(100))
        await asyncio.to_thread(postroad.stop)
        (segment,) = (path for path in postroad.data_dir.glob("logs/*/*.log") if path.stat().st_size > 1000)
        content = bytearray(segment.read_bytes())
        content[65] ^= 1  # within the first batch, even if that has one record only
        segment.write_bytes(content)
        await asyncio.to_thread(postroad.start)
        async with Consumer(client) as consumer:
            await consumer.assign({TopicPartition("t", 0): EARLIEST})
            with pytest.raises(CorruptMessage, match="t/0 is damaged at offset 0"):
                await consumer.poll(PATIENCE_S)


async def test_what_is_before_damage_and_in_other_partitions_is_read(
    client: Client, new_topic: TopicMaker, postroad_session: Node
) -> None:
    """A bit flips below a node that runs: it sends what it finds, and the reader sees that it is wrong."""
    topic = await new_topic(2)
    for number in range(3):
        await publish(client, topic, [number], 0)
    await publish(client, topic, [9], 1)
    directory = f"{id_text((await client.topic(topic)).id)}-0"
    (segment,) = postroad_session.data_dir.glob(f"logs/{directory}/*.log")
    with segment.open("r+b") as file:
        *_, (last, _) = walk(memoryview(file.read()))
        file.seek(last + HEADER_BYTES)
        file.write(b"\xff")
    async with Consumer(client) as consumer:
        await consumer.assign({TopicPartition(topic, number): EARLIEST for number in range(2)})
        assert sorted(await take(consumer, 3)) == [0, 1, 9]
        with pytest.raises(CorruptMessage, match=f"{topic}/0 is damaged at offset 2"):
            await consumer.poll(PATIENCE_S)


async def test_group_goes_on_where_its_last_member_stopped(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(10))
    async with Consumer(client, group=name, reset=EARLIEST) as first:
        await first.subscribe([topic])
        assert await take(first, 10) == list(range(10))
    assert await groups.committed(client, name) == {TopicPartition(topic, 0): 10}
    await publish(client, topic, [10])
    async with Consumer(client, group=name, reset=EARLIEST) as second:
        await second.subscribe([topic])
        assert await take(second, 1) == [10]


async def test_what_was_rewound_is_not_committed(client: Client, new_topic: TopicMaker, name: str) -> None:
    topic = await new_topic()
    place = TopicPartition(topic, 0)
    await publish(client, topic, range(5))
    async with Consumer(client, group=name, reset=EARLIEST) as consumer:
        await consumer.subscribe([topic])
        await take(consumer, 5)
        consumer.rewind(place, 2)
    assert await groups.committed(client, name) == {place: 2}


async def test_without_auto_commit_only_commit_commits(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    topic = await new_topic()
    await publish(client, topic, range(3))
    async with Consumer(client, group=name, reset=EARLIEST, auto_commit_ms=None) as consumer:
        await consumer.subscribe([topic])
        await take(consumer, 3)
        assert await groups.committed(client, name) == {}
        assert consumer.uncommitted == {TopicPartition(topic, 0): 3}
        assert await consumer.commit()
        assert await groups.committed(client, name) == {TopicPartition(topic, 0): 3}
        assert not consumer.uncommitted
        stranger = consumer.committer._replace(generation=consumer.committer.generation + 1)
        with pytest.raises(IllegalGeneration):
            await groups.commit(client, name, {TopicPartition(topic, 0): 1}, stranger)


async def test_members_share_partitions_and_the_last_one_gets_all(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    topic = await new_topic(partitions=4)
    everything = {TopicPartition(topic, n) for n in range(4)}
    options = {"group": name, "reset": EARLIEST, "member": FAST}
    first, second = Consumer(client, **options), Consumer(client, **options)  # type: ignore[arg-type]
    await first.subscribe([topic])
    await second.subscribe([topic])

    async def read(consumer: Consumer) -> None:
        # Each in its own time: one of them may have to poll again before the other one's poll can end.
        while not (len(first.positions) == len(second.positions) == 2):
            await consumer.poll(0.05)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(read(first), read(second))
    assert {*first.positions, *second.positions} == everything
    described = await groups.describe(client, name)
    assert (described.state, described.assignor, len(described.members)) == ("Stable", "range", 2)
    assert {place for member in described.members for place in member.partitions} == everything

    await second.close()
    async with asyncio.timeout(PATIENCE_S):
        while set(first.positions) != everything:
            await first.poll(0.05)
    await first.close()
    assert (await groups.describe(client, name)).state == "Empty"


async def test_nothing_is_lost_or_repeated_when_a_member_joins_between_polls(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    topic = await new_topic(partitions=4)
    seen: list[int] = []
    shared = asyncio.Event()

    async def read() -> None:
        async with Consumer(client, group=name, reset=EARLIEST, member=FAST) as consumer:
            await consumer.subscribe([topic])
            while len(seen) < 300:
                for _, records, _ in await consumer.poll(0.05):
                    seen.extend(int(record.value or b"") for record in records)
                if len(consumer.positions) == 2:
                    shared.set()

    await publish(client, topic, range(200))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as members:
        members.create_task(read())
        while len(seen) < 200:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        members.create_task(read())
        await shared.wait()
        await publish(client, topic, range(200, 300))
    assert sorted(seen) == list(range(300))


async def test_slow_member_is_waited_for_in_a_rebalance(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    """It goes on sending heartbeats between polls, so its session does not end meanwhile."""
    topic = await new_topic(partitions=2)
    await publish(client, topic, range(10))
    async with Consumer(client, group=name, reset=EARLIEST, member=FAST) as slow:
        await slow.subscribe([topic])
        await take(slow, 10)
        async with Consumer(client, group=name, reset=EARLIEST, member=FAST) as other:
            await other.subscribe([topic])
            joining = asyncio.create_task(other.poll(0.05))
            await asyncio.sleep(1)
            assert not joining.done()
            async with asyncio.timeout(PATIENCE_S):
                while not joining.done():
                    assert await slow.poll(0.05) == []
            assert await joining == [], "what the slow member had read was committed before it rejoined"
            assert len(slow.positions) == len(other.positions) == 1


async def test_consumer_goes_on_when_its_node_comes_back(postroad: Node) -> None:
    async with Client(postroad.bootstrap, timeout_s=20) as client:
        await topics.create(client, "t")
        await publish(client, "t", range(5))
        async with Consumer(client, group="g", reset=EARLIEST, member=FAST) as consumer:
            await consumer.subscribe(["t"])
            assert await take(consumer, 5) == list(range(5))
            await consumer.commit()
            await asyncio.to_thread(postroad.kill)
            await asyncio.to_thread(postroad.start)
            await publish(client, "t", range(5, 8))
            assert await take(consumer, 3) == [5, 6, 7]
