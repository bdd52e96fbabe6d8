"""kafka-python's admin client: newest versions of the admin APIs, and those that others don't send."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, OffsetAndMetadata, OffsetSpec, TopicPartition
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
)
from kafka.errors import (
    GroupSubscribedToTopicError,
    IncompatibleBrokerVersion,
    InvalidPartitionsError,
    InvalidTopicError,
    NoError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from .conftest import Broker, TopicMaker
from .python_kafka import QUICK_GROUP, admin_client, consumer, producer, send_values, settle
from .wait import until


@pytest.fixture
def python_admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    with admin_client(broker.bootstrap) as client:
        yield client


def test_an_api_that_is_not_there_is_refused_by_the_client_which_goes_on(
    python_admin: KafkaAdminClient, topic: str
) -> None:
    with pytest.raises(IncompatibleBrokerVersion, match="DescribeQuorum"):
        python_admin.describe_metadata_quorum()
    assert topic in python_admin.list_topics()


# --- topics and partitions -----------------------------------------------------------------------


def test_topic_lives_from_creation_to_deletion(python_admin: KafkaAdminClient, unused_name: str) -> None:
    spec = {unused_name: {"num_partitions": 3, "replication_factor": 1, "configs": {"retention.ms": "1000"}}}
    (answer,) = python_admin.create_topics(spec, wait_for_metadata=True)["topics"]
    assert (answer["num_partitions"], answer["replication_factor"]) == (3, 1)
    assert answer["configs"]["retention.ms"]["value"] == "1000"
    with pytest.raises(TopicAlreadyExistsError):
        python_admin.create_topics(spec)
    assert unused_name in python_admin.list_topics()
    python_admin.delete_topics([unused_name])
    until(lambda: unused_name not in python_admin.list_topics(), "the topic is gone")
    with pytest.raises(UnknownTopicOrPartitionError):
        python_admin.delete_topics([unused_name])


def test_topic_is_described_and_deleted_by_its_id(python_admin: KafkaAdminClient, topic: str) -> None:
    (by_name,) = python_admin.describe_topics([topic])
    topic_id = uuid.UUID(by_name["topic_id"])
    (by_id,) = python_admin.describe_topics([topic_id])
    assert (by_id["name"], len(by_id["partitions"])) == (topic, 1)
    python_admin.delete_topics([topic_id])
    until(lambda: topic not in python_admin.list_topics(), "the topic is gone")


def test_unknown_topic_id_is_an_error(python_admin: KafkaAdminClient) -> None:
    (answer,) = python_admin.describe_topics([uuid.uuid4()])
    assert answer["error_code"] == 100


@pytest.mark.parametrize("name", ["..", "a/b", "x" * 250])
def test_illegal_topic_name_is_refused(python_admin: KafkaAdminClient, name: str) -> None:
    with pytest.raises(InvalidTopicError):
        python_admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1}})


def test_replicas_may_be_assigned_by_hand(python_admin: KafkaAdminClient, unused_name: str) -> None:
    (node,) = python_admin.describe_cluster()["brokers"]
    python_admin.create_topics(
        {unused_name: {"assignments": {0: [node["broker_id"]], 1: [node["broker_id"]]}}},
        wait_for_metadata=True,
    )
    (seen,) = python_admin.describe_topics([unused_name])
    assert len(seen["partitions"]) == 2


def test_partitions_may_grow_and_never_shrink(python_admin: KafkaAdminClient, topic: str) -> None:
    python_admin.create_partitions({topic: 5})
    until(lambda: len(python_admin.describe_topics([topic])[0]["partitions"]) == 5, "5 partitions")
    with pytest.raises(InvalidPartitionsError):
        python_admin.create_partitions({topic: 2})


def test_partitions_are_described_page_by_page(python_admin: KafkaAdminClient, new_topic: TopicMaker) -> None:
    topic = new_topic(partitions=5)
    seen: list[int] = []
    cursor = None
    while True:
        page = python_admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
        seen += [partition["partition_index"] for partition in page["topics"][0]["partitions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [0, 1, 2, 3, 4]


# --- configs -------------------------------------------------------------------------------------


def _retention(admin: KafkaAdminClient, topic: str) -> dict[str, object]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource], include_synonyms=True, config_filter="all")["topic"][topic]
    return configs["retention.ms"]


@pytest.mark.parametrize("incremental", [True, False])
def test_configs_are_altered_and_reset(
    python_admin: KafkaAdminClient, new_topic: TopicMaker, incremental: bool
) -> None:
    topic = new_topic(**{"segment.bytes": 20_000_000})

    def resource(**configs: str) -> ConfigResource:
        return ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "5000"} | configs)

    assert python_admin.alter_configs([resource()], incremental=incremental) == {"topic": {topic: "OK"}}
    until(lambda: _retention(python_admin, topic)["value"] == "5000", "the config is altered")
    python_admin.reset_configs([resource()], incremental=incremental)
    until(lambda: _retention(python_admin, topic)["value"] == "604800000", "the config is the default again")


def test_validate_only_alters_nothing(python_admin: KafkaAdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "5000"})
    assert python_admin.alter_configs([resource], validate_only=True) == {"topic": {topic: "OK"}}
    assert _retention(python_admin, topic)["value"] == "604800000"


def test_unknown_config_is_answered_with_its_name(python_admin: KafkaAdminClient, topic: str) -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"no.such.config": "1"})
    answer = python_admin.alter_configs([resource], raise_on_unknown=False)["topic"][topic]
    assert "no.such.config" in answer


# --- what is in the log --------------------------------------------------------------------------


def test_log_directories_show_the_size_of_what_was_compressed(
    broker: Broker, python_admin: KafkaAdminClient, new_topic: TopicMaker
) -> None:
    topic = new_topic(partitions=2)
    for partition, codec in enumerate([None, "gzip"]):
        with producer(broker.bootstrap, compression_type=codec, linger_ms=50, batch_size=200_000) as through:
            for _ in range(100):
                through.send(topic, b"a" * 1000, partition=partition)
    (answer,) = python_admin.describe_log_dirs({topic: [0, 1]})
    (directory,) = [found for found in answer["log_dirs"] if found["topics"]]
    assert directory["error_code"] == 0
    assert directory["total_bytes"] > directory["usable_bytes"] > 0
    sizes = {p["partition_index"]: p["partition_size"] for p in directory["topics"][0]["partitions"]}
    assert 100_000 < sizes[0] < 120_000
    assert 0 < sizes[1] < 10_000


def test_active_producers_are_described(broker: Broker, python_admin: KafkaAdminClient, topic: str) -> None:
    with producer(broker.bootstrap) as through:  # idempotent by default
        for _ in range(3):
            through.send(topic, b"v").get(30)
        place = TopicPartition(topic, 0)
        (seen,) = python_admin.describe_producers([place])[place].active_producers
    assert seen.producer_id >= 0
    assert (seen.producer_epoch, seen.last_sequence) == (0, 2)
    assert seen.current_transaction_start_offset == -1


def test_deleted_records_are_below_the_new_start(
    broker: Broker, python_admin: KafkaAdminClient, topic: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    assert python_admin.delete_records({place: 7})[place]["low_watermark"] == 7
    listed = python_admin.list_partition_offsets({place: OffsetSpec.EARLIEST})[place]
    assert (listed.offset, listed.timestamp) == (7, -1)


def test_offsets_are_listed_by_every_special_timestamp(
    broker: Broker, python_admin: KafkaAdminClient, topic: str
) -> None:
    place = TopicPartition(topic, 0)
    with producer(broker.bootstrap) as through:
        for stamp in (1_700_000_005_000, 1_700_000_009_000, 1_700_000_001_000):
            through.send(topic, b"v", timestamp_ms=stamp).get(30)

    def listed(spec: OffsetSpec | int) -> tuple[int, int]:
        found = python_admin.list_partition_offsets({place: spec})[place]
        return found.offset, found.timestamp

    assert listed(OffsetSpec.EARLIEST) == (0, -1)
    assert listed(OffsetSpec.LATEST) == (3, -1)
    assert listed(OffsetSpec.MAX_TIMESTAMP) == (1, 1_700_000_009_000)
    assert listed(OffsetSpec.EARLIEST_LOCAL) == (0, -1)
    assert listed(1_700_000_006_000) == (1, 1_700_000_009_000)


# --- groups --------------------------------------------------------------------------------------


def test_group_lives_from_first_commit_to_deletion(
    broker: Broker, python_admin: KafkaAdminClient, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    altered = python_admin.alter_group_offsets(group, {place: OffsetAndMetadata(4, "by hand", -1)})
    assert altered == {place: NoError}
    assert python_admin.list_group_offsets(group)[group][place].offset == 4
    listed = {seen["group_id"]: seen for seen in python_admin.list_groups(states_filter=["Empty"])}
    assert listed[group]["group_state"] == "Empty"
    reset = python_admin.reset_group_offsets(group, {place: OffsetSpec.LATEST})[place]
    assert (reset["error"], reset["offset"]) == (NoError, 10)
    assert python_admin.delete_group_offsets(group, [place]) == {place: NoError}
    assert python_admin.list_group_offsets(group)[group] == {}
    python_admin.delete_groups([group])
    assert group not in {seen["group_id"] for seen in python_admin.list_groups()}


def test_offsets_in_use_are_not_deleted(
    broker: Broker, python_admin: KafkaAdminClient, topic: str, group: str
) -> None:
    with consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as member:
        settle([member], 1)
        place = TopicPartition(topic, 0)
        member.commit({place: OffsetAndMetadata(0, "", -1)})
        assert python_admin.delete_group_offsets(group, [place]) == {place: GroupSubscribedToTopicError}
        described = python_admin.describe_groups([group])[group]
        assert (described["group_state"], described["protocol_type"]) == ("Stable", "consumer")
        assert described["members"][0]["member_assignment"]["assigned_partitions"][0]["topic"] == topic


def test_offsets_of_several_groups_come_in_one_answer(
    python_admin: KafkaAdminClient, topic: str, group: str
) -> None:
    place = TopicPartition(topic, 0)
    for number in range(3):
        python_admin.alter_group_offsets(f"{group}-{number}", {place: OffsetAndMetadata(number, "", -1)})
    asked = {f"{group}-{number}": None for number in range(4)}
    answer = python_admin.list_group_offsets(asked)
    assert [answer[f"{group}-{n}"][place].offset for n in range(3)] == [0, 1, 2]
    assert answer[f"{group}-3"] == {}


# --- cluster -------------------------------------------------------------------------------------


def test_cluster_and_its_versions_are_described(broker: Broker, python_admin: KafkaAdminClient) -> None:
    cluster = python_admin.describe_cluster()
    assert cluster["cluster_id"]
    assert [(node["host"], node["port"]) for node in cluster["brokers"]] == [(broker.host, broker.port)]
    versions = {int(key): span for key, span in python_admin.api_versions().items()}
    assert versions[0][0] == 0, "librdkafka stops compressing unless Produce is advertised from 0"
    assert versions[1][1] >= 17
    assert not set(versions) & {4, 5, 6, 7}
