"""Batches that wait at a partition until the coordinator of their transaction, elsewhere, has answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from postroad.broker.flusher import Flusher
from postroad.broker.partition import Partition
from postroad.broker.transactions import gates
from postroad.broker.transactions.markers import Verdict, mark
from postroad.broker.turn import Turn
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidTransactionState,
    NotCoordinator,
    NotEnoughReplicas,
)
from postroad.log.disk import OsDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.settings import LogSettings
from postroad.system.clock import SystemClock
from postroad.system.workers import Threads
from postroad.transactions.transaction import Producer
from postroad.wire.batch import TRANSACTIONAL, only_batch
from tests.faults.raw import batch_of

PRODUCER, EPOCH = 7, 0


class Elsewhere:
    """A coordinator on another node: it answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[None]] = []

    def is_elsewhere(self, transactional_id: str) -> bool:
        return True

    async def verify(
        self, transactional_id: str, who: Producer, partitions: Sequence[Any], groups: Sequence[str]
    ) -> None:
        self.asked.append(asyncio.get_running_loop().create_future())
        await self.asked[-1]

    join = verify


class Bench:
    """A partition that leads, and batches of one producer that knock at it."""

    def __init__(self, directory: Path) -> None:
        loop = asyncio.get_running_loop()
        turn = Turn(loop)
        log = PartitionLog.open(OsDisk(), str(directory), LogSettings(), 0, clean=False)
        flusher = Flusher(loop, Threads(loop, 1, "syncs"))
        self.partition = Partition("t", b"\0" * 16, 0, log, turn, flusher, flush="os")
        self.partition.become_leader(0, None)
        self.coordinator = Elsewhere()
        self.tasks: list[asyncio.Task[None]] = []
        self.node: Any = SimpleNamespace(
            tasks=self,
            transactions=self.coordinator,
            turn=turn,
            clock=SystemClock(),
            partitions=SimpleNamespace(lead=lambda *_: self.partition),
        )
        self.answers: list[tuple[int, ApiError | None]] = []

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def send(self, sequence: int, epoch: int = EPOCH, *, joins: bool = False) -> None:
        batch = batch_of(
            b"x",
            attributes=TRANSACTIONAL,
            producer_id=PRODUCER,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        header = only_batch(memoryview(batch))
        gates.verify(
            self.node,
            "id",
            header,
            self.partition,
            lambda error: self.answers.append((sequence, error)),
            joins=joins,
        )

    def mark(self, epoch: int = EPOCH, *, strict: bool = False) -> None:
        verdict = Verdict(PRODUCER, epoch, commit=False, coordinator_epoch=0, strict=strict)
        mark(self.node, (self.partition.topic_id, 0), verdict, lambda error: None)

    async def coordinator_answers(self, error: ApiError | None = None) -> None:
        await self.rest()
        asked = self.coordinator.asked.pop(0)
        if error is None:
            asked.set_result(None)
        else:
            asked.set_exception(error)
        await self.rest()

    async def rest(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "log")


async def test_batches_pass_in_their_order(bench: Bench) -> None:
    bench.send(0)
    bench.send(1)
    await bench.coordinator_answers()
    assert bench.answers == [(0, None)]
    await bench.coordinator_answers()
    assert bench.answers == [(0, None), (1, None)]
    assert not bench.partition.gates


async def test_what_follows_a_refused_batch_is_refused_without_a_question(bench: Bench) -> None:
    bench.send(0)
    bench.send(1)
    await bench.coordinator_answers(NotCoordinator())
    assert [(sequence, type(error)) for sequence, error in bench.answers] == [
        (0, NotEnoughReplicas),
        (1, NotEnoughReplicas),
    ]
    assert not bench.coordinator.asked
    assert not bench.partition.gates


async def test_an_answer_that_comes_after_the_marker_opens_nothing(bench: Bench) -> None:
    """The coordinator has said yes, and has ended the transaction since; its marker was quicker."""
    bench.send(0)
    bench.send(1)
    await bench.rest()
    bench.mark()
    await bench.coordinator_answers()
    assert [(sequence, type(error)) for sequence, error in bench.answers] == [
        (0, InvalidTransactionState),
        (1, InvalidTransactionState),
    ]
    bench.send(0)  # of the next transaction
    await bench.coordinator_answers()
    assert bench.answers[-1] == (0, None)
    assert not bench.partition.gates


async def test_the_marker_of_the_transaction_before_lets_the_next_one_come_in(bench: Bench) -> None:
    """Each has an epoch of its own; the marker has that of the next one."""
    bench.send(0, EPOCH + 1, joins=True)
    await bench.rest()
    bench.mark(EPOCH + 1, strict=True)
    await bench.coordinator_answers()
    assert bench.answers == [(0, None)]
    assert not bench.partition.gates


async def test_a_late_batch_that_is_refused_costs_the_next_transaction_nothing(bench: Bench) -> None:
    bench.send(3, EPOCH, joins=True)
    bench.send(0, EPOCH + 1, joins=True)
    await bench.coordinator_answers(InvalidProducerEpoch())
    await bench.coordinator_answers()
    assert [(sequence, type(error)) for sequence, error in bench.answers] == [
        (3, InvalidProducerEpoch),
        (0, type(None)),
    ]


async def test_what_has_to_wait_for_too_long_may_be_sent_again(bench: Bench) -> None:
    bench.send(0, joins=True)
    await bench.coordinator_answers(ConcurrentTransactions())
    assert [type(error) for _, error in bench.answers] == [NotEnoughReplicas]
