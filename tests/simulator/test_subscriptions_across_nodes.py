"""Subscriptions over partitions that several nodes lead: they work as on one node."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from postroad.broker.subscriptions.orders import Order
from postroad.client import (
    AckType,
    Client,
    Producer,
    ShareConsumer,
    TopicPartition,
    groups,
    offsets,
    subscriptions,
    topics,
)
from postroad.client.redrive import Redrive
from postroad.cluster import keys
from postroad.cluster.image import NO_LEADER
from postroad.cluster.store import Delete, Put
from postroad.errors import GroupIdNotFound, NotCoordinator
from postroad.wire.messages import delete_groups, incremental_alter_configs
from postroad.wire.peer import ResetLedger
from postroad.wire.subscription_names import default_dead_letter_topic
from tests.broker.test_queues import GROUP_RESOURCE, SET
from tests.simulator.cluster_client import coordinator, is_whole, leaders, run
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

PARTITIONS = 6
POLLS_MAX = 50


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3) as running:
        running.until(lambda: is_whole(running))
        run(running, _create_topic)
        assert set(leaders(running, "jobs")) == {1, 2, 3}
        yield running


async def _create_topic(client: Client) -> None:
    await topics.create(client, "jobs", partitions=PARTITIONS)


async def publish(client: Client, topic: str, count: int, partitions: int = PARTITIONS) -> None:
    producer = Producer(client)
    for number in range(count):
        await producer.send(topic, b"%d" % number, partition=number % partitions)
    await producer.flush()


async def take(
    client: Client, group: str, topic: str, count: int, outcome: AckType = AckType.ACCEPT
) -> Counter[bytes | None]:
    """Poll until so many messages were taken, and settle them."""
    taken: Counter[bytes | None] = Counter()
    async with ShareConsumer(client, group, [topic]) as consumer:
        for _ in range(POLLS_MAX):
            for message in await consumer.poll():
                taken[message.value] += 1
                consumer.acknowledge(message, outcome)
            assert await consumer.commit() == []
            if taken.total() >= count:
                break
    return taken


def test_a_subscription_by_configs_holds_what_is_published_after_its_answer(
    cluster: SimulatedCluster,
) -> None:
    async def work(client: Client) -> Counter[bytes | None]:
        await publish(client, "jobs", 12)
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "latest"}
        await subscriptions.alter_config(client, "workers", config)
        found = await subscriptions.positions(client, "workers")
        assert found == {TopicPartition("jobs", index): (2, 0) for index in range(PARTITIONS)}
        await publish(client, "jobs", 30)
        return await take(client, "workers", "jobs", 30)

    assert run(cluster, work) == {b"%d" % number: 1 for number in range(30)}


def test_a_member_gets_what_is_published_after_it_has_joined(cluster: SimulatedCluster) -> None:
    async def work(client: Client) -> Counter[bytes | None]:
        await publish(client, "jobs", 12)
        taken: Counter[bytes | None] = Counter()
        async with ShareConsumer(client, "fresh", ["jobs"]) as consumer:
            found = await subscriptions.positions(client, "fresh")
            assert len(found) == PARTITIONS, "its ledgers are there before it asks for messages"
            await publish(client, "jobs", 30)
            for _ in range(POLLS_MAX):
                taken.update(message.value for message in await consumer.poll())
                if taken.total() >= 30:
                    break
        return taken

    assert run(cluster, work) == {b"%d" % number: 1 for number in range(30)}


def test_offsets_are_described_moved_and_forgotten_whoever_leads(cluster: SimulatedCluster) -> None:
    async def work(client: Client) -> None:
        await publish(client, "jobs", 30)
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        assert sum(found.lag for found in (await subscriptions.positions(client, "workers")).values()) == 30
        await take(client, "workers", "jobs", 30)
        assert sum(found.lag for found in (await subscriptions.positions(client, "workers")).values()) == 0
        moved = {TopicPartition("jobs", index): 3 for index in range(PARTITIONS)}
        await subscriptions.move(client, "workers", moved)
        assert sum(found.lag for found in (await subscriptions.positions(client, "workers")).values()) == 12
        assert (await take(client, "workers", "jobs", 12)).total() == 12
        await subscriptions.forget(client, "workers", ["jobs"])
        assert await subscriptions.positions(client, "workers") == {}

    run(cluster, work)


def test_a_subscription_is_listed_once_and_deleted_everywhere(cluster: SimulatedCluster) -> None:
    async def work(client: Client) -> None:
        await take(client, "passing", "jobs", 0)
        assert [group.group for group in await subscriptions.list_all(client)] == ["passing"]
        assert (await subscriptions.describe(client, "passing")).state == "Empty"
        await subscriptions.delete(client, "passing")
        assert await subscriptions.list_all(client) == []
        with pytest.raises(GroupIdNotFound):
            await subscriptions.describe(client, "passing")

    run(cluster, work)
    for node in cluster.nodes.values():
        assert node.subscriptions.ledgers("passing") == []


def test_partitions_that_come_later_are_held_from_their_first_message(cluster: SimulatedCluster) -> None:
    async def work(client: Client) -> Counter[bytes | None]:
        await take(client, "passing", "jobs", 0)  # a subscription without configs, and without members now
        await topics.add_partitions(client, "jobs", 2 * PARTITIONS)
        client.forget("jobs")
        await publish(client, "jobs", 24, 2 * PARTITIONS)
        return await take(client, "passing", "jobs", 24)

    assert run(cluster, work) == {b"%d" % number: 1 for number in range(24)}


def test_a_topic_is_held_though_its_leader_was_dead_when_it_was_named(cluster: SimulatedCluster) -> None:
    """And so is, a moment later, whoever would have told the next leader of it."""
    cluster.create_led_by("late", 1, 2, 3)
    cluster.publish("late", b"before")
    cluster.until(lambda: all(cluster.replica_end(number, "late") == 1 for number in cluster.nodes))
    given = {"share.auto.offset.reset": "latest", "postroad.topics": "late"}
    changes = [incremental_alter_configs.AlterableConfig(name, SET, value) for name, value in given.items()]
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, "workers", changes)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource], False)
    with cluster.connect(2) as connection:
        cluster.kill(1)
        connection.begin(incremental_alter_configs, 1, request)
        cluster.until(lambda: "workers" in cluster.nodes[3].image.groups)
        assert cluster.state("late").leader == 1
        cluster.kill(2)
    cluster.until(lambda: cluster.leads(3, "late"))
    cluster.publish("late", b"after", acks=1)
    cluster.start(2)  # one replica alone takes no changes
    cluster.until(lambda: cluster.nodes[3].subscriptions.ledgers("workers"))
    assert cluster.nodes[3].subscriptions.ledgers("workers")[0].start <= 1


def test_a_config_that_an_image_that_is_behind_shows_already_is_set_all_the_same(
    cluster: SimulatedCluster,
) -> None:
    """Another node has just deleted it: "nothing to do" would be answered with success, and be wrong."""
    change = incremental_alter_configs.AlterableConfig("share.record.lock.duration.ms", SET, "2000")
    resource = incremental_alter_configs.AlterConfigsResource(GROUP_RESOURCE, "workers", [change])
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource], False)
    cluster.call(1, incremental_alter_configs, 1, request)
    cluster.until(lambda: "workers" in cluster.nodes[2].image.groups)
    with cluster.connect(2) as connection:
        cluster.store.faults.watch_lag_s = 2.0
        cluster.store.commit([], [Delete(keys.group_key("workers"))])
        connection.begin(incremental_alter_configs, 1, request)
        cluster.run_for(0.01)
        assert "workers" in cluster.nodes[2].image.groups
        cluster.store.faults.watch_lag_s = 0.0
        cluster.run_for(5)
    expected = {"share.record.lock.duration.ms": "2000"}
    assert [node.image.groups.get("workers") for node in cluster.nodes.values()] == [expected] * 3


def test_a_subscription_is_deleted_with_configs_that_its_coordinator_has_not_heard_of(
    cluster: SimulatedCluster,
) -> None:
    """Else they would come round after the answer, and name its topics again."""

    async def begin(client: Client) -> None:
        await take(client, "workers", "jobs", 0)

    run(cluster, begin)
    with cluster.connect(coordinator(cluster, "workers")) as connection:
        cluster.store.faults.watch_lag_s = 2.0
        config = keys.encode(keys.GroupValue({"postroad.topics": "jobs"}))
        cluster.store.commit([], [Put(keys.group_key("workers"), config)])
        connection.begin(delete_groups, 2, delete_groups.DeleteGroupsRequest(["workers"]))
        cluster.run_for(0.1)
        assert not any("workers" in node.image.groups for node in cluster.nodes.values())
        cluster.store.faults.watch_lag_s = 0.0
        cluster.run_for(5)
    assert not any("workers" in node.image.groups for node in cluster.nodes.values())
    assert [node.subscriptions.ledgers("workers") for node in cluster.nodes.values()] == [[]] * 3


@pytest.mark.parametrize("killed", ["coordinator", "leader"])
def test_a_subscription_survives_the_death_of_a_node(cluster: SimulatedCluster, killed: str) -> None:
    async def begin(client: Client) -> None:
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        await publish(client, "jobs", 30)
        assert (await take(client, "workers", "jobs", 30)).total() == 30
        await publish(client, "jobs", 30)

    async def go_on(client: Client) -> Counter[bytes | None]:
        taken = await take(client, "workers", "jobs", 30)
        assert sum(found.lag for found in (await subscriptions.positions(client, "workers")).values()) == 0
        return taken

    run(cluster, begin)
    coordinating = coordinator(cluster, "workers")
    others = [number for number in cluster.nodes if number != coordinating]
    cluster.kill(coordinating if killed == "coordinator" else others[0])
    taken = run(cluster, go_on)
    assert taken == {b"%d" % number: 1 for number in range(30)}


def test_no_partition_is_left_out_while_leaders_are_elected(cluster: SimulatedCluster) -> None:
    """A purge that left partitions out would leave messages."""
    seen: list[int] = []

    async def begin(client: Client) -> None:
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        await publish(client, "jobs", 30)

    async def look(client: Client) -> None:
        for _ in range(100):
            seen.append(len(await subscriptions.positions(client, "workers")))
            names = [group.group for group in await subscriptions.list_all(client)]
            assert names == ["workers"]
            if len(seen) == 10:
                others = [number for number in cluster.nodes if number != coordinator(cluster, "workers")]
                cluster.kill(others[0])
            await asyncio.sleep(0.02)

    run(cluster, begin)
    run(cluster, look)
    assert set(seen) == {PARTITIONS}


def test_a_redrive_goes_on_when_the_letters_have_another_leader(cluster: SimulatedCluster) -> None:
    letters = default_dead_letter_topic("workers")

    async def work(client: Client) -> Counter[bytes | None]:
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        await publish(client, "jobs", 30)
        await take(client, "workers", "jobs", 30, AckType.REJECT)
        while sum((await offsets.latest(client, [TopicPartition(letters, 0)])).values()) < 30:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        redrive = Redrive(client, letters, rate=20)
        running = asyncio.create_task(redrive.run(lambda seen, total: None))
        while not redrive.report.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        cluster.kill(leaders(cluster, letters)[0])
        report = await running
        assert report.sent >= 30, "what could not be struck off is sent again"
        return await take(client, "workers", "jobs", 30)

    assert set(run(cluster, work)) == {b"%d" % number for number in range(30)}


def test_dead_letters_go_to_the_leader_of_their_topic(cluster: SimulatedCluster) -> None:
    async def work(client: Client) -> Counter[bytes | None]:
        config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        await publish(client, "jobs", 30)
        await take(client, "workers", "jobs", 30, AckType.REJECT)
        await subscriptions.alter_config(
            client, "undertaker", {"postroad.topics": letters, "share.auto.offset.reset": "earliest"}
        )
        return await take(client, "undertaker", letters, 30)

    letters = default_dead_letter_topic("workers")
    assert run(cluster, work) == {b"%d" % number: 1 for number in range(30)}
    assert len(leaders(cluster, letters)) == 1, "letters of all leaders have gone to one"


@pytest.mark.parametrize("group", ["a", "b", "c", "d"])  # of several coordinators
def test_messages_stay_until_groups_of_all_coordinators_have_passed_them(group: str) -> None:
    def starts(running: SimulatedCluster) -> list[int]:
        """The first offset of each partition, at its leader."""
        numbered = enumerate(leaders(running, "kept"))
        return [
            running.nodes[leader].partitions.lead("kept", index).log.start_offset
            for index, leader in numbered
        ]

    async def begin(client: Client) -> None:
        kept = {"postroad.retention": "acknowledged", "postroad.retention.groups": "true"}
        await topics.create(client, "kept", partitions=3, config=kept)
        config = {"postroad.topics": "kept", "share.auto.offset.reset": "earliest"}
        await subscriptions.alter_config(client, "workers", config)
        await publish(client, "kept", 30, 3)
        await groups.commit(client, group, {TopicPartition("kept", index): 2 for index in range(3)})
        await take(client, "workers", "kept", 30)

    async def go_on(client: Client) -> None:
        await groups.commit(client, group, {TopicPartition("kept", index): 7 for index in range(3)})

    with simulated_cluster(topics_replicas=3, storage_retention_check_ms=1000) as running:
        running.until(lambda: is_whole(running))
        run(running, begin)
        running.until(lambda: starts(running) == [2, 2, 2])
        running.run_for(5)
        assert starts(running) == [2, 2, 2]
        run(running, go_on)
        running.until(lambda: starts(running) == [7, 7, 7])


def test_a_change_that_comes_after_a_later_one_is_not_made(cluster: SimulatedCluster) -> None:
    config = {"postroad.topics": "jobs", "share.auto.offset.reset": "earliest"}

    async def begin(client: Client) -> None:
        await publish(client, "jobs", 30)
        await subscriptions.alter_config(client, "workers", config)

    run(cluster, begin)
    first = coordinator(cluster, "workers")
    index, leader = next(found for found in enumerate(leaders(cluster, "jobs")) if found[1] != first)
    where = cluster.nodes[first].image.topics["jobs"].id, index
    early, late = (cluster.nodes[first].subscriptions.orders.give("workers") for _ in range(2))

    def seek(asks: int, start: int, order: Order) -> None:
        question = ResetLedger("workers", where, start, *order)
        process = cluster.machines[asks].process
        assert process is not None
        asked = process.start(cluster.nodes[asks].peers.ask(leader, question))
        cluster.until(asked.done)
        asked.result()

    def start() -> int:
        return run(cluster, lambda client: subscriptions.positions(client, "workers"))[
            TopicPartition("jobs", index)
        ].start

    seek(first, 2, late)
    with pytest.raises(NotCoordinator):
        seek(first, 0, early)
    assert start() == 2
    before = cluster.nodes[first].groups.epoch_of("workers")
    cluster.kill(first)
    cluster.until(lambda: coordinator(cluster, "workers") not in (first, NO_LEADER))
    asks = next(number for number in cluster.nodes if number != leader)
    with pytest.raises(NotCoordinator):
        seek(asks, 0, Order(before, 1000))
    run(cluster, lambda client: subscriptions.move(client, "workers", {TopicPartition("jobs", index): 3}))
    assert start() == 3
