"""The APIs of consumer groups, classic and newer, through a real coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from postroad.wire.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    sync_group,
)
from tests.broker.harness import Running
from tests.clients.wait import until
from tests.faults.raw import RawConnection, frame, request_content
from tests.simulator.simulated_node import SimulatedNode

NOT_AVAILABLE, INVALID_GROUP, UNKNOWN_MEMBER, BAD_SESSION_TIMEOUT = 15, 24, 25, 26
ILLEGAL_GENERATION, REBALANCE, INVALID_REQUEST, NO_TRANSACTIONS, NON_EMPTY, NOT_FOUND, MEMBER_ID_REQUIRED = (
    22, 27, 42, 53, 68, 69, 79,
)  # fmt: skip


# --- who coordinates


@pytest.mark.parametrize("version", range(find_coordinator.MIN_VERSION, find_coordinator.MAX_VERSION + 1))
def test_every_version_finds_the_coordinator(shared: Running, version: int) -> None:
    request = find_coordinator.FindCoordinatorRequest("g", 0, ["g", "", "h"])
    answer = shared.call(find_coordinator, version, request)
    here = (0, 1, "127.0.0.1", shared.node.port)
    if version < 4:
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == here
    else:
        found = {c.key: (c.error_code, c.node_id, c.host, c.port) for c in answer.coordinators}
        assert found == {"g": here, "": (INVALID_GROUP, -1, "", -1), "h": here}


@pytest.mark.parametrize(("kind", "code"), [(2, INVALID_REQUEST), (9, INVALID_REQUEST)])
def test_other_coordinators_are_refused_clearly(shared: Running, kind: int, code: int) -> None:
    request = find_coordinator.FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])
    [found] = shared.call(find_coordinator, 6, request).coordinators
    assert (found.error_code, bool(found.error_message)) == (code, True)


# --- classic groups


def join_request(
    group: str, member_id: str = "", instance: str | None = None, session_ms: int = 10_000
) -> Any:
    protocols = [join_group.JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0\0\0\0\0")]
    return join_group.JoinGroupRequest(group, session_ms, 20_000, member_id, instance, "consumer", protocols)


def sync_request(group: str, joined: Any, **assignments: bytes) -> Any:
    given = [
        sync_group.SyncGroupRequestAssignment(member_id, content)
        for member_id, content in assignments.items()
    ]
    return sync_group.SyncGroupRequest(
        group, joined.generation_id, joined.member_id, None, "consumer", "range", given
    )


def join(connection: RawConnection, group: str, version: int = join_group.MAX_VERSION) -> Any:
    """A new member, through the detour of being given an id where the version has it."""
    answer = connection.call(join_group, version, join_request(group))
    if answer.error_code == MEMBER_ID_REQUIRED:
        assert version >= 4
        answer = connection.call(join_group, version, join_request(group, answer.member_id))
    assert answer.error_code == 0
    return answer


def stable(connection: RawConnection, group: str) -> Any:
    """A group of one, through join and sync."""
    joined = join(connection, group)
    synced = connection.call(sync_group, 5, sync_request(group, joined, **{joined.member_id: b"mine"}))
    assert (synced.error_code, bytes(synced.assignment)) == (0, b"mine")
    return joined


def beat(connection: RawConnection, group: str, joined: Any, version: int = 4) -> int:
    request = heartbeat.HeartbeatRequest(group, joined.generation_id, joined.member_id)
    return int(connection.call(heartbeat, version, request).error_code)


@pytest.mark.parametrize("version", range(join_group.MIN_VERSION, join_group.MAX_VERSION + 1))
def test_every_version_joins_syncs_beats_and_leaves(shared: Running, version: int) -> None:
    group = f"group-{version}"
    with shared.connect() as connection:
        joined = join(connection, group, version)
        assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
        assert [m.member_id for m in joined.members] == [joined.member_id]
        sync_version = min(version, sync_group.MAX_VERSION)
        request = sync_request(group, joined, **{joined.member_id: b"all"})
        synced = connection.call(sync_group, sync_version, request)
        assert (synced.error_code, bytes(synced.assignment)) == (0, b"all")
        assert beat(connection, group, joined, min(version, heartbeat.MAX_VERSION)) == 0
        leave_version = min(version, leave_group.MAX_VERSION)
        request = leave_group.LeaveGroupRequest(
            group, joined.member_id, [leave_group.MemberIdentity(joined.member_id)]
        )
        left = connection.call(leave_group, leave_version, request)
        assert left.error_code == 0
        assert beat(connection, group, joined) == UNKNOWN_MEMBER


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_member_without_a_rebalance_timeout_has_its_session_timeout(shared: Running, timeout_ms: int) -> None:
    group = f"untimed{timeout_ms}"
    with shared.connect() as connection:
        request = join_request(group)
        request.rebalance_timeout_ms = timeout_ms
        request.member_id = connection.call(join_group, 9, request).member_id
        joined = connection.call(join_group, 9, request)
        sync = sync_request(group, joined, **{joined.member_id: b"all"})
        assert connection.call(sync_group, 5, sync).assignment == b"all"
        assert beat(connection, group, joined) == 0


def test_a_second_member_is_waited_for_and_the_first_hears_of_it(shared: Running) -> None:
    with shared.connect() as first, shared.connect() as second:
        one = stable(first, "pair")
        given = second.call(join_group, 9, join_request("pair")).member_id
        second.send(frame(request_content(join_group, 9, join_request("pair", given), 9)))
        until(lambda: beat(first, "pair", one) == REBALANCE, "the first hears of the rebalance")
        again = first.call(join_group, 9, join_request("pair", one.member_id))
        other = join_group.decode_response(second.receive()[5:], 9)
        assert again.generation_id == other.generation_id == 2
        leader, follower = (again, other) if again.members else (other, again)
        assert {m.member_id for m in leader.members} == {one.member_id, given}
        assert follower.members == []


def test_members_that_are_not_are_told_so(shared: Running) -> None:
    with shared.connect() as connection:
        joined = stable(connection, "strict")
        joined.generation_id += 1
        assert beat(connection, "strict", joined) == ILLEGAL_GENERATION
        joined.member_id = "stranger"
        assert beat(connection, "strict", joined) == UNKNOWN_MEMBER
        assert beat(connection, "nobody", joined) == UNKNOWN_MEMBER
        assert beat(connection, "", joined) == INVALID_GROUP
        assert connection.call(join_group, 9, join_request("strict", "stranger")).error_code == UNKNOWN_MEMBER
        assert connection.call(join_group, 9, join_request("")).error_code == INVALID_GROUP
        short = connection.call(join_group, 9, join_request("strict", session_ms=1))
        assert short.error_code == BAD_SESSION_TIMEOUT


def test_several_members_leave_at_once_each_with_its_own_answer(shared: Running) -> None:
    with shared.connect() as connection:
        joined = stable(connection, "leavers")
        who = [leave_group.MemberIdentity("stranger"), leave_group.MemberIdentity(joined.member_id)]
        answer = connection.call(leave_group, 5, leave_group.LeaveGroupRequest("leavers", members=who))
        assert answer.error_code == 0
        assert [m.error_code for m in answer.members] == [UNKNOWN_MEMBER, 0]


def test_a_silent_member_is_out_after_its_session(simulate: Callable[..., SimulatedNode]) -> None:
    running = simulate()
    with running.connect() as connection:
        given = connection.call(join_group, 9, join_request("silent", session_ms=30_000)).member_id
        joined = connection.call(join_group, 9, join_request("silent", given, session_ms=30_000))
        assert connection.call(sync_group, 5, sync_request("silent", joined)).error_code == 0
        running.run_for(29)
        assert beat(connection, "silent", joined) == 0
        running.run_for(29)
        assert described(running, "silent").group_state == "Stable"
        running.run_for(2)
        assert described(running, "silent").group_state == "Empty"
        assert beat(connection, "silent", joined) == UNKNOWN_MEMBER


# --- looking at groups


def described(running: Running, group: str, version: int = 6) -> Any:
    request = describe_groups.DescribeGroupsRequest([group], include_authorized_operations=True)
    return running.call(describe_groups, version, request).groups[0]


@pytest.mark.parametrize("version", range(describe_groups.MIN_VERSION, describe_groups.MAX_VERSION + 1))
def test_every_version_describes_a_group_and_its_members(shared: Running, version: int) -> None:
    with shared.connect() as connection:
        joined = stable(connection, f"seen-{version}")
        group = described(shared, f"seen-{version}", version)
        assert (group.error_code, group.group_state, group.protocol_type) == (0, "Stable", "consumer")
        [member] = group.members
        assert (member.member_id, member.client_id, member.client_host) == (
            joined.member_id,
            "raw",
            "/127.0.0.1",
        )
        assert bytes(member.member_assignment) == b"mine"
        if version >= 3:
            assert group.authorized_operations > 0


@pytest.mark.parametrize("version", range(describe_groups.MIN_VERSION, describe_groups.MAX_VERSION + 1))
def test_an_unknown_group_is_dead_and_from_version_six_an_error(shared: Running, version: int) -> None:
    group = described(shared, "never-was", version)
    assert group.group_state == "Dead"
    assert group.error_code == (NOT_FOUND if version >= 6 else 0)


@pytest.mark.parametrize("version", range(list_groups.MIN_VERSION, list_groups.MAX_VERSION + 1))
def test_every_version_lists_groups(shared: Running, version: int) -> None:
    with shared.connect() as connection:
        stable(connection, f"listed-{version}")
        answer = connection.call(list_groups, version, list_groups.ListGroupsRequest())
        [group] = [g for g in answer.groups if g.group_id == f"listed-{version}"]
        assert (answer.error_code, group.protocol_type) == (0, "consumer")
        if version >= 4:
            assert group.group_state == "Stable"
            request = list_groups.ListGroupsRequest(states_filter=["Empty"])
            names = [g.group_id for g in connection.call(list_groups, version, request).groups]
            assert f"listed-{version}" not in names


# --- deleting groups


@pytest.mark.parametrize("version", range(delete_groups.MIN_VERSION, delete_groups.MAX_VERSION + 1))
def test_each_group_of_a_deletion_has_its_own_answer(shared: Running, version: int) -> None:
    busy, empty = f"busy-{version}", f"empty-{version}"
    with shared.connect() as connection:
        stable(connection, busy)
        joined = stable(connection, empty)
        who = [leave_group.MemberIdentity(joined.member_id)]
        connection.call(leave_group, 5, leave_group.LeaveGroupRequest(empty, members=who))
        names = [busy, "never-was", empty, "", empty]
        answer = connection.call(delete_groups, version, delete_groups.DeleteGroupsRequest(names))
        assert [(r.group_id, r.error_code) for r in answer.results] == [
            (busy, NON_EMPTY),
            ("never-was", NOT_FOUND),
            (empty, 0),
            ("", INVALID_GROUP),
        ]
    assert described(shared, empty).group_state == "Dead"


def test_deleting_no_group_is_answered(shared: Running) -> None:
    assert shared.call(delete_groups, 2, delete_groups.DeleteGroupsRequest([])).results == []


# --- the newer protocol (KIP-848)


def beat_consumer(connection: RawConnection, version: int, group: str, epoch: int, **more: Any) -> Any:
    given: dict[str, Any] = {"rebalance_timeout_ms": 10_000, "topic_partitions": []} | more
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_epoch=epoch, **given
    )
    return connection.call(consumer_group_heartbeat, version, request)


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_of_the_newer_protocol_gets_its_partitions_and_leaves(shared: Running, version: int) -> None:
    name, group = f"newer-{version}", f"newer-group-{version}"
    topic_id = shared.create(name, 2)
    with shared.connect() as connection:
        first = beat_consumer(
            connection, version, group, 0, member_id=f"m{version}", subscribed_topic_names=[name]
        )
        assert (first.error_code, first.member_id) == (0, f"m{version}")
        [owned] = first.assignment.topic_partitions
        assert (owned.topic_id, list(owned.partitions)) == (topic_id, [0, 1])
        request = consumer_group_describe.ConsumerGroupDescribeRequest([group, "never-was"])
        found, missing = connection.call(consumer_group_describe, version, request).groups
        [member] = found.members
        assert [(t.topic_name, list(t.partitions)) for t in member.assignment.topic_partitions] == [
            (name, [0, 1])
        ]
        assert missing.error_code == NOT_FOUND
        left = beat_consumer(connection, version, group, -1, member_id=f"m{version}")
        assert (left.error_code, left.member_epoch) == (0, -1)


def test_a_new_partition_reaches_the_members_with_their_next_heartbeat(shared: Running) -> None:
    from postroad.wire.messages import create_partitions

    topic_id = shared.create("widened")
    with shared.connect() as connection:
        answer = beat_consumer(
            connection, 1, "widened-group", 0, member_id="m", subscribed_topic_names=["widened"]
        )
        wider = create_partitions.CreatePartitionsTopic("widened", 2)
        connection.call(create_partitions, 3, create_partitions.CreatePartitionsRequest([wider], 10_000))
        owned = [consumer_group_heartbeat.RequestTopicPartitions(topic_id, [0])]
        seen: list[int] = []

        def has_both() -> bool:
            nonlocal answer, seen
            answer = beat_consumer(
                connection, 1, "widened-group", answer.member_epoch, member_id="m", topic_partitions=owned
            )
            if answer.assignment is not None and answer.assignment.topic_partitions:
                seen = list(answer.assignment.topic_partitions[0].partitions)
            return seen == [0, 1]

        until(has_both, "the member gets the new partition")
