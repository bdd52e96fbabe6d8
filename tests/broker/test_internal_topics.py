"""Clients can't destroy the topics that hold the state of groups and subscriptions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from postroad.cluster import keys
from postroad.cluster.sqlite import SqliteStore
from postroad.cluster.store import Put
from postroad.wire.messages import (
    alter_configs,
    create_partitions,
    delete_records,
    delete_topics,
    describe_configs,
    incremental_alter_configs,
)
from tests.broker.harness import Running, running_node
from tests.faults.raw import batch_of, send_batch

INVALID_TOPIC, POLICY = 17, 44
INTERNAL = ("__consumer_offsets",)
TOPIC = 2
DESTRUCTIVE = {
    "retention.ms": "1",
    "retention.bytes": "0",
    "cleanup.policy": "delete",
    "segment.ms": "1",
    "segment.bytes": "14",
    "delete.retention.ms": "0",
    "message.timestamp.type": "LogAppendTime",
    "postroad.retention": "acknowledged",
    "postroad.flush": "os",
}


def set_config(running: Running, topic: str, name: str, value: str) -> tuple[int, str]:
    change = incremental_alter_configs.AlterableConfig(name, 0, value)
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC, topic, [change])
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    [answer] = running.call(incremental_alter_configs, 1, request).responses
    return answer.error_code, answer.error_message or ""


def replace_configs(running: Running, topic: str) -> int:
    resource = alter_configs.AlterConfigsResource(TOPIC, topic, [])
    [answer] = running.call(alter_configs, 2, alter_configs.AlterConfigsRequest([resource])).responses
    return int(answer.error_code)


def configs_of(running: Running, topic: str) -> dict[str, tuple[str, bool]]:
    resource = describe_configs.DescribeConfigsResource(TOPIC, topic, None)
    request = describe_configs.DescribeConfigsRequest([resource])
    [answer] = running.call(describe_configs, 4, request).results
    return {config.name: (config.value, config.read_only) for config in answer.configs}


@pytest.mark.parametrize("topic", INTERNAL)
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_records_of_internal_topics_cannot_be_deleted(shared: Running, topic: str, offset: int) -> None:
    start = shared.partition(topic).log.start_offset
    partition = delete_records.DeleteRecordsPartition(0, offset)
    request = delete_records.DeleteRecordsRequest([delete_records.DeleteRecordsTopic(topic, [partition])])
    answer = shared.call(delete_records, 2, request).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (INVALID_TOPIC, -1)
    assert shared.partition(topic).log.start_offset == start


@pytest.mark.parametrize("topic", INTERNAL)
@pytest.mark.parametrize("name", DESTRUCTIVE)
def test_configs_of_internal_topics_cannot_be_altered(shared: Running, topic: str, name: str) -> None:
    before = configs_of(shared, topic)
    code, message = set_config(shared, topic, name, DESTRUCTIVE[name])
    assert (code, message) == (POLICY, f"'{topic}' is kept by the nodes themselves; its configs are fixed.")
    assert replace_configs(shared, topic) == POLICY
    assert configs_of(shared, topic) == before


@pytest.mark.parametrize("topic", INTERNAL)
def test_internal_topics_can_neither_be_deleted_widened_nor_written(shared: Running, topic: str) -> None:
    by_id = delete_topics.DeleteTopicState(None, shared.node.image.topics[topic].id)
    request = delete_topics.DeleteTopicsRequest(topics=[by_id])
    assert shared.call(delete_topics, 6, request).responses[0].error_code == POLICY
    assert shared.delete(topic) == POLICY
    more = create_partitions.CreatePartitionsRequest([create_partitions.CreatePartitionsTopic(topic, 9)])
    assert shared.call(create_partitions, 3, more).results[0].error_code == POLICY
    with shared.connect() as connection:
        for _ in range(2):  # the second takes the short way
            assert send_batch(connection, topic, batch_of(b"x")).error_code == INVALID_TOPIC


@pytest.mark.parametrize("topic", INTERNAL)
def test_configs_of_internal_topics_are_shown_as_read_only(shared: Running, topic: str) -> None:
    assert {read_only for _, read_only in configs_of(shared, topic).values()} == {True}


def test_name_of_the_topic_that_older_versions_kept_for_subscriptions_stays_reserved(shared: Running) -> None:
    assert "__share_group_state" not in shared.node.image.topics
    with pytest.raises(AssertionError, match="kept by the nodes themselves"):
        shared.create("__share_group_state")


def test_destructive_configs_stored_by_an_older_version_are_ignored(
    tmp_path: Path,
) -> None:
    with running_node(tmp_path / "node", storage_retention_check_ms=20) as running:
        expected = {topic: running.partition(topic).log.settings for topic in INTERNAL}
        shown = {topic: configs_of(running, topic) for topic in INTERNAL}
        store_path = running.node.directory.store
    asyncio.run(store_configs(store_path, DESTRUCTIVE))
    with running_node(tmp_path / "node", storage_retention_check_ms=20) as running:
        assert {topic: running.partition(topic).log.settings for topic in INTERNAL} == expected
        assert {topic: running.partition(topic).flush for topic in INTERNAL} == dict.fromkeys(
            INTERNAL, "sync"
        )
        assert {topic: configs_of(running, topic) for topic in INTERNAL} == shown


async def store_configs(path: Path, config: dict[str, str]) -> None:
    store = await SqliteStore.open(path)
    for topic in INTERNAL:
        entry = await store.get(keys.topic_key(topic))
        assert entry is not None
        value = msgspec.structs.replace(keys.decode(entry.key, entry.value, keys.TopicValue), config=config)
        await store.commit([], [Put(entry.key, keys.encode(value))])
    await store.close()
