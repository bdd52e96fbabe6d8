"""confluent-kafka: a group changes from the classic protocol to KIP-848 and back, member by member, while
messages are produced and the node is killed in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from postroad.testing import Node, node

from .confluent import QUICK_GROUP, consumer, good, producer
from .conftest import BROKER_CONFIG, ELSEWHERE
from .wait import PATIENCE_S, until

pytestmark = pytest.mark.skipif(ELSEWHERE is not None, reason="restarts a node of its own")

GROUP, TOPIC = "workers", "jobs"
PARTITIONS, MEMBERS = 6, 3
# A member that is closed before it has reached the restarted node can't say that it leaves.
CONFIG = {**BROKER_CONFIG, "groups.consumer_session_ms": 6000}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Node]:
    with node(CONFIG, directory=tmp_path) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(10)
        yield started


class Member:
    """A consumer that keeps account of what it owns, and does not own what another one does."""

    def __init__(self, team: Team, protocol: str) -> None:
        self.team = team
        self.owned: set[int] = set()
        own: dict[str, Any] = {"group.protocol": protocol}
        if protocol == "classic":
            own |= {**QUICK_GROUP, "partition.assignment.strategy": team.assignor}
        self.client = Consumer(
            {
                "bootstrap.servers": team.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 200,
                **own,
            }
        )
        self.client.subscribe(
            [TOPIC], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        given = {partition.partition for partition in partitions}
        for other in self.team.members:
            assert other is self or not other.owned & given, "a partition has two owners"
        self.owned |= given

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.owned -= {partition.partition for partition in partitions}


class Team:
    """The members of the group, and a producer that sends while they read."""

    def __init__(self, bootstrap: str, assignor: str) -> None:
        self.bootstrap = bootstrap
        self.assignor = assignor
        self.members: list[Member] = []
        self.sent = 0
        self.seen: set[int] = set()
        self._through: Producer = producer(bootstrap, reconnect_backoff_max_ms=200)

    def replace(self, protocol: str) -> None:
        """The oldest member leaves, and one of this protocol comes in its place."""
        if len(self.members) == MEMBERS:
            self.members.pop(0).client.close()
        self.members.append(Member(self, protocol))

    def work(self) -> None:
        for _ in range(5):
            self._through.produce(TOPIC, str(self.sent).encode(), partition=self.sent % PARTITIONS)
            self.sent += 1
        self._through.poll(0)
        for member in self.members:
            for message in member.client.consume(50, timeout=0.02):
                self.seen.add(int(good(message).value() or b""))

    def settle(self) -> None:
        def shared() -> bool:
            self.work()
            return all(m.owned for m in self.members) and sum(len(m.owned) for m in self.members) == 6

        until(shared, f"{len(self.members)} members share {PARTITIONS} partitions")

    def finish(self) -> None:
        """All that was sent has been read, and all of it is committed."""
        assert self._through.flush(PATIENCE_S) == 0

        def all_read() -> bool:
            for member in self.members:
                for message in member.client.consume(500, timeout=0.05):
                    self.seen.add(int(good(message).value() or b""))
            return len(self.seen) == self.sent

        until(all_read, f"all of {self.sent} messages are read")
        for member in self.members:
            member.client.close()
        with consumer(self.bootstrap, GROUP) as onlooker:
            places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
            committed = {one.partition: one.offset for one in onlooker.committed(places, timeout=10)}
            ends = {one.partition: onlooker.get_watermark_offsets(one, timeout=10)[1] for one in places}
        assert committed == ends


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_group_changes_its_protocol_member_by_member_and_loses_nothing(running: Node, assignor: str) -> None:
    team = Team(running.bootstrap, assignor)
    for _ in range(MEMBERS):
        team.replace("classic")
    team.settle()
    for protocol in ("consumer", "classic"):
        for number in range(MEMBERS):
            team.replace(protocol)
            team.settle()
            if number == 0:
                assert _type(running) is ConsumerGroupType.CONSUMER, "the group has both kinds of members"
                running.kill()
                running.start()
                team.settle()
        assert _type(running) is ConsumerGroupType[protocol.upper()]
    team.finish()


def _type(running: Node) -> ConsumerGroupType:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    (listed,) = admin.list_consumer_groups(request_timeout=10).result().valid
    return listed.type
