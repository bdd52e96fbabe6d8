"""confluent-kafka's admin client: groups are listed, described, measured, reset and deleted."""

from __future__ import annotations

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, OffsetSpec

from .confluent import consumer, read, send_values, settle
from .conftest import Broker, TopicMaker
from .test_confluent_groups import PROTOCOLS, member_settings
from .wait import until


def describe(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    return admin.describe_consumer_groups([group])[group].result(10)


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(10)
    return {(place.topic, place.partition): place.offset for place in answer.topic_partitions}


def bookmark(broker: Broker, group: str, topic: str, offset: int) -> None:
    """Commit for a group without members."""
    with consumer(broker.bootstrap, group) as source:
        source.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_is_described_with_its_members_and_what_they_own(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic = new_topic(partitions=2)
    settings = member_settings(protocol, client_id="described", group_instance_id="instance-7")
    with consumer(broker.bootstrap, group, **settings) as member:
        member.subscribe([topic])
        settle([member], 2)
        seen = until(lambda: _if_stable(admin, group), "the group is stable")
        assert seen.type == (
            ConsumerGroupType.CLASSIC if protocol == "classic" else ConsumerGroupType.CONSUMER
        )
        assert not seen.is_simple_consumer_group
        assert seen.coordinator.port == broker.port
        (only,) = seen.members
        assert (only.client_id, only.group_instance_id) == ("described", "instance-7")
        assert only.host.strip("/") == "127.0.0.1"
        assert {place.partition for place in only.assignment.topic_partitions} == {0, 1}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_are_listed_by_state_and_type(
    broker: Broker, admin: AdminClient, topic: str, group: str, protocol: str
) -> None:
    bookmark(broker, f"{group}-empty", topic, 1)
    with consumer(broker.bootstrap, group, **member_settings(protocol)) as member:
        member.subscribe([topic])
        settle([member], 1)
        kinds = until(lambda: _kinds_of_stable(admin, group), "the group is stable")
        assert kinds[group] == (
            ConsumerGroupType.CLASSIC if protocol == "classic" else ConsumerGroupType.CONSUMER
        )
        assert f"{group}-empty" not in kinds
    empty = admin.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result(10).valid
    assert f"{group}-empty" in {listing.group_id for listing in empty}
    ours = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result(10).valid
    assert (group in {listing.group_id for listing in ours}) == (protocol == "consumer")


def test_unknown_group_is_dead(admin: AdminClient, group: str) -> None:
    seen = describe(admin, group)
    assert (seen.state, seen.members) == (ConsumerGroupState.DEAD, [])


def test_lag_is_the_end_less_the_commit(broker: Broker, admin: AdminClient, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    bookmark(broker, group, topic, 4)
    (end,) = admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()}).values()
    assert end.result(10).offset - committed(admin, group)[topic, 0] == 6


def test_unknown_group_lists_no_offsets(admin: AdminClient, group: str) -> None:
    assert committed(admin, group) == {}


def test_asked_partitions_without_a_commit_are_listed_as_none(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=2)
    bookmark(broker, group, topic, 4)
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0), TopicPartition(topic, 1)])
    answer = admin.list_consumer_group_offsets([asked])[group].result(10)
    assert {place.partition: place.offset for place in answer.topic_partitions} == {0: 4, 1: -1001}
    assert all(place.error is None for place in answer.topic_partitions)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reset_group_starts_at_the_new_offset(
    broker: Broker, admin: AdminClient, topic: str, group: str, protocol: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    settings = member_settings(protocol)
    with consumer(broker.bootstrap, group, **settings) as member:
        member.subscribe([topic])
        read(member, 10)
        member.commit(asynchronous=False)
    reset = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([reset])[group].result(10)
    assert committed(admin, group) == {(topic, 0): 2}
    with consumer(broker.bootstrap, group, **settings) as member:
        member.subscribe([topic])
        assert read(member, 1)[0].offset() == 2


def test_group_with_members_is_neither_reset_nor_deleted(
    broker: Broker, admin: AdminClient, topic: str, group: str
) -> None:
    with consumer(broker.bootstrap, group, **member_settings("classic")) as member:
        member.subscribe([topic])
        settle([member], 1)
        reset = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 2)])
        answer = admin.alter_consumer_group_offsets([reset])[group].result(10)
        assert answer.topic_partitions[0].error.code() == KafkaError.UNKNOWN_MEMBER_ID
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(10)
        assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP


def test_deleted_group_and_its_offsets_are_gone(
    broker: Broker, admin: AdminClient, topic: str, group: str
) -> None:
    bookmark(broker, group, topic, 4)
    admin.delete_consumer_groups([group])[group].result(10)
    assert group not in {listing.group_id for listing in admin.list_consumer_groups().result(10).valid}
    assert committed(admin, group) == {}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([group])[group].result(10)
    assert refused.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_offsets_of_a_deleted_topic_are_forgotten(
    broker: Broker, admin: AdminClient, topic: str, group: str
) -> None:
    bookmark(broker, group, topic, 4)
    admin.delete_topics([topic])[topic].result(10)
    until(lambda: committed(admin, group) == {}, "the offsets went with their topic")


def _kinds_of_stable(admin: AdminClient, group: str) -> dict[str, ConsumerGroupType]:
    """The types of all stable groups, as soon as this one is among them."""
    stable = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(10).valid
    kinds = {listing.group_id: listing.type for listing in stable}
    return kinds if group in kinds else {}


def _if_stable(admin: AdminClient, group: str) -> ConsumerGroupDescription | None:
    seen = describe(admin, group)
    return seen if seen.state == ConsumerGroupState.STABLE else None
