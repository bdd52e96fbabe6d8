"""A verdict on its way to partitions of other nodes, which change meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from postroad.broker.transactions.participants import RETRY_S, Participants
from postroad.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from postroad.transactions.transaction import Transaction, TransactionState
from postroad.wire.messages import write_txn_markers as codec

ME, OTHER = 1, 2
COORDINATOR_EPOCH = 3
GONE, KEPT = bytes(15) + b"\1", bytes(15) + b"\2"
PREPARED = Transaction(
    state=TransactionState.PREPARE_COMMIT,
    producer_id=7,
    epoch=0,
    timeout_ms=1000,
    changed_ms=0,
    partitions={GONE.hex(): [0], KEPT.hex(): [0, 1]},
)


class Elsewhere:
    """Another node that leads everything, and answers with the errors that a test wants, by topic."""

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}
        self.asked: list[list[tuple[str, int]]] = []

    async def call(self, node_id: int, api: Any, request: codec.WriteTxnMarkersRequest) -> Any:
        (marker,) = request.markers
        self.asked.append(
            [(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
        )
        results = [
            codec.WritableTxnMarkerTopicResult(
                topic.name,
                [
                    codec.WritableTxnMarkerPartitionResult(index, self.errors.get(topic.name, 0))
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        return codec.WriteTxnMarkersResponse([codec.WritableTxnMarkerResult(marker.producer_id, results)])


class Bench:
    def __init__(self) -> None:
        led = [SimpleNamespace(leader=OTHER)] * 2
        self.topics = {
            GONE: SimpleNamespace(name="gone", partitions=led),
            KEPT: SimpleNamespace(name="kept", partitions=led),
        }
        self.elsewhere = Elsewhere()
        self.tasks: list[asyncio.Task[None]] = []
        self.done = asyncio.Event()
        self.change: Callable[[], object] = lambda: None  # what a test wants to happen when a task is started
        self.node: Any = SimpleNamespace(
            settings=SimpleNamespace(node=SimpleNamespace(id=ME)),
            image=SimpleNamespace(topics_by_id=self.topics),
            loop=asyncio.get_running_loop(),
            peers=self.elsewhere,
            tasks=self,
        )

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """What is started runs with the next turn; until then the cluster may have changed."""
        self.tasks.append(asyncio.ensure_future(work))
        self.change()

    async def until_done(self) -> None:
        Participants(self.node).end(PREPARED, COORDINATOR_EPOCH, self.done.set)
        async with asyncio.timeout(100 * RETRY_S):
            await self.done.wait()
        await asyncio.gather(*self.tasks)


async def test_a_topic_that_is_deleted_just_now_is_no_hindrance() -> None:
    bench = Bench()
    bench.elsewhere.errors["gone"] = UnknownTopicOrPartition.code
    bench.change = lambda: bench.topics.pop(GONE, None)
    await bench.until_done()
    assert bench.elsewhere.asked == [[("gone", 0), ("kept", 0), ("kept", 1)]]


async def test_what_could_not_be_marked_is_asked_for_again_with_one_request() -> None:
    bench = Bench()
    bench.elsewhere.errors["kept"] = NotLeaderOrFollower.code

    def recover() -> None:
        if len(bench.tasks) == 3:
            bench.elsewhere.errors.clear()

    bench.change = recover
    await bench.until_done()
    kept = [("kept", 0), ("kept", 1)]
    assert bench.elsewhere.asked == [[("gone", 0), *kept], kept, kept]
