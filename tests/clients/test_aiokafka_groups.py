"""aiokafka: classic groups on one event loop, and its admin client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import CommitFailedError, UnknownMemberIdError
from aiokafka.structs import OffsetAndMetadata

from .confluent import send_values
from .conftest import Broker, TopicMaker
from .wait import PATIENCE_S, until_async

QUICK_GROUP = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200, "metadata_max_age_ms": 500}


class Revocations(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.seen: list[set[TopicPartition]] = []

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.seen.append(revoked)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass


def member(broker: Broker, group: str, **settings: Any) -> AIOKafkaConsumer:
    defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **QUICK_GROUP}
    return AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, **(defaults | settings))


async def settle(members: list[AIOKafkaConsumer], partitions: int) -> list[set[int]]:
    """Until the members own all partitions, each one once, and nobody is left without."""

    def settled() -> list[set[int]] | None:
        shares = [{owned.partition for owned in each.assignment()} for each in members]
        whole = sum(map(len, shares)) == partitions and set().union(*shares) == set(range(partitions))
        return shares if whole and all(shares) else None

    return await until_async(settled, f"{len(members)} members share {partitions} partitions")


async def take(source: AIOKafkaConsumer, count: int) -> list[ConsumerRecord]:
    return [await asyncio.wait_for(source.getone(), PATIENCE_S) for _ in range(count)]


@pytest.fixture
async def aio_admin(broker: Broker) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await client.start()
    yield client
    await client.close()


# --- groups --------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, StickyPartitionAssignor])
async def test_members_share_and_the_last_one_left_gets_all(
    broker: Broker, new_topic: TopicMaker, group: str, assignor: type
) -> None:
    topic = new_topic(partitions=6)
    settings = {"partition_assignment_strategy": [assignor]}
    async with member(broker, group, **settings) as stays:
        stays.subscribe([topic])
        async with AsyncExitStack() as others:
            joined = [await others.enter_async_context(member(broker, group, **settings)) for _ in range(2)]
            for each in joined:
                each.subscribe([topic])
            shares = await settle([stays, *joined], 6)
            assert sorted(map(len, shares)) == [2, 2, 2]
        assert await settle([stays], 6) == [set(range(6))]


async def test_next_member_starts_at_the_commit_and_reads_its_metadata(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    async with member(broker, group) as first:
        first.subscribe([topic])
        await take(first, 10)
        await first.commit({place: (4, "the fourth")})
    async with member(broker, group) as second:
        second.subscribe([topic])
        assert (await take(second, 1))[0].offset == 4
        assert await second.committed(place) == 4


async def test_unknown_group_has_no_commit(broker: Broker, topic: str, group: str) -> None:
    async with member(broker, group) as source:
        source.assign([TopicPartition(topic, 0)])
        assert await source.committed(TopicPartition(topic, 0)) is None


async def test_auto_commit_on_stop_keeps_the_position(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    async with member(broker, group, enable_auto_commit=True) as first:
        first.subscribe([topic])
        await take(first, 6)
    async with member(broker, group) as second:
        second.subscribe([topic])
        assert (await take(second, 1))[0].offset == 6


async def test_static_member_that_comes_back_disturbs_nobody(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic, told = new_topic(partitions=4), Revocations()
    async with member(broker, group, group_instance_id="one") as stays:
        stays.subscribe([topic], listener=told)
        async with member(broker, group, group_instance_id="two") as goes:
            goes.subscribe([topic])
            before = await settle([stays, goes], 4)
        told.seen.clear()
        async with member(broker, group, group_instance_id="two") as back:
            back.subscribe([topic])
            assert await settle([stays, back], 4) == before
        assert told.seen == []


async def test_pattern_subscription_finds_topics_that_come_later(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    first = new_topic(name=f"{group}.one")
    async with member(broker, group) as source:
        source.subscribe(pattern=f"^{group}\\..*")

        await until_async(lambda: owned(source) == {first}, "the first topic is assigned")
        second = new_topic(name=f"{group}.two")
        await until_async(lambda: owned(source) == {first, second}, "the second topic is assigned")


def owned(source: AIOKafkaConsumer) -> set[str]:
    return {place.topic for place in source.assignment()}


async def test_commit_of_an_outsider_is_refused_while_the_group_has_members(
    broker: Broker, topic: str, group: str
) -> None:
    async with member(broker, group) as inside, member(broker, group) as outside:
        inside.subscribe([topic])
        await settle([inside], 1)
        outside.assign([TopicPartition(topic, 0)])
        with pytest.raises((CommitFailedError, UnknownMemberIdError)):
            await outside.commit({TopicPartition(topic, 0): 1})


# --- admin ---------------------------------------------------------------------------------------


async def test_topic_lives_from_creation_to_deletion(
    aio_admin: AIOKafkaAdminClient, unused_name: str
) -> None:
    spec = NewTopic(
        unused_name, num_partitions=2, replication_factor=1, topic_configs={"retention.ms": "1000"}
    )
    created = await aio_admin.create_topics([spec])
    assert created.topic_errors[0][:2] == (unused_name, 0)
    again = await aio_admin.create_topics([spec])
    assert again.topic_errors[0][:2] == (unused_name, 36)
    await until_async(lambda: _has_partitions(aio_admin, unused_name, 2), "2 partitions")
    grown = await aio_admin.create_partitions({unused_name: NewPartitions(4)})
    assert grown.topic_errors[0][:2] == (unused_name, 0)
    await until_async(lambda: _has_partitions(aio_admin, unused_name, 4), "4 partitions")
    deleted = await aio_admin.delete_topics([unused_name])
    assert list(deleted.topic_error_codes) == [(unused_name, 0)]


async def test_configs_are_described_and_altered(aio_admin: AIOKafkaAdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7000"})
    (altered,) = await aio_admin.alter_configs([resource])
    assert altered.resources[0][0] == 0

    async def is_altered() -> bool:
        (answer,) = await aio_admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        return {entry[0]: entry[1] for entry in answer.resources[0][4]}["retention.ms"] == "7000"

    await until_async(is_altered, "retention.ms is 7000")


async def test_records_are_deleted(broker: Broker, aio_admin: AIOKafkaAdminClient, topic: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    assert await aio_admin.delete_records({place: RecordsToDelete(before_offset=4)}) == {place: 4}


async def test_groups_are_listed_described_and_their_offsets_too(
    broker: Broker, aio_admin: AIOKafkaAdminClient, topic: str, group: str
) -> None:
    async with member(broker, group) as source:
        source.subscribe([topic])
        await settle([source], 1)
        await source.commit({TopicPartition(topic, 0): 0})
        assert (group, "consumer") in await aio_admin.list_consumer_groups()
        (answer,) = await aio_admin.describe_consumer_groups([group])
        code, name, state, kind, _, members, *_ = answer.groups[0]
        assert (code, name, state, kind, len(members)) == (0, group, "Stable", "consumer", 1)
    offsets = await aio_admin.list_consumer_group_offsets(group)
    assert offsets == {TopicPartition(topic, 0): OffsetAndMetadata(0, "")}


async def test_cluster_is_described(broker: Broker, aio_admin: AIOKafkaAdminClient) -> None:
    cluster = await aio_admin.describe_cluster()
    assert [(node["host"], node["port"]) for node in cluster["brokers"]] == [(broker.host, broker.port)]


async def _has_partitions(admin: AIOKafkaAdminClient, topic: str, count: int) -> bool:
    (seen,) = await admin.describe_topics([topic])
    return len(seen["partitions"]) == count
