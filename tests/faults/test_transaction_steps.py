"""kill -9 of a node at each step of a transaction: it is whole when the node is back, as it was asked for."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from postroad.client import Client, TopicPartition, groups, offsets, topics
from postroad.client.groups import OPERATOR
from postroad.client.offsets import READ_COMMITTED, READ_UNCOMMITTED
from postroad.client.transaction_admin import list_all
from postroad.client.transactions import TransactionalProducer
from postroad.testing import Node
from tests.clients.wait import until_async
from tests.faults.dying_node import STEPS
from tests.spark import plain

TOPIC, GROUP, ID = "t", "g", "worker"
COMPLETE = "CompleteCommit"
PARTS = [TopicPartition(TOPIC, number) for number in range(2)]
QUICK = ("Prepare is staged", "a marker is committed", "Complete is staged")


class DyingNode(Node):
    step = ""

    def _command(self, command: list[str]) -> list[str]:
        if not self.step:
            return command
        assert command[1:3] == ["-m", "postroad"]
        return [sys.executable, "-m", "tests.faults.dying_node", self.step, *command[3:]]


async def transact(node: DyingNode, step: str, own_epochs: bool, commit: bool) -> None:
    """The node dies within the second transaction, and is started again; all three end as they should."""
    async with Client(node.bootstrap, timeout_s=60.0) as client:
        await topics.create(client, TOPIC, partitions=2)
        producer = await TransactionalProducer.begin(client, ID, own_epochs=own_epochs)
        await fill(producer, b"first", 1)
        await producer.commit()
        await until_async(lambda: list_all(client, [COMPLETE]), "the first one is complete")
        node.stop()
        node.step = step
        node.start()
        node.step = ""
        ending = asyncio.create_task(end(producer, commit))
        process = node._process
        assert process is not None
        await asyncio.to_thread(process.wait, 60)
        node.start()
        await ending
        await fill(producer, b"third", 3)
        await producer.commit()
        await until_async(lambda: is_stable(client), "nothing is open")
        assert await groups.committed(client, GROUP, PARTS[:1], stable=True) == {PARTS[0]: 3}
        producer.close()


async def end(producer: TransactionalProducer, commit: bool) -> None:
    await fill(producer, b"second", 2)
    await (producer.commit() if commit else producer.abort())


async def fill(producer: TransactionalProducer, value: bytes, offset: int) -> None:
    for part in PARTS:
        await producer.send(part, [value])
    await producer.send_offsets(GROUP, {PARTS[0]: offset}, OPERATOR)


async def is_stable(client: Client) -> bool:
    stable = await offsets.latest(client, PARTS, READ_COMMITTED)
    return stable == await offsets.latest(client, PARTS, READ_UNCOMMITTED)


def read_committed(bootstrap: str) -> list[list[bytes | None]]:
    rows = plain.read_all(bootstrap, TOPIC, "read_committed")
    return [[row.value for row in rows if row.partition == part.partition] for part in PARTS]


def run(home: Path, step: str, own_epochs: bool, commit: bool) -> None:
    node = DyingNode(home)
    try:
        node.start()
        asyncio.run(transact(node, step, own_epochs, commit))
        expected = [b"first", b"second", b"third"] if commit else [b"first", b"third"]
        assert read_committed(node.bootstrap) == [expected, expected]
    finally:
        node.kill()


@pytest.mark.parametrize("step", QUICK)
def test_a_transaction_is_whole_when_its_node_dies_at_a_step(tmp_path: Path, step: str) -> None:
    run(tmp_path, step, own_epochs=True, commit=True)


@pytest.mark.cluster_slow
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
@pytest.mark.parametrize("own_epochs", [True, False], ids=["own epochs", "one epoch"])
@pytest.mark.parametrize("step", STEPS)
def test_each_transaction_is_whole_at_each_step(
    tmp_path: Path, step: str, own_epochs: bool, commit: bool
) -> None:
    run(tmp_path, step, own_epochs, commit)
