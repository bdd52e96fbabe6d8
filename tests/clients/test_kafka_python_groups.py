"""kafka-python: classic groups, whose assignments its members work out themselves."""

from __future__ import annotations

import pytest
from kafka import ConsumerRebalanceListener, KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import CommitFailedError, FencedInstanceIdError, UnknownMemberIdError

from .conftest import Broker, TopicMaker
from .python_kafka import QUICK_GROUP, admin_client, consumer, producer, read, send_values, settle, subscribe
from .wait import until


class Record(ConsumerRebalanceListener):
    """What a member was told to give up."""

    def __init__(self) -> None:
        self.revoked: set[int] = set()

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.revoked |= {place.partition for place in revoked}

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass


def test_three_members_share_and_the_last_one_left_gets_all(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=6)
    with consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as stays:
        with (
            consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as two,
            consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as three,
        ):
            shares = settle([stays, two, three], 6)
            assert sorted(map(len, shares)) == [2, 2, 2]
        assert settle([stays], 6) == [set(range(6))]
        with producer(broker.bootstrap) as through:
            for partition in range(6):
                through.send(topic, b"v", partition=partition)
        assert {record.partition for record in read(stays, 6)} == set(range(6))


def test_next_member_starts_at_the_commit_and_reads_its_metadata(
    broker: Broker, topic: str, group: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    place = TopicPartition(topic, 0)
    with consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as first:
        read(first, 10)
        first.commit({place: OffsetAndMetadata(4, "the fourth", -1)})
    with consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as second:
        assert read(second, 1)[0].offset == 4
        assert second.committed(place) == 4
        assert second.committed(place, metadata=True).metadata == "the fourth"


def test_unknown_group_has_no_commit(broker: Broker, topic: str, group: str) -> None:
    with consumer(broker.bootstrap, group_id=group) as source:
        assert source.committed(TopicPartition(topic, 0)) is None


def test_auto_commit_on_close_keeps_the_position(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 10)
    settings = QUICK_GROUP | {"group_id": group, "enable_auto_commit": True}
    with consumer(broker.bootstrap, topic, **settings) as first:
        read(first, 6)
    with consumer(broker.bootstrap, topic, **settings) as second:
        assert read(second, 1)[0].offset == 6


def test_cooperative_members_keep_what_they_may_keep(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic, told = new_topic(partitions=4), Record()
    settings = QUICK_GROUP | {"group_id": group, "partition_assignment_strategy": [CooperativeStickyAssignor]}
    with consumer(broker.bootstrap, **settings) as one:
        subscribe(one, topic, listener=told)
        settle([one], 4)
        with consumer(broker.bootstrap, topic, **settings) as two:
            shares = settle([one, two], 4)
            assert sorted(map(len, shares)) == [2, 2]
            assert told.revoked == shares[1]


def test_static_member_that_comes_back_disturbs_nobody(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic, told = new_topic(partitions=4), Record()
    settings = QUICK_GROUP | {"group_id": group}
    with consumer(broker.bootstrap, group_instance_id="one", **settings) as stays:
        subscribe(stays, topic, listener=told)
        with consumer(broker.bootstrap, topic, group_instance_id="two", **settings) as goes:
            before = settle([stays, goes], 4)
        told.revoked.clear()
        with consumer(broker.bootstrap, topic, group_instance_id="two", **settings) as back:
            assert settle([stays, back], 4) == before
        assert told.revoked == set()


def test_static_member_is_fenced_by_its_successor(broker: Broker, topic: str, group: str) -> None:
    settings = QUICK_GROUP | {"group_id": group, "group_instance_id": "same"}
    with consumer(broker.bootstrap, topic, **settings) as first:
        settle([first], 1)
        with consumer(broker.bootstrap, topic, **settings) as second:
            settle([second], 1)
            # Its heartbeats may hear of it first: then polls go on in silence, and a commit tells.
            place = {TopicPartition(topic, 0): OffsetAndMetadata(0, "", -1)}
            with pytest.raises(FencedInstanceIdError):
                until(lambda: first.poll(timeout_ms=100) or first.commit(place), "the first member is fenced")


def test_member_that_was_removed_may_not_commit(broker: Broker, topic: str, group: str) -> None:
    send_values(broker.bootstrap, topic, 3)
    # Heartbeats so rare that the member does not notice before it commits.
    slow = {"session_timeout_ms": 30_000, "heartbeat_interval_ms": 10_000}
    with (
        consumer(broker.bootstrap, topic, group_id=group, **slow) as member,
        admin_client(broker.bootstrap) as admin,
    ):
        read(member, 3)
        (seen,) = admin.describe_groups([group])[group]["members"]
        _remove(admin, group, seen["member_id"])
        with pytest.raises((CommitFailedError, UnknownMemberIdError)):
            member.commit({TopicPartition(topic, 0): OffsetAndMetadata(3, "", -1)})
        assert admin.list_group_offsets(group)[group] == {}


def test_member_of_an_old_generation_joins_anew(broker: Broker, topic: str, group: str) -> None:
    with (
        consumer(broker.bootstrap, topic, group_id=group, **QUICK_GROUP) as member,
        admin_client(broker.bootstrap) as admin,
    ):
        settle([member], 1)
        before = member.group_metadata()
        _remove(admin, group, before.member_id)
        until(
            lambda: member.poll(timeout_ms=50) or member.group_metadata().member_id != before.member_id,
            "rejoined",
        )
        settle([member], 1)


def _remove(admin: KafkaAdminClient, group: str, member_id: str) -> None:
    (error,) = admin.remove_group_members(group, [MemberToRemove(member_id=member_id)]).values()
    assert error.errno == 0
