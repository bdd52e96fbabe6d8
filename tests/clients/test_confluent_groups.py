"""confluent-kafka: members share a topic's partitions, under the classic protocol and under KIP-848."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from .confluent import QUICK_GROUP, consumer, producer, read, send_all, send_values, settle
from .conftest import SHORTEST_SESSION_MS, Broker, TopicMaker
from .wait import until

PROTOCOLS = ["classic", "consumer"]


def member_settings(protocol: str, **more: Any) -> dict[str, Any]:
    """Quick heartbeats; under KIP-848 their rhythm is the server's and the client may not set it."""
    own = (
        {key.replace(".", "_"): value for key, value in QUICK_GROUP.items()} if protocol == "classic" else {}
    )
    return {"group_protocol": protocol, "topic_metadata_refresh_interval_ms": 500, **own, **more}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_members_share_the_partitions_and_every_message_arrives_once(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic, settings = new_topic(partitions=4), member_settings(protocol)
    with (
        consumer(broker.bootstrap, group, **settings) as one,
        consumer(broker.bootstrap, group, **settings) as two,
    ):
        one.subscribe([topic])
        two.subscribe([topic])
        shares = settle([one, two], 4)
        assert sorted(map(len, shares)) == [2, 2]
        numbers = [str(number).encode() for number in range(200)]
        through = producer(broker.bootstrap)
        send_all(through, topic, ({"value": n, "partition": int(n) % 4} for n in numbers))
        seen = read(one, 100) + read(two, 100)
    assert sorted(int(message.value()) for message in seen) == list(range(200))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_of_a_member_that_leaves_go_to_the_others_at_the_commit(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic, settings = new_topic(partitions=3), member_settings(protocol)
    for partition in range(3):
        send_values(broker.bootstrap, topic, 10, partition)
    with consumer(broker.bootstrap, group, **settings) as stays:
        with consumer(broker.bootstrap, group, **settings) as leaves:
            leaves.subscribe([topic])
            assert len(read(leaves, 30)) == 30
            leaves.commit(offsets=[TopicPartition(topic, p, 4 + p) for p in range(3)], asynchronous=False)
        stays.subscribe([topic])
        left = read(stays, 6 + 5 + 4)
    assert {(m.partition(), m.offset()) for m in left} == {(p, o) for p in range(3) for o in range(4 + p, 10)}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_member_that_joins_takes_a_share_and_nothing_is_skipped(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic, settings = new_topic(partitions=4), member_settings(protocol, enable_auto_commit=True)
    with consumer(broker.bootstrap, group, **settings) as first:
        first.subscribe([topic])
        settle([first], 4)
        through = producer(broker.bootstrap)
        send_all(through, topic, ({"value": str(n).encode(), "partition": n % 4} for n in range(100)))
        seen = [int(message.value()) for message in read(first, 60)]
        with consumer(broker.bootstrap, group, **settings) as second:
            second.subscribe([topic])

            def all_arrived() -> bool:
                for member in (first, second):
                    seen.extend(int(m.value()) for m in member.consume(100, 0.1) if not m.error())
                shares = [len(member.assignment()) for member in (first, second)]
                return set(seen) == set(range(100)) and shares == [2, 2]

            until(all_arrived, "all messages, shared by two members")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_committed_offset_and_its_metadata_are_where_the_next_member_starts(
    broker: Broker, topic: str, group: str, protocol: str
) -> None:
    send_values(broker.bootstrap, topic, 20)
    settings = member_settings(protocol)
    with consumer(broker.bootstrap, group, **settings) as first:
        first.subscribe([topic])
        read(first, 20)
        first.commit(offsets=[TopicPartition(topic, 0, 7, metadata="why seven")], asynchronous=False)
    with consumer(broker.bootstrap, group, **settings) as second:
        second.subscribe([topic])
        assert read(second, 1)[0].offset() == 7
        (committed,) = second.committed([TopicPartition(topic, 0)], timeout=10)
        assert (committed.offset, committed.metadata) == (7, "why seven")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_auto_commit_on_close_keeps_the_position(
    broker: Broker, topic: str, group: str, protocol: str
) -> None:
    send_values(broker.bootstrap, topic, 10)
    settings = member_settings(protocol, enable_auto_commit=True, auto_commit_interval_ms=60_000)
    for first_offset in (0, 5):
        with consumer(broker.bootstrap, group, **settings) as member:
            member.subscribe([topic])
            # One at a time: what was handed out is what close() commits.
            seen = [read(member, 1)[0].offset() for _ in range(5)]
        assert seen == list(range(first_offset, first_offset + 5))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pattern_subscription_finds_topics_that_come_later(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    first = new_topic(name=f"{group}.one")
    settings = member_settings(protocol, metadata_max_age_ms=1000)
    with consumer(broker.bootstrap, group, **settings) as member:
        member.subscribe([f"^{group}\\..*"])
        until(lambda: _owned(member) == {(first, 0)}, "the first topic is assigned")
        second = new_topic(name=f"{group}.two")
        until(lambda: _owned(member) == {(first, 0), (second, 0)}, "the second topic is assigned", 60)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_added_partitions_are_assigned(
    broker: Broker, admin: AdminClient, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic = new_topic(partitions=1)
    with consumer(broker.bootstrap, group, **member_settings(protocol)) as member:
        member.subscribe([topic])
        settle([member], 1)
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(10)
        settle([member], 3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_static_member_that_comes_back_keeps_its_partitions_and_disturbs_nobody(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic = new_topic(partitions=4)
    revocations: list[list[TopicPartition]] = []
    with consumer(broker.bootstrap, group, **member_settings(protocol, group_instance_id="one")) as stays:
        stays.subscribe([topic], on_revoke=lambda _, partitions: revocations.append(partitions))
        with consumer(broker.bootstrap, group, **member_settings(protocol, group_instance_id="two")) as goes:
            goes.subscribe([topic])
            before = settle([stays, goes], 4)
        revocations.clear()
        with consumer(broker.bootstrap, group, **member_settings(protocol, group_instance_id="two")) as back:
            back.subscribe([topic])
            after = settle([stays, back], 4)
        assert after == before
        assert revocations == []


def test_second_member_with_the_same_instance_id_fences_the_first(
    broker: Broker, topic: str, group: str
) -> None:
    settings = member_settings("classic", group_instance_id="same")
    with consumer(broker.bootstrap, group, **settings) as first:
        first.subscribe([topic])
        settle([first], 1)
        with consumer(broker.bootstrap, group, **settings) as second:
            second.subscribe([topic])
            settle([second], 1)
            await_fatal(first, "Static consumer fenced")


def test_second_848_member_with_an_instance_id_in_use_is_refused(
    broker: Broker, topic: str, group: str
) -> None:
    settings = member_settings("consumer", group_instance_id="same")
    with consumer(broker.bootstrap, group, **settings) as first:
        first.subscribe([topic])
        settle([first], 1)
        with consumer(broker.bootstrap, group, **settings) as second:
            second.subscribe([topic])
            await_fatal(second, "instance ID is still used")


def test_cooperative_members_keep_what_they_may_keep(
    broker: Broker, new_topic: TopicMaker, group: str
) -> None:
    topic = new_topic(partitions=6)
    settings = member_settings("classic", partition_assignment_strategy="cooperative-sticky")
    revoked: list[int] = []
    with consumer(broker.bootstrap, group, **settings) as one:
        one.subscribe([topic], on_revoke=lambda _, gone: revoked.extend(p.partition for p in gone))
        settle([one], 6)
        with consumer(broker.bootstrap, group, **settings) as two:
            two.subscribe([topic])
            shares = settle([one, two], 6)
            assert sorted(map(len, shares)) == [3, 3]
            # Only what moved was taken away; the rest was never out of hand.
            assert set(revoked) == shares[1]


@pytest.mark.parametrize(("assignor", "shares"), [("uniform", [2, 2]), ("range", [2, 2])])
def test_server_side_assignors_share_evenly(
    broker: Broker, new_topic: TopicMaker, group: str, assignor: str, shares: list[int]
) -> None:
    topic = new_topic(partitions=4)
    settings = member_settings("consumer", group_remote_assignor=assignor)
    with (
        consumer(broker.bootstrap, group, **settings) as one,
        consumer(broker.bootstrap, group, **settings) as two,
    ):
        one.subscribe([topic])
        two.subscribe([topic])
        owned = settle([one, two], 4)
    assert sorted(map(len, owned)) == shares
    if assignor == "range":
        assert sorted(sorted(share) for share in owned) == [[0, 1], [2, 3]]


def test_unknown_server_side_assignor_is_refused(broker: Broker, topic: str, group: str) -> None:
    settings = member_settings("consumer", group_remote_assignor="wish")
    with consumer(broker.bootstrap, group, **settings) as member:
        member.subscribe([topic])
        await_fatal(member, "assignor or its version range is not supported")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_member_that_subscribes_and_unsubscribes_rapidly_gets_its_partitions(
    broker: Broker, new_topic: TopicMaker, group: str, protocol: str
) -> None:
    topic = new_topic(partitions=2)
    with consumer(broker.bootstrap, group, **member_settings(protocol)) as member:
        for _ in range(20):
            member.subscribe([topic])
            member.poll(0.005)
            member.unsubscribe()
            member.poll(0)
        member.subscribe([topic])
        assert settle([member], 2) == [{0, 1}]


def test_members_without_a_common_assignor_do_not_mix(broker: Broker, topic: str, group: str) -> None:
    classic = member_settings("classic")
    with consumer(broker.bootstrap, group, **classic, partition_assignment_strategy="range") as one:
        one.subscribe([topic])
        settle([one], 1)
        with consumer(broker.bootstrap, group, **classic, partition_assignment_strategy="roundrobin") as two:
            two.subscribe([topic])
            error = until(lambda: _error(two), "the second member is refused")
    assert error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL


def test_unknown_group_has_no_offsets_and_no_error(broker: Broker, topic: str, group: str) -> None:
    with consumer(broker.bootstrap, group) as source:
        (committed,) = source.committed([TopicPartition(topic, 0)], timeout=10)
    assert committed.error is None
    assert committed.offset == OFFSET_INVALID


def test_group_without_members_may_be_used_as_a_bookmark(broker: Broker, topic: str, group: str) -> None:
    with consumer(broker.bootstrap, group) as source:
        source.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
        assert source.committed([TopicPartition(topic, 0)], timeout=10)[0].offset == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_outsider_may_not_commit_for_a_group_with_members(
    broker: Broker, topic: str, group: str, protocol: str
) -> None:
    with (
        consumer(broker.bootstrap, group, **member_settings(protocol)) as member,
        consumer(broker.bootstrap, group) as outsider,
    ):
        member.subscribe([topic])
        settle([member], 1)
        with pytest.raises(KafkaException) as refused:
            outsider.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID


MEMBER_THAT_DIES = """
import sys
from confluent_kafka import Consumer
member = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[3], "heartbeat.interval.ms": 200,
                   "session.timeout.ms": sys.argv[4], "auto.offset.reset": "earliest"})
member.subscribe([sys.argv[2]])
while not member.assignment():
    member.poll(0.1)
print("joined", flush=True)
while True:
    member.poll(0.1)
"""


@pytest.mark.slow
def test_killed_member_loses_its_partitions_after_the_session_timeout(
    broker: Broker, topic: str, group: str
) -> None:
    session_ms = SHORTEST_SESSION_MS if broker.ours else 6000
    command = [sys.executable, "-c", MEMBER_THAT_DIES, broker.bootstrap, topic, group, str(session_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == "joined\n"
        dying.send_signal(signal.SIGKILL)
    send_values(broker.bootstrap, topic, 3)
    with consumer(broker.bootstrap, group, **member_settings("classic")) as heir:
        heir.subscribe([topic])
        assert [message.value() for message in read(heir, 3)] == [b"0", b"1", b"2"]


def _owned(member: Consumer) -> set[tuple[str, int]]:
    member.poll(0.1)
    return {(owned.topic, owned.partition) for owned in member.assignment()}


def await_fatal(member: Consumer, words: str) -> None:
    """librdkafka hands a fatal error to poll() as an event whose text carries the broker's answer."""
    error = until(lambda: _error(member), f"fatal error: {words}")
    assert error.code() == KafkaError._FATAL
    assert words in error.str()


def _error(member: Consumer) -> KafkaError | None:
    event = member.poll(0.1)
    return event.error() if event is not None else None
