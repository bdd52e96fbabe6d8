"""confluent-kafka's admin client: topics, partitions, configs, records, offsets, cluster."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from .confluent import producer, read_from, send_all, send_values
from .conftest import Broker, TopicMaker
from .wait import until


def code_of(answer: Future[Any]) -> int:
    """The code that the broker refused with."""
    with pytest.raises(KafkaException) as refused:
        answer.result(30)
    return int(refused.value.args[0].code())


def text_of(answer: Future[Any]) -> str:
    with pytest.raises(KafkaException) as refused:
        answer.result(30)
    return str(refused.value.args[0].str())


def create(admin: AdminClient, name: str, **more: Any) -> Future[Any]:
    spec = {"num_partitions": 1, "replication_factor": 1} | more
    return admin.create_topics([NewTopic(name, **spec)])[name]


# --- topics --------------------------------------------------------------------------------------


def test_created_topic_is_described_with_its_id_partitions_and_leader(
    admin: AdminClient, new_topic: TopicMaker
) -> None:
    topic = new_topic(partitions=3)
    description = admin.describe_topics(TopicCollection([topic]))[topic].result(10)
    assert description.name == topic
    assert not description.is_internal
    assert (
        description.topic_id.get_most_significant_bits(),
        description.topic_id.get_least_significant_bits(),
    ) != (0, 0)
    assert [partition.id for partition in description.partitions] == [0, 1, 2]
    node = description.partitions[0].leader.id
    for partition in description.partitions:
        assert partition.leader.id == node
        assert [replica.id for replica in partition.replicas] == [node]
        assert [replica.id for replica in partition.isr] == [node]


def test_topic_that_exists_is_not_created_again(admin: AdminClient, topic: str) -> None:
    assert code_of(create(admin, topic)) == KafkaError.TOPIC_ALREADY_EXISTS


def test_creation_may_be_tried_without_doing_it(admin: AdminClient, unused_name: str) -> None:
    tried = admin.create_topics([NewTopic(unused_name, 2, 1)], validate_only=True)
    tried[unused_name].result(10)
    assert unused_name not in admin.list_topics(timeout=10).topics


def test_partition_count_is_the_brokers_default_when_not_given(admin: AdminClient, unused_name: str) -> None:
    admin.create_topics([NewTopic(unused_name)])[unused_name].result(10)
    seen = until(
        lambda: admin.list_topics(unused_name, timeout=10).topics[unused_name].partitions, "partitions"
    )
    assert list(seen) == [0]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "x" * 250])
def test_illegal_topic_name_is_refused(admin: AdminClient, name: str) -> None:
    assert code_of(create(admin, name)) == KafkaError.TOPIC_EXCEPTION


def test_topic_name_of_249_characters_is_legal(admin: AdminClient, unused_name: str) -> None:
    name = unused_name.ljust(249, "x")
    create(admin, name).result(10)
    admin.delete_topics([name])[name].result(10)


def test_topics_whose_names_collide_in_metrics_are_refused(admin: AdminClient, unused_name: str) -> None:
    create(admin, f"{unused_name}.x").result(10)
    assert code_of(create(admin, f"{unused_name}_x")) == KafkaError.TOPIC_EXCEPTION


def test_wrong_numbers_are_refused(admin: AdminClient, unused_name: str) -> None:
    assert code_of(create(admin, unused_name, num_partitions=0)) == KafkaError.INVALID_PARTITIONS
    assert code_of(create(admin, unused_name, replication_factor=3)) == KafkaError.INVALID_REPLICATION_FACTOR


def test_unknown_config_is_refused_by_its_name(admin: AdminClient, unused_name: str) -> None:
    refused = create(admin, unused_name, config={"retention.msec": "1"})
    assert code_of(refused) == KafkaError.INVALID_CONFIG
    assert "retention.msec" in text_of(refused)


def test_wrong_config_value_is_refused(admin: AdminClient, unused_name: str) -> None:
    refused = create(admin, unused_name, config={"retention.ms": "soon"})
    assert code_of(refused) == KafkaError.INVALID_CONFIG
    assert "retention.ms" in text_of(refused)


def test_deleted_topic_is_gone_and_its_name_starts_anew(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker, topic: str
) -> None:
    send_values(broker.bootstrap, topic, 5)
    before = admin.describe_topics(TopicCollection([topic]))[topic].result(10).topic_id
    admin.delete_topics([topic])[topic].result(10)
    until(lambda: topic not in admin.list_topics(timeout=10).topics, "the topic is gone")
    new_topic(name=topic)
    after = admin.describe_topics(TopicCollection([topic]))[topic].result(10).topic_id
    assert str(after) != str(before)
    (acknowledged,) = send_all(producer(broker.bootstrap), topic, [{"value": b"first again"}])
    assert acknowledged.offset() == 0


def test_unknown_topic_is_not_deleted_nor_described(admin: AdminClient, unused_name: str) -> None:
    assert code_of(admin.delete_topics([unused_name])[unused_name]) == KafkaError.UNKNOWN_TOPIC_OR_PART
    unknown = admin.describe_topics(TopicCollection([unused_name]))[unused_name]
    assert code_of(unknown) == KafkaError.UNKNOWN_TOPIC_OR_PART


# --- partitions ----------------------------------------------------------------------------------


def test_partitions_may_grow_and_never_shrink(broker: Broker, admin: AdminClient, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(10)
    until(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 4, "4 partitions")
    until(lambda: _can_send(broker, topic, 3), "the new partition takes messages")
    for count in (4, 2):
        assert (
            code_of(admin.create_partitions([NewPartitions(topic, count)])[topic])
            == KafkaError.INVALID_PARTITIONS
        )


def test_partitions_of_an_unknown_topic_are_refused(admin: AdminClient, unused_name: str) -> None:
    refused = admin.create_partitions([NewPartitions(unused_name, 4)])[unused_name]
    assert code_of(refused) == KafkaError.UNKNOWN_TOPIC_OR_PART


# --- configs -------------------------------------------------------------------------------------


def describe(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    (answer,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return answer.result(10)


def alter(
    admin: AdminClient, topic: str, name: str, value: str | None, operation: AlterConfigOpType
) -> Future[Any]:
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (answer,) = admin.incremental_alter_configs([resource]).values()
    return answer


def shows(admin: AdminClient, topic: str, name: str, value: str) -> None:
    until(lambda: describe(admin, ResourceType.TOPIC, topic)[name].value == value, f"{name} is {value}")


def test_topic_configs_show_kafkas_defaults_and_the_overrides(
    admin: AdminClient, new_topic: TopicMaker
) -> None:
    topic = new_topic(**{"retention.ms": 1234567, "cleanup.policy": "compact"})
    seen = describe(admin, ResourceType.TOPIC, topic)
    assert (seen["retention.ms"].value, seen["cleanup.policy"].value) == ("1234567", "compact")
    assert seen["retention.ms"].source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert not seen["retention.ms"].is_default
    expected = {
        "segment.bytes": "1073741824",
        "retention.bytes": "-1",
        "max.message.bytes": "1048588",
        "message.timestamp.type": "CreateTime",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "delete.retention.ms": "86400000",
    }
    assert {name: seen[name].value for name in expected} == expected
    assert seen["segment.bytes"].source == ConfigSource.DEFAULT_CONFIG.value


def test_incremental_alter_sets_appends_subtracts_and_deletes(admin: AdminClient, topic: str) -> None:
    operation = AlterConfigOpType
    alter(admin, topic, "retention.ms", "1000", operation.SET).result(10)
    shows(admin, topic, "retention.ms", "1000")
    alter(admin, topic, "cleanup.policy", "compact", operation.APPEND).result(10)
    shows(admin, topic, "cleanup.policy", "delete,compact")
    alter(admin, topic, "cleanup.policy", "delete", operation.SUBTRACT).result(10)
    shows(admin, topic, "cleanup.policy", "compact")
    alter(admin, topic, "retention.ms", None, operation.DELETE).result(10)
    shows(admin, topic, "retention.ms", "604800000")


def test_wrong_incremental_alter_changes_nothing_and_says_what_is_wrong(
    admin: AdminClient, topic: str
) -> None:
    refused = alter(admin, topic, "no.such.config", "1", AlterConfigOpType.SET)
    assert code_of(refused) == KafkaError.INVALID_CONFIG
    assert "no.such.config" in text_of(refused)
    assert (
        code_of(alter(admin, topic, "retention.ms", "soon", AlterConfigOpType.SET))
        == KafkaError.INVALID_CONFIG
    )
    assert describe(admin, ResourceType.TOPIC, topic)["retention.ms"].value == "604800000"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_alter_replaces_all_that_was_set(admin: AdminClient, new_topic: TopicMaker) -> None:
    topic = new_topic(**{"retention.ms": 1000, "segment.bytes": 10_000_000})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"retention.ms": "2000"})
    (answer,) = admin.alter_configs([resource]).values()
    answer.result(10)
    shows(admin, topic, "retention.ms", "2000")
    shows(admin, topic, "segment.bytes", "1073741824")


def test_altered_limit_holds_for_the_next_message(broker: Broker, admin: AdminClient, topic: str) -> None:
    alter(admin, topic, "max.message.bytes", "1000", AlterConfigOpType.SET).result(10)
    shows(admin, topic, "max.message.bytes", "1000")
    with pytest.raises(AssertionError, match="MSG_SIZE_TOO_LARGE"):
        send_all(producer(broker.bootstrap), topic, [{"value": b"x" * 2000}])


def test_configs_of_an_unknown_topic_are_refused(admin: AdminClient, unused_name: str) -> None:
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, unused_name)]).values()
    assert code_of(answer) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_broker_configs_can_be_described(admin: AdminClient) -> None:
    node = next(iter(admin.list_topics(timeout=10).brokers))
    seen = describe(admin, ResourceType.BROKER, str(node))
    assert seen["auto.create.topics.enable"].value == "true"
    assert seen["num.partitions"].value == "1"


# --- records, offsets, cluster -------------------------------------------------------------------


def test_deleted_records_are_below_the_new_start(broker: Broker, admin: AdminClient, topic: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    (answer,) = admin.delete_records([TopicPartition(topic, 0, 6)]).values()
    assert answer.result(10).low_watermark == 6
    assert read_from(broker.bootstrap, TopicPartition(topic, 0, 0), 1)[0].offset() == 6
    (whole,) = admin.delete_records([TopicPartition(topic, 0, -1)]).values()
    assert whole.result(10).low_watermark == 10
    (beyond,) = admin.delete_records([TopicPartition(topic, 0, 11)]).values()
    assert code_of(beyond) == KafkaError.OFFSET_OUT_OF_RANGE


def test_offsets_are_listed_by_place_and_by_time(broker: Broker, admin: AdminClient, topic: str) -> None:
    base = int(time.time() * 1000) - 100_000
    through = producer(broker.bootstrap)
    for shift in (0, 5000, 9000, 2000):  # the newest timestamp is not the last message's
        send_all(through, topic, [{"value": b"v", "timestamp": base + shift}])

    def listed(spec: OffsetSpec) -> tuple[int, int]:
        (answer,) = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
        found = answer.result(10)
        return found.offset, found.timestamp

    assert listed(OffsetSpec.earliest()) == (0, -1)
    assert listed(OffsetSpec.latest()) == (4, -1)
    assert listed(OffsetSpec.max_timestamp()) == (2, base + 9000)
    assert listed(OffsetSpec.for_timestamp(base + 1)) == (1, base + 5000)
    assert listed(OffsetSpec.for_timestamp(base + 60_000)) == (-1, -1)


def test_max_timestamp_of_an_empty_partition_is_none(admin: AdminClient, topic: str) -> None:
    (answer,) = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()}).values()
    assert (answer.result(10).offset, answer.result(10).timestamp) == (-1, -1)


def test_cluster_is_described_with_its_node_and_controller(broker: Broker, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(10)
    assert cluster.cluster_id
    assert cluster.controller.id in [node.id for node in cluster.nodes]
    assert [(node.host, node.port) for node in cluster.nodes] == [(broker.host, broker.port)]


def _can_send(broker: Broker, topic: str, partition: int) -> bool:
    return bool(send_all(producer(broker.bootstrap), topic, [{"value": b"v", "partition": partition}]))
