"""A leader without a current lease answers nothing that its successor might answer differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postroad.wire.messages import (
    heartbeat,
    join_group,
    list_offsets,
    offset_commit,
    offset_fetch,
    share_group_heartbeat,
    sync_group,
)
from tests.clients.share_session import Fate, Session, one
from tests.faults.raw import fetch_at
from tests.simulator.simulated_cluster import LEASE_MS, SimulatedCluster, host_of, simulated_cluster
from tests.simulator.simulated_node import SimulatedConnection

GROUP, OFFSETS = "group", "__consumer_offsets"
OUT_OF_RANGE, NOT_LEADER, NOT_COORDINATOR, UNKNOWN_MEMBER = 1, 6, 16, 25
LATEST, EARLIEST = -1, -2
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LEASE_S, SESSION_S = LEASE_MS / 1000, 6.0
SENT_AWAY_S = 2.0  # the most that clients wait for a leader that was left, once its lease has ended


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(durability_flush="os") as running:
        running.until(lambda: len(running.state(OFFSETS).isr) == 3)
        yield running


def others(leader: int) -> list[int]:
    return [number for number in (1, 2, 3) if number != leader]


def heartbeat_error(cluster: SimulatedCluster, at: int, member: str = "nobody") -> int:
    request = heartbeat.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member)
    return int(cluster.call(at, heartbeat, 4, request).error_code)


def joined(cluster: SimulatedCluster, at: int) -> str:
    """The only member of a classic group, in its first generation."""
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = join_group.JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=int(SESSION_S * 1000),
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    request.member_id = cluster.call(at, join_group, 7, request).member_id
    answer = cluster.call(at, join_group, 7, request)
    assert (answer.error_code, answer.generation_id) == (0, 1)
    assignments = [sync_group.SyncGroupRequestAssignment(member_id=request.member_id, assignment=b"")]
    synced = sync_group.SyncGroupRequest(
        group_id=GROUP, generation_id=1, member_id=request.member_id, assignments=assignments
    )
    assert cluster.call(at, sync_group, 4, synced).error_code == 0
    return str(request.member_id)


def committed(cluster: SimulatedCluster, at: int, topic: str) -> Any:
    wanted = [offset_fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [offset_fetch.OffsetFetchRequestGroup(group_id=GROUP, topics=wanted)]
    return cluster.call(at, offset_fetch, 8, offset_fetch.OffsetFetchRequest(groups=groups)).groups[0]


def commit(cluster: SimulatedCluster, at: int, topic: str, offset: int) -> int:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = offset_commit.OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    return int(cluster.call(at, offset_commit, 8, request).topics[0].partitions[0].error_code)


def offset_at(cluster: SimulatedCluster, at: int, topic: str, timestamp: int, isolation: int = 0) -> Any:
    wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [list_offsets.ListOffsetsTopic(name=topic, partitions=[wanted])]
    request = list_offsets.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
    found = cluster.call(at, list_offsets, 7, request).topics[0].partitions[0]
    return found.error_code, found.offset


def share_heartbeat(cluster: SimulatedCluster, at: int) -> int:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id="nobody", member_epoch=1
    )
    return int(cluster.call(at, share_group_heartbeat, 1, request).error_code)


def begun(cluster: SimulatedCluster, connection: SimulatedConnection, topic: str) -> Session:
    """A session whose subscription holds what is published from now on."""
    session = Session(connection, "share", topic, None)
    session.fetch()
    cluster.run_for(1)
    session.fetch()
    return session


def test_without_its_store_a_leader_stops_soft_services_within_a_lease_and_goes_on_with_messages(
    cluster: SimulatedCluster,
) -> None:
    leader = cluster.nodes[1].groups.leader_of(GROUP)
    cluster.create_led_by("work", leader, *others(leader))
    assert commit(cluster, leader, "work", 7) == 0
    with cluster.connect(leader) as connection:
        session = begun(cluster, connection, "work")
        cluster.publish("work", b"0", b"1", b"2")
        cluster.until(lambda: session.fetch(max_records=1).held)
        cluster.store.begin_outage()
        cluster.run_for(LEASE_S)
        assert session.fetch().error == NOT_LEADER
        assert session.fetch(one(0, Fate.ACCEPT)).acknowledge_error == NOT_LEADER
        assert heartbeat_error(cluster, leader) == NOT_COORDINATOR
        assert share_heartbeat(cluster, leader) == NOT_COORDINATOR
        assert committed(cluster, leader, "work").error_code == NOT_COORDINATOR
        # Whatever its replicas have a say in goes on: another leader would stop it.
        assert cluster.publish("work", b"3") == 3
        assert commit(cluster, leader, "work", 8) == 0
        assert fetch_at(connection, "work", 3).high_watermark == 4
        cluster.store.end_outage()
        cluster.until(lambda: heartbeat_error(cluster, leader) == UNKNOWN_MEMBER)
        assert committed(cluster, leader, "work").topics[0].partitions[0].committed_offset == 8
        assert session.fetch(one(0, Fate.ACCEPT)).acknowledge_error == 0


def test_a_leader_that_was_replaced_sends_no_consumer_back(cluster: SimulatedCluster) -> None:
    cluster.create_led_by("replaced", 1, 2, 3)
    cluster.publish("replaced", b"0")
    cluster.cut_from_store(1)
    for number in (2, 3):
        cluster.network.cut(host_of(1), host_of(number))
    cluster.until(lambda: cluster.leads(2, "replaced") or cluster.leads(3, "replaced"))
    cluster.until(lambda: 1 not in cluster.state("replaced").isr)
    assert cluster.publish("replaced", b"1", b"2") == 2
    assert cluster.leads(1, "replaced"), "it has not heard of its successor"
    with cluster.connect(1) as connection:
        assert fetch_at(connection, "replaced", 3).error_code == NOT_LEADER
        assert fetch_at(connection, "replaced", 0).records
    with cluster.connect(cluster.state("replaced").leader) as connection:
        assert fetch_at(connection, "replaced", 9).error_code == OUT_OF_RANGE


@pytest.mark.parametrize("isolation", [READ_UNCOMMITTED, READ_COMMITTED])
def test_a_leader_that_was_replaced_does_not_say_where_its_log_ends(
    cluster: SimulatedCluster, isolation: int
) -> None:
    cluster.create_led_by("ended", 1, 2, 3)
    cluster.publish("ended", b"0")
    assert offset_at(cluster, 1, "ended", LATEST, isolation) == (0, 1)
    cluster.cut_from_store(1)
    for number in (2, 3):
        cluster.network.cut(host_of(1), host_of(number))
    cluster.until(lambda: cluster.leads(2, "ended") or cluster.leads(3, "ended"))
    cluster.until(lambda: 1 not in cluster.state("ended").isr)
    cluster.publish("ended", b"1")
    assert cluster.leads(1, "ended"), "it has not heard of its successor"
    assert offset_at(cluster, cluster.state("ended").leader, "ended", LATEST, isolation) == (0, 2)
    assert offset_at(cluster, 1, "ended", LATEST, isolation)[0] == NOT_LEADER
    assert offset_at(cluster, 1, "ended", 5_000, isolation)[0] == NOT_LEADER, (
        "a message of that time may be there"
    )
    assert offset_at(cluster, 1, "ended", EARLIEST, isolation) == (0, 0)


def test_a_coordinator_that_was_replaced_sends_commits_away_before_it_hears_of_that(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("sent", 1, 2, 3)
    leader = cluster.nodes[1].groups.leader_of(GROUP)
    assert commit(cluster, leader, "sent", 7) == 0
    cluster.cut_from_store(leader)
    for number in others(leader):
        cluster.network.cut(host_of(leader), host_of(number))
    before = cluster.world.now
    assert commit(cluster, leader, "sent", 8) == NOT_COORDINATOR
    assert cluster.world.now - before < LEASE_S + SENT_AWAY_S
    assert cluster.nodes[leader].groups.leader_of(GROUP) == leader, "it has not heard of its successor"
    asked = cluster.nodes[others(leader)[0]].groups
    cluster.until(lambda: asked.leader_of(GROUP) != leader)
    cluster.store.heal()
    cluster.network.heal()
    new = asked.leader_of(GROUP)
    cluster.until(lambda: not committed(cluster, new, "sent").error_code)
    assert committed(cluster, new, "sent").topics[0].partitions[0].committed_offset == 7


def test_a_partition_with_one_replica_is_served_whatever_becomes_of_the_store(
    cluster: SimulatedCluster,
) -> None:
    cluster.create_led_by("alone", 2)
    with cluster.connect(2) as connection:
        session = begun(cluster, connection, "alone")
        cluster.publish("alone", b"0", b"1")
        cluster.until(lambda: session.fetch(max_records=1).held)
        cluster.store.begin_outage()
        cluster.run_for(3 * LEASE_S)
        assert session.fetch(one(0, Fate.ACCEPT)).offsets == [1]
        assert fetch_at(connection, "alone", 9).error_code == OUT_OF_RANGE
        assert offset_at(cluster, 2, "alone", LATEST) == (0, 2)
        cluster.store.end_outage()


def test_members_outlive_an_outage_of_the_store(cluster: SimulatedCluster) -> None:
    """They could not be heard meanwhile, so none of them is given up."""
    leader = cluster.nodes[1].groups.leader_of(GROUP)
    member = joined(cluster, leader)
    cluster.store.begin_outage()
    cluster.run_for(3 * SESSION_S)
    assert heartbeat_error(cluster, leader, member) == NOT_COORDINATOR
    cluster.store.end_outage()
    cluster.until(lambda: heartbeat_error(cluster, leader, member) != NOT_COORDINATOR)
    assert heartbeat_error(cluster, leader, member) == 0
    cluster.until(lambda: heartbeat_error(cluster, leader) == UNKNOWN_MEMBER)
    cluster.run_for(2 * SESSION_S)
    assert heartbeat_error(cluster, leader, member) == UNKNOWN_MEMBER, "a silent member still goes"
