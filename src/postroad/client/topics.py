"""Topics: created, described, altered, deleted. All of it is asked of the controller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import Topic, TopicPartition
from postroad.client.offsets import by_leader, by_topic
from postroad.errors import by_code
from postroad.wire.messages import (
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    incremental_alter_configs,
)

TOPIC: Final = 2
NODE: Final = 4
GROUP: Final = 32
NODE_DEFAULT: Final = -1
OVERRIDE_SOURCES: Final = (1, 8)  # set for this topic, for this group

PARTITIONS_AT_ONCE: Final = 2000  # no node tells more in one answer

_SET: Final = 0
_DELETE: Final = 1


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: int
    is_sensitive: bool
    documentation: str | None

    @property
    def is_override(self) -> bool:
        return self.source in OVERRIDE_SOURCES


class ListedTopic(NamedTuple):
    name: str
    id: bytes
    is_internal: bool
    partitions: int


async def create(
    client: Client,
    name: str,
    *,
    partitions: int = NODE_DEFAULT,
    replicas: int = NODE_DEFAULT,
    config: Mapping[str, str] | None = None,
) -> None:
    """The topic exists afterwards. TopicAlreadyExists, InvalidTopic, InvalidConfig …"""
    topic = create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            create_topics.CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()
        ],
    )
    request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=_timeout_ms(client))
    await _ask_controller(client, create_topics, request, "topics")
    client.forget()


async def delete(client: Client, names: Sequence[str]) -> None:
    """The first topic that can't be deleted is the error; those before it are gone."""
    for name in names:
        state = delete_topics.DeleteTopicState(name=name)
        request = delete_topics.DeleteTopicsRequest(
            topic_names=[name], topics=[state], timeout_ms=_timeout_ms(client)
        )
        await _ask_controller(client, delete_topics, request, "responses")
    client.forget()


async def add_partitions(client: Client, name: str, count: int) -> None:
    """The topic has `count` partitions afterwards; there can't be fewer than before."""
    topic = create_partitions.CreatePartitionsTopic(name=name, count=count)
    request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=_timeout_ms(client))
    await _ask_controller(client, create_partitions, request, "results")
    client.forget()


async def alter_config(
    client: Client,
    name: str,
    changes: Mapping[str, str] | None = None,
    resets: Sequence[str] = (),
    *,
    resource: int = TOPIC,
) -> None:
    """Set some configs of a topic or a group, take others back to their defaults, leave the rest."""
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in (changes or {}).items()
    ] + [incremental_alter_configs.AlterableConfig(name=key, config_operation=_DELETE) for key in resets]
    wanted = incremental_alter_configs.AlterConfigsResource(
        resource_type=resource, resource_name=name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[wanted])
    await _ask_controller(client, incremental_alter_configs, request, "responses")


async def describe_config(client: Client, name: str, *, resource: int = TOPIC) -> list[ConfigEntry]:
    """All configs of a topic (or a group, or a node by its id), with what they are now and why."""
    wanted = describe_configs.DescribeConfigsResource(resource_type=resource, resource_name=name)
    request = describe_configs.DescribeConfigsRequest(resources=[wanted], include_documentation=True)
    answer = await client.ask(describe_configs, request, node=int(name) if resource == NODE else -1)
    _raise_first(answer.results)
    return [
        ConfigEntry(entry.name, entry.value, entry.config_source, entry.is_sensitive, entry.documentation)
        for entry in answer.results[0].configs
    ]


async def describe_one(
    client: Client, names: Sequence[str], config_name: str, *, resource: int = TOPIC
) -> dict[str, str]:
    """One config of many topics or groups: of those that have a value, what it is."""
    resources = [
        describe_configs.DescribeConfigsResource(
            resource_type=resource, resource_name=name, configuration_keys=[config_name]
        )
        for name in names
    ]
    answer = await client.ask(describe_configs, describe_configs.DescribeConfigsRequest(resources=resources))
    return {
        result.resource_name: entry.value
        for result in answer.results
        for entry in result.configs
        if entry.name == config_name and entry.value
    }


async def list_all(client: Client) -> list[Topic]:
    cluster = await client.retry(client.cluster)
    return sorted(cluster.topics.values())


async def listed(
    client: Client, first: str = "", at_once: int = PARTITIONS_AT_ONCE
) -> AsyncIterator[ListedTopic]:
    """Topics in the order of their names, from `first` on: `at_once` partitions at a time, as far as the
    caller goes on. All metadata of 10,000 topics take a node a tenth of a second."""
    cursor = describe_topic_partitions.RequestCursor(first)
    name, count = "", 0  # of a topic that one answer has not told to its end
    while True:
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            response_partition_limit=at_once, cursor=cursor
        )
        answer = await client.ask(describe_topic_partitions, request)
        following = answer.next_cursor
        for topic in answer.topics:
            count = len(topic.partitions) + (count if topic.name == name else 0)
            name = topic.name
            is_whole = following is None or following.topic_name != name
            if is_whole and not topic.error_code:
                yield ListedTopic(name, bytes(topic.topic_id), topic.is_internal, count)
        if following is None:
            return
        cursor = describe_topic_partitions.RequestCursor(following.topic_name, following.partition_index)


async def delete_before(client: Client, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Records below the offsets (-1: all there are) are gone; the new start of each partition."""
    starts: dict[TopicPartition, int] = {}

    async def attempt() -> None:
        missing = [topic_partition for topic_partition in offsets if topic_partition not in starts]
        for node, topic_partitions in (await by_leader(client, missing)).items():
            answer = await client.call(
                delete_records, _delete_request(client, topic_partitions, offsets), node=node
            )
            for topic in answer.topics:
                _raise_first(topic.partitions)
                for partition in topic.partitions:
                    topic_partition = TopicPartition(topic.name, partition.partition_index)
                    starts[topic_partition] = partition.low_watermark

    await client.retry(attempt)
    return starts


def _delete_request(
    client: Client, topic_partitions: Sequence[TopicPartition], offsets: Mapping[TopicPartition, int]
) -> Any:
    topics = [
        delete_records.DeleteRecordsTopic(
            name=topic,
            partitions=[
                delete_records.DeleteRecordsPartition(
                    partition_index=index, offset=offsets[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(topic_partitions).items()
    ]
    return delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=_timeout_ms(client))


async def _ask_controller(client: Client, api: Any, request: Any, results: str) -> None:
    """Done, or the first error among the answer's `results`."""

    async def attempt() -> None:
        answer = await client.call(api, request, node=await client.controller())
        _raise_first(getattr(answer, results))

    await client.retry(attempt)


def _raise_first(results: Sequence[Any]) -> None:
    for result in results:
        if result.error_code:
            raise by_code(result.error_code, getattr(result, "error_message", None))


def _timeout_ms(client: Client) -> int:
    return int(client.timeout_s * 1000)
