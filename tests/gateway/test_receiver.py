"""Receiving from several nodes: what each caller gets, and what becomes of what nobody gets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from postroad.client.metadata import NO_LEADER
from postroad.config.sections import Http
from postroad.errors import NotLeaderOrFollower, TopicAuthorizationFailed, UnknownTopicOrPartition
from postroad.gateway import receiver as receiver_module
from postroad.gateway.memory import Memory
from postroad.gateway.receiver import Received, Receiver
from postroad.gateway.settler import Settler
from postroad.gateway.topic_ids import TopicIds
from tests.clients.wait import until_async
from tests.gateway.cluster import Cluster

SOON_S = 30.0


@asynccontextmanager
async def receiving(
    cluster: Cluster, topics: list[str] | None = None, memory: Memory[object] | None = None
) -> AsyncIterator[Receiver]:
    async def names() -> list[str]:
        return topics or list(cluster.topics)

    settler = Settler(cluster, TopicIds(cluster))
    receiver = Receiver(cluster, "workers", names, settler.settle, memory or Memory(Http()))
    try:
        yield receiver
    finally:
        await receiver.close()


def values(received: list[Received]) -> list[bytes | None]:
    return [each.message.value for each in received]


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await work()

    asyncio.run(bounded())


def test_what_several_nodes_give_too_much_is_not_counted_as_delivered() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 2])
        first, second = cluster.topics["jobs"]
        first.publish()
        second.publish()
        async with receiving(cluster) as receiver:
            assert len(await receiver.receive(1, 1000, 30_000)) == 1
            await until_async(lambda: len(first.available) + len(second.available) == 1, "one is returned")
        assert first.deliveries[0] + second.deliveries[0] == 1

    run(work)


def test_what_comes_while_nobody_waits_is_returned_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "SLICE_S", SOON_S)  # the second node is still being asked

    async def work() -> None:
        cluster = Cluster(jobs=[1, 2])
        first, second = cluster.topics["jobs"]
        first.publish()
        async with receiving(cluster) as receiver:
            assert values(await receiver.receive(1, 30_000, 30_000)) == [b"jobs/0/0"]
            second.publish()
            await until_async(lambda: cluster.asked["ShareAcknowledge"], "it was handed out")
            await until_async(lambda: second.available == [0], "it is returned")
            assert second.deliveries[0] == 0
            assert values(await receiver.receive(1, 0, 30_000)) == [b"jobs/1/0"]

    run(work)


def test_short_receive_behind_a_slow_one_finds_what_is_there() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        partition.publish()
        partition.publish()
        cluster.slow_s = 3 * receiver_module.GLANCE_S
        async with receiving(cluster) as receiver:
            first = asyncio.ensure_future(receiver.receive(1, 0, 30_000))
            await until_async(lambda: partition.held, "the first one is held")
            assert values(await receiver.receive(1, 0, 30_000)) == [b"jobs/0/1"]
            assert values(await first) == [b"jobs/0/0"]

    run(work)


def test_short_receive_does_not_wait_with_a_long_one_whose_slice_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver_module, "SLICE_S", 0.1)
    monkeypatch.setattr(receiver_module, "GLANCE_S", 0.5)  # the slice ends meanwhile
    monkeypatch.setattr(receiver_module, "PATIENCE_S", 2 * SOON_S)

    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        async with receiving(cluster) as receiver:
            long = asyncio.ensure_future(receiver.receive(1, 120_000, 30_000))
            await until_async(lambda: receiver._under_way, "a node is asked")
            monkeypatch.setattr(receiver_module, "SLICE_S", 120.0)  # the next one
            async with asyncio.timeout(SOON_S):
                assert await receiver.receive(1, 0, 30_000) == []
            partition.publish()
            assert values(await long) == [b"jobs/0/0"]

    run(work)


def test_caller_has_the_lock_that_it_asked_for_whoever_the_fetch_was_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver_module, "LOCK_MS_MIN", 3_000)  # or it may end on the way to its caller

    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        async with receiving(cluster) as receiver:
            gone = asyncio.ensure_future(receiver.receive(1, 9_000, 3_000))
            await asyncio.sleep(0.05)
            gone.cancel()
            long = asyncio.ensure_future(receiver.receive(1, 9_000, 600_000))
            short = asyncio.ensure_future(receiver.receive(1, 9_000, 7))
            await asyncio.sleep(0.05)
            partition.publish()
            assert values(await long) == [b"jobs/0/0"]
            assert partition.held[0].lock_ms == 600_000
            partition.publish()
            assert values(await short) == [b"jobs/0/1"]
            assert partition.held[1].lock_ms == 7

    run(work)


@pytest.mark.parametrize("lock_ms", [1, 500, 999])
def test_receive_with_a_short_lock_and_no_wait_brings_what_is_there(lock_ms: int) -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        for _ in range(5):
            partition.publish()
        async with receiving(cluster) as receiver:
            assert len(await receiver.receive(5, 0, lock_ms)) == 5
            assert [held.lock_ms for held in partition.held.values()] == [lock_ms] * 5

    run(work)


def test_receive_without_a_lock_brings_what_is_there_each_time() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        partition.publish()
        async with receiving(cluster) as receiver:
            for count in (1, 2, 3):
                assert values(await receiver.receive(1, 0, 0)) == [b"jobs/0/0"]
                assert (partition.available, partition.deliveries[0]) == ([0], count)

    run(work)


def test_receive_is_not_given_up_while_its_lock_is_being_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "GLANCE_S", 1.0)  # no pause of a busy machine is so long

    async def work() -> None:
        cluster = Cluster(jobs=[1, 2])
        partition, _ = cluster.topics["jobs"]  # the other node is still being asked
        cluster.slow_acknowledge_s = 2 * receiver_module.GLANCE_S
        async with receiving(cluster) as receiver:
            gone = asyncio.ensure_future(receiver.receive(1, 9_000, 30_000))
            await until_async(lambda: len(receiver._waiting_at_nodes()) == 2, "both are asked")
            gone.cancel()
            short = asyncio.ensure_future(receiver.receive(1, 0, 500))
            await asyncio.sleep(0)
            partition.publish()
            assert values(await short) == [b"jobs/0/0"]

    run(work)


def test_message_whose_lock_has_ended_on_its_way_is_handed_to_nobody() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        cluster.slow_s = 1.1
        partition.publish()
        async with receiving(cluster) as receiver:
            waiting = asyncio.ensure_future(receiver.receive(1, 20_000, 1_000))
            await until_async(lambda: partition.held, "it is held")
            cluster.slow_s = 0
            await asyncio.sleep(1.2)
            assert not waiting.done()
            partition.publish()
            assert values(await waiting) == [b"jobs/0/1"]

    run(work)


def test_whoever_has_hung_up_gets_nothing_and_the_next_one_does() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        async with receiving(cluster) as receiver:
            gone = asyncio.ensure_future(receiver.receive(10, 20_000, 30_000, is_gone=lambda: True))
            here = asyncio.ensure_future(receiver.receive(10, 20_000, 30_000))
            await asyncio.sleep(0.05)
            partition.publish()
            assert values(await here) == [b"jobs/0/0"]
            assert await gone == []
        assert partition.deliveries[0] == 1

    run(work)


@pytest.mark.parametrize("error", [NotLeaderOrFollower, TopicAuthorizationFailed, UnknownTopicOrPartition])
def test_partition_that_fails_takes_no_message_of_others_along(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver_module, "SLICE_S", 0.1)

    async def work() -> None:
        cluster = Cluster(jobs=[1, 1])
        broken, sound = cluster.topics["jobs"]
        broken.error = error.code  # type: ignore[attr-defined]
        async with receiving(cluster) as receiver:
            sound.publish()
            assert values(await receiver.receive(1, 10_000, 30_000)) == [b"jobs/1/0"]
            asked = cluster.asked["ShareFetch"]
            waiting = asyncio.ensure_future(receiver.receive(1, 20_000, 30_000))
            await until_async(lambda: cluster.asked["ShareFetch"] > asked + 2, "the node is asked again")
            sound.publish()
            assert values(await waiting) == [b"jobs/1/1"]
            broken.error = 0
            broken.publish()
            assert values(await receiver.receive(1, 20_000, 30_000)) == [b"jobs/0/0"]

    run(work)


def test_partition_without_a_leader_does_not_stop_the_others_and_is_found_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def work() -> None:
        cluster = Cluster(jobs=[NO_LEADER, 2], others=[1])
        lost, sound = cluster.topics["jobs"]
        async with receiving(cluster, ["gone", "jobs", "others"]) as receiver:
            for n in range(50):
                sound.publish()
                assert values(await receiver.receive(1, 10_000, 30_000)) == [b"jobs/1/%d" % n]
            began = asyncio.get_running_loop().time()
            asked = cluster.asked["Metadata"]
            for n in range(50, 100):
                sound.publish()
                assert values(await receiver.receive(1, 10_000, 30_000)) == [b"jobs/1/%d" % n]
            took_s = asyncio.get_running_loop().time() - began
            assert cluster.asked["Metadata"] - asked <= 2 + 11 * took_s, "now and then, not with each receive"
            lost.leader = 1
            lost.publish()
            assert values(await receiver.receive(1, 20_000, 30_000)) == [b"jobs/0/0"]

    run(work)
    assert len([line for line in caplog.messages if "jobs: Partition 0 has no leader" in line]) == 1
    assert len([line for line in caplog.messages if "There is no topic gone" in line]) == 1


def test_node_that_is_away_holds_up_no_other() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 2])
        _, sound = cluster.topics["jobs"]
        cluster.away = {1}
        async with receiving(cluster) as receiver:
            began = asyncio.get_running_loop().time()
            for n in range(100):
                sound.publish()
                assert values(await receiver.receive(1, 10_000, 30_000)) == [b"jobs/1/%d" % n]
            assert asyncio.get_running_loop().time() - began < 5, "it would be 0.1 s each time"

    run(work)


def test_whoever_comes_while_an_idle_receiver_closes_its_connections_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiver_module, "IDLE_S", 0.05)

    async def work() -> None:
        cluster = Cluster(jobs=[1])
        (partition,) = cluster.topics["jobs"]
        cluster.slow_close_s = 0.2
        async with receiving(cluster) as receiver:
            assert await receiver.receive(1, 0, 30_000) == []
            await until_async(
                lambda: cluster.asked["ShareAcknowledge"] == 1, "its connection is being closed"
            )
            partition.publish()
            assert values(await receiver.receive(1, 10_000, 30_000)) == [b"jobs/0/0"]

    run(work)


def test_with_no_partition_at_all_a_receive_still_ends_in_time() -> None:
    async def work() -> None:
        async with receiving(Cluster(jobs=[NO_LEADER]), ["gone", "jobs"]) as receiver:
            assert await receiver.receive(1, 300, 30_000) == []

    run(work)


def test_queues_on_all_nodes_move_on_alike_and_hardly_anything_is_asked_for_in_vain() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 2, 3])
        partitions = cluster.topics["jobs"]
        for partition in partitions:
            for _ in range(30):
                partition.publish()
        async with receiving(cluster) as receiver:
            for _ in range(30):
                assert len(await receiver.receive(1, 1000, 30_000)) == 1
            held = sorted(len(partition.held) for partition in partitions)
            assert held[-1] - held[0] <= 2, "the first round asks all, and returns what nobody wants"
            assert cluster.asked["ShareFetch"] <= 30 + len(partitions)

    run(work)


def test_callers_that_wait_together_are_served_by_all_nodes() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 2, 3])
        partitions = cluster.topics["jobs"]
        for partition in partitions:
            for _ in range(60):
                partition.publish()
        async with receiving(cluster) as receiver:
            for _ in range(10):
                calls = [receiver.receive(2, 1000, 30_000) for _ in range(6)]
                assert [len(received) for received in await asyncio.gather(*calls)] == [2] * 6
            await until_async(
                lambda: sum(len(each.held) for each in partitions) == 120, "the rest is returned"
            )
            assert min(len(partition.held) for partition in partitions) >= 20

    run(work)


def test_a_node_whose_turn_it_is_and_that_is_silent_holds_up_nobody() -> None:
    async def work() -> None:
        cluster = Cluster(jobs=[1, 2])
        for partition in cluster.topics["jobs"]:
            for _ in range(10):
                partition.publish()
        async with receiving(cluster) as receiver:
            for _ in range(4):
                assert len(await receiver.receive(1, 1000, 30_000)) == 1
            cluster.silent.add(1)
            began = asyncio.get_running_loop().time()
            for _ in range(4):
                [each] = await receiver.receive(1, 30_000, 30_000)
                assert (each.message.value or b"").startswith(b"jobs/1/")
            assert asyncio.get_running_loop().time() - began < SOON_S / 3
            cluster.silent.clear()

    run(work)
