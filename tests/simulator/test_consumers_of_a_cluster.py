"""Our own consumer loses nothing, and waits for no more than it must, while nodes come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from postroad.client import EARLIEST, TopicPartition
from postroad.client.client import Client
from postroad.client.fetcher import Fetched, Fetcher
from postroad.errors import LeaderNotAvailable
from postroad.wire.messages import create_topics
from tests.simulator.cluster_client import run
from tests.simulator.simulated_cluster import SimulatedCluster, simulated_cluster

FIRST, SECOND = TopicPartition("jobs", 0), TopicPartition("jobs", 1)


def create(cluster: SimulatedCluster, *leaders: int) -> None:
    """A topic without copies, each of whose partitions lies on one of these nodes."""
    assignments = [
        create_topics.CreatableReplicaAssignment(index, [leader]) for index, leader in enumerate(leaders)
    ]
    result = cluster.create("jobs", num_partitions=-1, replication_factor=-1, assignments=assignments)
    assert result.error_code == 0, result.error_message


class InterruptedFetcher(Fetcher):
    """The first look-up after records have come fails."""

    def __init__(self, client: Client, error: type[BaseException]) -> None:
        super().__init__(client, reset=EARLIEST)
        self._error: type[BaseException] | None = error
        self._has_come = False

    async def _collect(self, tasks: list[asyncio.Task[list[Any]]], fetched: list[Fetched]) -> None:
        await super()._collect(tasks, fetched)
        self._has_come = bool(fetched)

    async def _ask(self) -> None:
        if self._has_come and self._error is not None:
            error, self._error = self._error, None
            raise error
        await super()._ask()


def read(cluster: SimulatedCluster, error: type[BaseException]) -> list[bytes | None]:
    async def work(client: Client) -> list[bytes | None]:
        fetcher = InterruptedFetcher(client, error)
        fetcher.seek({FIRST: 0})
        values: list[bytes | None] = []
        while len(values) < 2:
            try:
                for _, records, _ in await fetcher.next(1.0):
                    values += [record.value for record in records]
            except asyncio.CancelledError:
                continue
        await fetcher.close()
        return values

    return run(cluster, work)


@pytest.mark.parametrize("error", [LeaderNotAvailable, asyncio.CancelledError])
def test_records_that_came_are_returned_although_nobody_can_be_asked_for_more(
    error: type[BaseException],
) -> None:
    with simulated_cluster() as cluster:
        create(cluster, 1)
        cluster.publish("jobs", b"one", b"two")
        assert read(cluster, error) == [b"one", b"two"]


def test_a_partition_without_a_leader_does_not_hold_up_the_others() -> None:
    with simulated_cluster() as cluster:
        create(cluster, 1, 2)
        cluster.kill(2)
        cluster.until(lambda: cluster.state("jobs", 1).leader < 0)
        cluster.publish("jobs", b"one")

        async def work(client: Client) -> list[bytes | None]:
            fetcher = Fetcher(client, reset=EARLIEST)
            fetcher.seek({SECOND: 0, FIRST: 0})
            [(_, records, _)] = await fetcher.next(5.0)
            await fetcher.close()
            return [record.value for record in records]

        assert run(cluster, work) == [b"one"]
