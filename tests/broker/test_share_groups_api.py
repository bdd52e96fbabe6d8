"""Share groups through the APIs: heartbeats, descriptions, and how they live beside consumer groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.broker.api.share_group_heartbeat import for_members
from postroad.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidGroupId,
    NotCoordinator,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from postroad.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    delete_groups,
    describe_groups,
    incremental_alter_configs,
    join_group,
    list_groups,
    offset_commit,
    share_group_describe,
    share_group_heartbeat,
)
from tests.broker.harness import Running
from tests.clients.wait import until

INCONSISTENT_PROTOCOL, INVALID_GROUP, UNKNOWN_MEMBER, INVALID_REQUEST, NON_EMPTY, NOT_FOUND, FENCED = (
    23, 24, 25, 42, 68, 69, 110,
)  # fmt: skip
GROUP_RESOURCE = 32


def beat(node: Running, group: str, member: str, epoch: int, *names: str, rack: str | None = None) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group, member, epoch, rack, list(names) if names else None
    )
    return node.call(share_group_heartbeat, 1, request)


def join(node: Running, group: str, member: str, *names: str) -> Any:
    answer = beat(node, group, member, 0, *names)
    assert answer.error_code == 0, answer.error_message
    return answer


def leave(node: Running, group: str, *members: str) -> None:
    for member in members:
        answer = beat(node, group, member, -1)
        assert (answer.error_code, answer.member_epoch) == (0, -1)


def assigned(answer: Any) -> dict[bytes, list[int]] | None:
    if answer.assignment is None:
        return None
    return {bytes(topic.topic_id): topic.partitions for topic in answer.assignment.topic_partitions}


def describe(node: Running, group: str) -> Any:
    request = share_group_describe.ShareGroupDescribeRequest([group], include_authorized_operations=True)
    [found] = node.call(share_group_describe, 1, request).groups
    return found


def listed(node: Running, states: list[str], types: list[str]) -> dict[str, tuple[str, str, str]]:
    answer = node.call(list_groups, 5, list_groups.ListGroupsRequest(states, types))
    assert answer.error_code == 0
    return {g.group_id: (g.protocol_type, g.group_state, g.group_type) for g in answer.groups}


def delete(node: Running, *groups: str) -> list[int]:
    answer = node.call(delete_groups, 2, delete_groups.DeleteGroupsRequest(list(groups)))
    return [result.error_code for result in answer.results]


def consumer_joins(node: Running, group: str, topic: str) -> int:
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    return int(node.call(consumer_group_heartbeat, 1, request).error_code)


def classic_joins(node: Running, group: str) -> int:
    protocols = [join_group.JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\0\0\0\0")]
    request = join_group.JoinGroupRequest(group, 10_000, 20_000, "", None, "consumer", protocols)
    return int(node.call(join_group, 9, request).error_code)


def commits(node: Running, group: str, topic: str) -> int:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    return int(node.call(offset_commit, 9, request).topics[0].partitions[0].error_code)


# --- heartbeats


def test_member_joins_lives_on_and_leaves(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic, partitions=3)
    answer = join(shared, topic, "a", topic)
    assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 1, 5_000)
    assert assigned(answer) == {topic_id: [0, 1, 2]}
    again = beat(shared, topic, "a", 1)
    assert (again.error_code, again.member_epoch, assigned(again)) == (0, 1, None)
    leave(shared, topic, "a")
    assert beat(shared, topic, "a", 1).error_code == UNKNOWN_MEMBER


def test_members_share_a_partition(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    for member in "abc":
        assert assigned(join(shared, topic, member, topic)) == {topic_id: [0]}


def test_new_partitions_are_assigned_at_the_next_heartbeat(shared: Running, topic: str) -> None:
    topic_id = shared.create(topic)
    join(shared, topic, "a", topic)
    more = create_partitions.CreatePartitionsTopic(name=topic, count=2)
    request = create_partitions.CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
    assert shared.call(create_partitions, 3, request).results[0].error_code == 0
    assert assigned(beat(shared, topic, "a", 1)) == {topic_id: [0, 1]}


def test_topic_may_be_created_after_its_subscription(shared: Running, topic: str) -> None:
    assert assigned(join(shared, topic, "a", topic)) == {}
    topic_id = shared.create(topic)
    assert assigned(beat(shared, topic, "a", 1)) == {topic_id: [0]}


@pytest.mark.parametrize(
    ("group", "member", "epoch", "names", "rack", "code"),
    [
        ("", "a", 0, ["t"], None, INVALID_REQUEST),
        ("g", "", 0, ["t"], None, INVALID_REQUEST),
        ("g", "a", 0, ["t"], "", INVALID_REQUEST),
        ("g", "a", 0, [], None, INVALID_REQUEST),
        ("g", "a", -2, ["t"], None, INVALID_REQUEST),
        ("g", "a", 1, [], None, UNKNOWN_MEMBER),
        ("g", "a", -1, [], None, UNKNOWN_MEMBER),
    ],
)
def test_heartbeat_is_refused_as_kafka_refuses_it(
    shared: Running, group: str, member: str, epoch: int, names: list[str], rack: str | None, code: int
) -> None:
    answer = beat(shared, group, member, epoch, *names, rack=rack)
    assert (answer.error_code, bool(answer.error_message)) == (code, True)


def test_wrong_epoch_is_fenced(shared: Running, topic: str) -> None:
    shared.create(topic)
    join(shared, topic, "a", topic)
    assert beat(shared, topic, "a", 7).error_code == FENCED


def test_silent_member_is_gone_when_its_session_is_over(start: Callable[..., Running], topic: str) -> None:
    node = start(durability_flush="os")
    node.create(topic)
    join(node, "g", "a", topic)
    assert describe(node, "g").group_state == "Stable"
    config = [
        incremental_alter_configs.AlterableConfig("share.heartbeat.interval.ms", 0, "100"),
        incremental_alter_configs.AlterableConfig("share.session.timeout.ms", 0, "300"),
    ]
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, "g", config)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    assert node.call(incremental_alter_configs, 1, request).responses[0].error_code == 0
    assert beat(node, "g", "a", 1).heartbeat_interval_ms == 100
    until(lambda: describe(node, "g").group_state == "Empty", "the member is removed")


# --- what an operator sees


def test_group_is_described_with_its_members(shared: Running, topic: str) -> None:
    shared.create(topic, partitions=2)
    beat(shared, topic, "a", 0, topic, rack="r")
    found = describe(shared, topic)
    assert (found.error_code, found.group_state, found.group_epoch, found.assignment_epoch) == (
        0,
        "Stable",
        1,
        1,
    )
    assert found.authorized_operations == 3400
    [member] = found.members
    assert (member.member_id, member.rack_id, member.member_epoch, member.client_id) == ("a", "r", 1, "raw")
    assert (member.client_host, member.subscribed_topic_names) == ("/127.0.0.1", [topic])
    assert [(t.topic_name, t.partitions) for t in member.assignment.topic_partitions] == [(topic, [0, 1])]


def test_group_stays_when_its_members_have_left(shared: Running, topic: str) -> None:
    shared.create(topic)
    join(shared, topic, "a", topic)
    assert listed(shared, ["stable"], ["share"])[topic] == ("share", "Stable", "share")
    leave(shared, topic, "a")
    assert (describe(shared, topic).group_state, describe(shared, topic).members) == ("Empty", [])
    assert listed(shared, [], [])[topic] == ("share", "Empty", "share")
    assert topic not in listed(shared, ["Stable"], ["share"])
    assert topic not in listed(shared, [], ["consumer", "classic"])


def test_group_that_is_not_there_is_not_described(shared: Running, topic: str) -> None:
    assert describe(shared, topic).error_code == NOT_FOUND
    assert describe(shared, "").error_code == INVALID_GROUP


def test_group_is_deleted_when_its_members_have_left(shared: Running, topic: str) -> None:
    shared.create(topic)
    join(shared, topic, "a", topic)
    assert delete(shared, topic, topic + "-other") == [NON_EMPTY, NOT_FOUND]
    leave(shared, topic, "a")
    assert delete(shared, topic) == [0]
    assert describe(shared, topic).error_code == NOT_FOUND
    assert delete(shared, topic) == [NOT_FOUND]


# --- beside consumer groups


@pytest.mark.parametrize("empty", [False, True], ids=["with members", "empty"])
def test_consumers_can_not_use_the_id_of_a_share_group(shared: Running, topic: str, empty: bool) -> None:
    shared.create(topic)
    join(shared, topic, "a", topic)
    if empty:
        leave(shared, topic, "a")
    assert consumer_joins(shared, topic, topic) == NOT_FOUND
    assert classic_joins(shared, topic) == INCONSISTENT_PROTOCOL
    assert commits(shared, topic, topic) == NOT_FOUND
    request = consumer_group_describe.ConsumerGroupDescribeRequest([topic])
    assert shared.call(consumer_group_describe, 1, request).groups[0].error_code == NOT_FOUND
    for version, code in [(5, 0), (6, NOT_FOUND)]:
        [found] = shared.call(describe_groups, version, describe_groups.DescribeGroupsRequest([topic])).groups
        assert (found.error_code, found.group_state) == (code, "Dead")


def test_share_consumers_can_not_use_the_id_of_a_consumer_group(shared: Running, topic: str) -> None:
    shared.create(topic)
    members, offsets = topic + "-members", topic + "-offsets"
    assert consumer_joins(shared, members, topic) == 0
    assert commits(shared, offsets, topic) == 0
    for group in (members, offsets):
        assert beat(shared, group, "a", 0, topic).error_code == NOT_FOUND
        assert describe(shared, group).error_code == NOT_FOUND


def test_restart_forgets_members_and_keeps_the_group(start: Callable[..., Running], topic: str) -> None:
    node = start()
    topic_id = node.create(topic)
    join(node, "g", "a", topic)
    node.stop()
    node.start()
    assert describe(node, "g").group_state == "Empty"
    assert beat(node, "g", "a", 1).error_code == UNKNOWN_MEMBER
    assert assigned(join(node, "g", "a", topic)) == {topic_id: [0]}


@pytest.mark.parametrize("error", [NotLeaderOrFollower(), RequestTimedOut(), NotEnoughReplicas()])
def test_member_hears_of_a_ledger_that_is_late_as_of_a_coordinator_that_loads(error: ApiError) -> None:
    assert isinstance(for_members(error), CoordinatorLoadInProgress)


@pytest.mark.parametrize("error", [NotCoordinator(), CoordinatorNotAvailable(), InvalidGroupId()])
def test_errors_that_members_know_are_theirs(error: ApiError) -> None:
    assert for_members(error) is error
