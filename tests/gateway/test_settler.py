"""Settlements of many messages at once: each gets its own answer."""

from __future__ import annotations

import asyncio

import pytest

from postroad.client import topics
from postroad.client.share_message import AckType
from postroad.errors import InvalidRecordState, NotLeaderOrFollower
from postroad.gateway import settler
from postroad.gateway.gateway import Message
from postroad.gateway.receipts import Receipt
from postroad.gateway.settler import Settler
from postroad.gateway.topic_ids import TopicIds
from tests.gateway.cluster import Cluster
from tests.gateway.conftest import RunningGateway, StartGateway


@pytest.fixture(scope="module")
def running(start_gateway: StartGateway) -> RunningGateway:
    return start_gateway([])


async def receipts_of(
    running: RunningGateway, name: str, fetches: list[int], partitions: int = 1
) -> list[Receipt]:
    """Receipts of messages that came in several fetches, so that several owners hold them."""
    gateway = running.gateway
    await topics.create(gateway.client, name, partitions=partitions)
    await gateway.directory.create(name, [name], {"share.auto.offset.reset": "earliest"})
    await gateway.publish(name, [Message(b"%d" % n, b"%d" % n) for n in range(sum(fetches))])
    receipts: list[Receipt] = []
    for wanted in fetches:
        got = 0
        while got < wanted:
            received = await gateway.receive(name, wanted - got, 10_000, lock_ms=600_000)
            assert received
            got += len(received)
            receipts += [each.receipt for each in received]
    return receipts


def test_those_that_are_not_held_are_found_among_those_that_are(running: RunningGateway, name: str) -> None:
    async def work() -> None:
        gateway = running.gateway
        receipts = await receipts_of(running, name, [40, 1, 30], partitions=3)
        lost = [receipts[3], receipts[17], receipts[18], receipts[40], receipts[-1]]
        assert await gateway.settle(lost, AckType.ACCEPT) == [None] * len(lost)
        outcomes = await gateway.settle(receipts, AckType.ACCEPT)
        failed = [receipt for receipt, outcome in zip(receipts, outcomes, strict=True) if outcome is not None]
        assert failed == lost
        assert all(isinstance(outcome, InvalidRecordState) for outcome in outcomes if outcome is not None)
        assert await gateway.receive(name, 100, 0) == []

    running.run(work())


def test_a_receipt_that_is_named_twice_is_settled_once_and_both_are_told(
    running: RunningGateway, name: str
) -> None:
    async def work() -> None:
        receipts = await receipts_of(running, name, [2])
        assert await running.gateway.settle([*receipts, receipts[0]], AckType.ACCEPT) == [None] * 3

    running.run(work())


def test_what_one_partition_refuses_is_not_forgotten_while_another_is_asked_again() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 1])
        moving, refusing = cluster.topics["jobs"]
        owner = b"o" * 16
        for partition, count in ((moving, 1), (refusing, 3)):
            for _ in range(count):
                partition.publish()
            partition.acquire(count, owner.hex(), 30_000)
        del refusing.held[1]  # its lock has ended
        moving.error = NotLeaderOrFollower.code
        topic = await cluster.topic("jobs")
        receipts = [Receipt("workers", topic.id, 0, 0, owner, 1)]
        receipts += [Receipt("workers", topic.id, 1, offset, owner, 1) for offset in range(3)]
        settling = asyncio.ensure_future(Settler(cluster, TopicIds(cluster)).settle(receipts, AckType.ACCEPT))
        await asyncio.sleep(0.1)
        moving.error = 0
        outcomes = await settling
        assert [type(outcome) for outcome in outcomes] == [
            type(None),
            type(None),
            InvalidRecordState,
            type(None),
        ]
        assert not moving.held
        assert not refusing.held

    asyncio.run(work())


def test_what_one_partition_refuses_is_said_though_another_never_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settler, "TRY_S", 1.0)

    async def work() -> None:
        cluster = Cluster(jobs=[1, 1])
        lost, sound = cluster.topics["jobs"]
        owner = b"o" * 16
        for _ in range(2):
            sound.publish()
        sound.acquire(1, owner.hex(), 30_000)
        lost.error = NotLeaderOrFollower.code
        topic = await cluster.topic("jobs")
        places = [(0, 0), (1, 0), (1, 1)]
        receipts = [Receipt("workers", topic.id, *place, owner, 1) for place in places]
        outcomes = await Settler(cluster, TopicIds(cluster)).settle(receipts, AckType.ACCEPT)
        assert [type(each) for each in outcomes] == [NotLeaderOrFollower, type(None), InvalidRecordState]
        assert not sound.held

    asyncio.run(work())


def test_nothing_to_settle_is_no_error(running: RunningGateway) -> None:
    assert running.run(running.gateway.settle([], AckType.ACCEPT)) == []
