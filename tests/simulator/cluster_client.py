"""A client of a simulated cluster, which finds its way among the nodes, and what it waits for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from postroad.client.client import Client
from simulator.process import Process
from simulator.runtime import ClientRuntime
from tests.simulator.simulated_cluster import PORT, SimulatedCluster

WORK_S = 120.0
T = TypeVar("T")


def run(cluster: SimulatedCluster, work: Callable[[Client], Awaitable[T]]) -> T:
    """What the work returns, done by a client on a machine of its own."""
    process = Process(cluster.world, "worker")
    bootstrap = ",".join(f"{machine.host}:{PORT}" for machine in cluster.machines.values())
    runtime = ClientRuntime(process, cluster.network)

    async def done() -> T:
        async with Client(bootstrap, client_id=process.name, timeout_s=30.0, runtime=runtime) as client:
            return await work(client)

    task = process.start(done())
    cluster.until(task.done, WORK_S)
    return task.result()


def is_whole(cluster: SimulatedCluster) -> bool:
    """Whether groups would survive the loss of a node."""
    return all(
        len(state.isr) == len(cluster.machines)
        for node in cluster.nodes.values()
        for topic in node.image.topics.values()
        if topic.internal
        for state in topic.partitions
    )


def leaders(cluster: SimulatedCluster, topic: str) -> list[int]:
    """The leader of each partition, as the nodes see it."""
    node = next(iter(cluster.nodes.values()))
    return [state.leader for state in node.image.topics[topic].partitions]


def coordinator(cluster: SimulatedCluster, group: str) -> int:
    return next(iter(cluster.nodes.values())).groups.leader_of(group)
