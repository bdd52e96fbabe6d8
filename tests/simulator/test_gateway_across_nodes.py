"""What a gateway does with receipts when the nodes that it talks to die: accepted is accepted (S4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from postroad.client import AckType, Client, Producer, owned_locks, subscriptions
from postroad.client.share_session import AckBatch, Terms
from postroad.config.sections import Http
from postroad.errors import CoordinatorLoadInProgress
from postroad.gateway.memory import Memory
from postroad.gateway.receiver import Received, Receiver
from postroad.gateway.settler import Settler
from postroad.gateway.topic_ids import TopicIds
from postroad.wire.messages import share_acknowledge, share_fetch
from simulator.process import Process
from simulator.runtime import ClientRuntime
from tests.simulator.cluster_client import is_whole, run
from tests.simulator.simulated_cluster import PORT, SimulatedCluster, host_of, simulated_cluster

NOT_LEADER = 6
TOPIC = QUEUE = "jobs"
LOCK_MS = 60_000
VERSION = 2


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    with simulated_cluster(topics_replicas=3, durability_flush="os") as running:
        running.until(lambda: is_whole(running))
        running.create_led_by(TOPIC, 3, 1, 2)
        run(running, _create_queue)
        yield running


async def _create_queue(client: Client) -> None:
    config = {"postroad.topics": TOPIC, "share.auto.offset.reset": "earliest"}
    await subscriptions.alter_config(client, QUEUE, config)


class Gateway:
    """The gateway's receiver and settler on a machine of their own, for one queue."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.process = Process(cluster.world, "gateway")
        bootstrap = ",".join(f"{machine.host}:{PORT}" for machine in cluster.machines.values())
        runtime = ClientRuntime(self.process, cluster.network)
        self.client = Client(bootstrap, client_id="gateway", runtime=runtime)
        self.settler = Settler(self.client, TopicIds(self.client))
        self.receiver = Receiver(self.client, QUEUE, self._topics, self.settler.settle, Memory(Http()))

    async def _topics(self) -> list[str]:
        return [TOPIC]

    def start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self.process.start(work)
        return task

    def do(self, work: Any, within_s: float = 60.0) -> Any:
        task = self.start(work)
        self.cluster.until(task.done, within_s)
        return task.result()

    async def publish(self, count: int) -> None:
        async with Producer(self.client) as producer:
            for number in range(count):
                await producer.send(TOPIC, b"%d" % number)

    async def receive(self, count: int, wait_ms: int = 5_000) -> list[Received]:
        received: list[Received] = []
        while len(received) < count:
            more = await self.receiver.receive(count - len(received), wait_ms, LOCK_MS)
            if not more:
                break
            received += more
        return received

    async def accept(self, received: list[Received]) -> list[Any]:
        return list(await self.settler.settle([each.receipt for each in received], AckType.ACCEPT))


@pytest.fixture
def gateway(cluster: SimulatedCluster) -> Iterator[Gateway]:
    found = Gateway(cluster)
    yield found
    found.do(found.receiver.close())


def is_loaded(cluster: SimulatedCluster, number: int) -> bool:
    topic = cluster.nodes[number].image.topics[TOPIC]
    return cluster.nodes[number].subscriptions.queue(QUEUE, topic.id, 0) is not None


def test_receipts_are_good_at_the_next_leader(cluster: SimulatedCluster, gateway: Gateway) -> None:
    gateway.do(gateway.publish(10))
    received = gateway.do(gateway.receive(10))
    assert [each.message.value for each in received] == [b"%d" % number for number in range(10)]
    cluster.kill(3)
    assert gateway.do(gateway.accept(received)) == [None] * 10
    assert gateway.do(gateway.receive(1, wait_ms=3_000)) == []


def test_a_settlement_goes_to_whoever_leads_by_then(cluster: SimulatedCluster, gateway: Gateway) -> None:
    """The gateway's own memory of the leader is out of date, and the former leader lives on."""
    gateway.do(gateway.publish(4))
    received = gateway.do(gateway.receive(4))
    cluster.kill(3)
    cluster.until(lambda: cluster.state(TOPIC).leader in (1, 2))
    cluster.start(3)
    cluster.until(lambda: not cluster.leads(3, TOPIC))
    began = cluster.world.now
    assert gateway.do(gateway.accept(received)) == [None] * 4
    assert cluster.world.now - began < 2.0


def test_an_accept_whose_answer_got_lost_is_done_when_it_is_repeated(
    cluster: SimulatedCluster, gateway: Gateway
) -> None:
    gateway.do(gateway.publish(4))
    received = gateway.do(gateway.receive(4))
    cluster.network.cut(host_of(3), gateway.process.host, one_way=True)
    accepting = gateway.start(gateway.accept(received))
    cluster.run_for(0.5)
    assert not accepting.done(), "it is written down, and the gateway does not know"
    cluster.kill(3)
    cluster.until(accepting.done)
    assert accepting.result() == [None] * 4
    assert gateway.do(gateway.receive(1, wait_ms=3_000)) == []


