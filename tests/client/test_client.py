"""Routing: topics, offsets, configs and groups, asked of a real node."""

from __future__ import annotations

import time

import pytest

from postroad.client import EARLIEST, LATEST, Client, Producer, TopicPartition, groups, offsets, topics
from postroad.client.metadata import parse_bootstrap
from postroad.errors import (
    GroupIdNotFound,
    InvalidConfig,
    InvalidPartitions,
    InvalidTopic,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)

from .conftest import TopicMaker


def test_bootstrap_lists_hosts_with_and_without_ports() -> None:
    found = parse_bootstrap("a:1, b ,[::1]:2,[::1]")
    assert [tuple(address) for address in found] == [("a", 1), ("b", 9092), ("::1", 2), ("::1", 9092)]


async def test_topic_lives_from_creation_to_deletion(client: Client, name: str) -> None:
    await topics.create(client, name, partitions=3, config={"retention.ms": "1000000"})
    found = await client.topic(name)
    assert [partition.number for partition in found.partitions] == [0, 1, 2]
    assert len(found.id) == 16
    assert any(found.id)
    assert name in {topic.name for topic in await topics.list_all(client)}

    await topics.add_partitions(client, name, 5)
    assert len((await client.topic(name)).partitions) == 5
    with pytest.raises(InvalidPartitions):
        await topics.add_partitions(client, name, 2)

    await topics.delete(client, [name])
    with pytest.raises(UnknownTopicOrPartition, match=name):
        await client.topic(name)


async def test_configs_are_set_taken_back_and_explained(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic(retention_ms="1000000")
    await topics.alter_config(client, topic, {"max.message.bytes": "5000"}, resets=["retention.ms"])
    entries = {entry.name: entry for entry in await topics.describe_config(client, topic)}
    assert entries["max.message.bytes"].value == "5000"
    assert entries["max.message.bytes"].is_override
    assert not entries["retention.ms"].is_override
    assert entries["retention.ms"].documentation


async def test_wrong_topics_are_refused_by_name(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    with pytest.raises(TopicAlreadyExists):
        await topics.create(client, topic)
    with pytest.raises(InvalidTopic):
        await topics.create(client, "a/b")
    with pytest.raises(InvalidConfig):
        await topics.alter_config(client, topic, {"no.such.config": "1"})


async def test_unknown_topic_is_an_answer_long_before_the_timeout(client: Client, name: str) -> None:
    started = time.monotonic()
    with pytest.raises(UnknownTopicOrPartition):
        await topics.delete(client, [name])
    with pytest.raises(UnknownTopicOrPartition):
        await offsets.latest(client, [TopicPartition(name, 0)])
    assert time.monotonic() - started < 0.8 * client.timeout_s


async def test_offsets_are_found_by_place_and_by_time(client: Client, new_topic: TopicMaker) -> None:
    topic = await new_topic()
    place = TopicPartition(topic, 0)
    async with Producer(client) as producer:
        for timestamp in (1000, 2000, 3000):
            await producer.send(topic, b"x", timestamp=1_700_000_000_000 + timestamp)
    found = await offsets.find(client, {place: 1_700_000_001_500})
    assert found[place] == (1, 1_700_000_002_000)
    assert (await offsets.find(client, {place: 1_700_000_009_000}))[place].offset == -1
    assert await offsets.earliest(client, [place]) == {place: 0}
    assert await offsets.latest(client, [place]) == {place: 3}
    assert (await offsets.find(client, {place: EARLIEST}))[place].offset == 0
    assert (await offsets.find(client, {place: LATEST}))[place].offset == 3

    assert await topics.delete_before(client, {place: 2}) == {place: 2}
    assert await offsets.earliest(client, [place]) == {place: 2}


async def test_group_without_members_is_committed_for_listed_and_deleted(
    client: Client, new_topic: TopicMaker, name: str
) -> None:
    topic = await new_topic(partitions=2)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    assert await groups.committed(client, name) == {}
    await groups.commit(client, name, {places[0]: 7})
    assert await groups.committed(client, name) == {places[0]: 7}
    assert await groups.committed(client, name, places) == {places[0]: 7}
    assert (name, "Empty") in {(found.group, found.state) for found in await groups.list_all(client)}
    described = await groups.describe(client, name)
    assert (described.state, described.members) == ("Empty", ())

    await groups.delete(client, name)
    with pytest.raises(GroupIdNotFound):
        await groups.describe(client, name)
    with pytest.raises(GroupIdNotFound):
        await groups.delete(client, name)