def test_what_another_has_by_now_is_refused(cluster: SimulatedCluster, gateway: Gateway) -> None:
    gateway.do(gateway.publish(2))
    received = gateway.do(gateway.receive(2))
    cluster.kill(3)
    again = gateway.do(gateway.receive(2, wait_ms=10_000))
    assert len(again) == 2, "locks are gone with the leader: they come again"
    assert all(outcome is not None for outcome in gateway.do(gateway.accept(received)))
    assert gateway.do(gateway.accept(again)) == [None] * 2


def test_while_a_ledger_is_loaded_nothing_is_taken_for_gone(
    cluster: SimulatedCluster, gateway: Gateway
) -> None:
    """A standard queue of SQS answers that a message which is gone is deleted: it must not come back."""
    gateway.do(gateway.publish(2))
    first, second = gateway.do(gateway.receive(2))
    cluster.network.cut(host_of(2), host_of(3))
    accepting = gateway.start(gateway.accept([first]))
    cluster.run_for(0.3)  # node 1 has it, node 2 has not: it is not committed
    cluster.network.cut(host_of(1), host_of(2))
    cluster.kill(3)
    cluster.until(lambda: cluster.leads(1, TOPIC))
    assert not is_loaded(cluster, 1), "it waits for the other replica"
    where = second.receipt.topic_id, second.receipt.partition
    said = {where: [AckBatch(second.receipt.offset, second.receipt.offset, AckType.ACCEPT)]}
    owner = second.receipt.owner.hex()
    refused = gateway.do(owned_locks.settle(gateway.client, 1, QUEUE, owner, said, Terms()))
    assert [type(error) for error in refused.values()] == [CoordinatorLoadInProgress]
    cluster.network.heal()
    assert gateway.do(gateway.accept([second])) == [None]
    cluster.until(accepting.done)
    assert accepting.result() == [None]
    assert gateway.do(gateway.receive(1, wait_ms=3_000)) == []


def test_members_of_a_share_group_hear_who_leads_instead(cluster: SimulatedCluster) -> None:
    topic_id, epoch = cluster.nodes[1].image.topics[TOPIC].id, cluster.state(TOPIC).leader_epoch
    batch = share_acknowledge.AcknowledgementBatch(0, 0, [1])
    partition = share_acknowledge.AcknowledgePartition(0, [batch])
    acknowledged = share_acknowledge.ShareAcknowledgeRequest(
        group_id=QUEUE,
        member_id="member",
        share_session_epoch=1,
        topics=[share_acknowledge.AcknowledgeTopic(topic_id, [partition])],
    )
    began = cluster.world.now
    with cluster.connect(1) as connection:
        answers = [
            connection.call(share_fetch, VERSION, fetch_of(cluster, max_wait_ms=5_000)),
            connection.call(share_acknowledge, VERSION, acknowledged),
        ]
    assert cluster.world.now - began < 1.0, "there is no reason to wait at the wrong node"
    for answer in answers:
        [refused] = answer.responses[0].partitions
        assert refused.error_code == NOT_LEADER
        assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (3, epoch)
        assert [(n.node_id, n.host, n.port, n.rack) for n in answer.node_endpoints] == [
            (3, host_of(3), PORT, "rack-3")
        ]


def test_who_waits_at_a_leader_that_steps_down_hears_of_it(cluster: SimulatedCluster) -> None:
    cluster.kill(3)
    cluster.until(lambda: cluster.state(TOPIC).leader in cluster.nodes)
    leader = cluster.state(TOPIC).leader
    cluster.until(lambda: cluster.leads(leader, TOPIC) and is_loaded(cluster, leader))
    with cluster.connect(leader) as connection:
        answered = connection.begin(share_fetch, VERSION, fetch_of(cluster, max_wait_ms=300_000))
        cluster.run_for(0.2)
        cluster.start(3)  # it is the preferred leader, and leads again when it has caught up
        cluster.until(lambda: cluster.leads(3, TOPIC), 60)
        answer = answered()
    [refused] = answer.responses[0].partitions
    assert refused.error_code == NOT_LEADER


def fetch_of(cluster: SimulatedCluster, max_wait_ms: int) -> share_fetch.ShareFetchRequest:
    """A member's first fetch."""
    topic_id = cluster.nodes[1].image.topics[TOPIC].id
    return share_fetch.ShareFetchRequest(
        group_id=QUEUE,
        member_id="member",
        share_session_epoch=0,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=10,
        batch_size=10,
        topics=[share_fetch.FetchTopic(topic_id, [share_fetch.FetchPartition(0)])],
    )
