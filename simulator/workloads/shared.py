"""Jobs whose tasks write in one transaction: drivers that die and begin again, failed attempts, zombies."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED
from postroad.client.shared_transactions import SharedRun
from postroad.client.transactions import TransactionalProducer
from postroad.errors import InvalidProducerEpoch, InvalidTransactionState, PostroadError
from simulator.checkers import l9_shared
from simulator.violation import Violation
from simulator.workloads.log_writer import create_topic
from simulator.workloads.shared_history import PARTITIONS, Run, SharedHistory, Written
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "shared-out"
NAME: Final = "shared-job"
STATE: Final = "__transaction_state"
DRIVERS: Final = 2  # the second one takes over while the first one still works
TASKS_MAX: Final = 4
ROWS_MAX: Final = 5
TIMEOUT_MS: Final = 5_000
CALL_S: Final = (0.4, 1.5, 8.0)  # one try: with a short one a request may arrive after its repetition
PAUSE_S: Final = 0.5
LIFE_S: Final = (3.0, 25.0)
NAP_S: Final = (1.0, 9.0)  # before the commit: sometimes longer than the time-out
REST_S: Final = 25.0  # until nothing is open, once the faults are over
FAILS: Final = 0.2  # of the attempts, after they have written
ZOMBIES: Final = 0.5  # of the attempts that failed
LATE_WRITES: Final = 5
FORGETS: Final = 0.2  # a driver that dies between the commit and its own log

LEAVE, NAP, ABORT, COMMIT = "leave", "nap", "abort", "commit"
FATES: Final = (LEAVE, NAP, ABORT, *(COMMIT,) * 5)

Kept = tuple[TransactionalProducer, Written]


class Shared(Workload):
    name = "shared"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = SharedHistory()
        self._zombies: set[asyncio.Task[None]] = set()

    def roles(self) -> Mapping[str, Role]:
        drivers = {f"driver-{number}": self._drive for number in range(1, DRIVERS + 1)}
        return {**drivers, "reader": self._read}

    @property
    def is_kept(self) -> bool:
        """No power cut has taken what was acknowledged: then nothing is promised of transactions."""
        return not self.stage.losses(TOPIC, STATE)

    # --- drivers

    async def _drive(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await create_topic(client, TOPIC, PARTITIONS, {})
        ends_at, call_s = stage.world.now + random.uniform(*LIFE_S), random.choice(CALL_S)
        while not stage.calm and stage.world.now < ends_at:
            if not await self._write_batch(client, call_s):
                return
            await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        if stage.calm:
            await asyncio.sleep(stage.seconds)

    async def _write_batch(self, client: Client, call_s: float) -> bool:
        """One run of the next batch; False: its driver has died."""
        stage, random, history = self.stage, self.stage.random, self._history
        run = history.begin(history.checkpoint)
        shared = SharedRun(client, NAME, f"run-{run.number}", run.batch, TIMEOUT_MS, call_s)
        tasks = [self._task(shared, run) for _ in range(random.randrange(1, TASKS_MAX))]
        kept: list[Kept] = []
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, InvalidTransactionState):
                return True  # another driver has gone on meanwhile
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is None:
                self._is_done(run)
                return True
            kept.append(outcome)
        fate = COMMIT if stage.calm else random.choice(FATES)
        if fate == LEAVE:
            stage.world.sometimes("shared: a driver left one open")
            return False
        if fate == ABORT:
            await shared.abort()
            run.aborted = stage.world.now
            return True
        if fate == NAP:
            await asyncio.sleep(random.uniform(*NAP_S))
        return await self._commit(shared, run, kept)

    def _is_done(self, run: Run) -> None:
        self.stage.world.sometimes("shared: a batch was begun again after its commit")
        self._history.done.add(run.batch)
        self._history.checkpoint = max(self._history.checkpoint, run.batch + 1)

    async def _commit(self, shared: SharedRun, run: Run, kept: list[Kept]) -> bool:
        stage, random = self.stage, self.stage.random
        for _, written in kept:
            written.is_kept = True
        run.asked = stage.world.now
        await shared.commit([producer.identity for producer, _ in kept])
        run.committed = stage.world.now
        stage.world.sometimes("shared: a run was committed")
        if random.random() < FORGETS:
            return False
        self._history.checkpoint = max(self._history.checkpoint, run.batch + 1)
        return True

    async def _task(self, shared: SharedRun, run: Run) -> Kept | None:
        """Attempts until one succeeds; None: the batch is done."""
        random = self.stage.random
        while True:
            producer = await shared.enter()
            if producer is None:
                return None
            written = run.attempt(random.randrange(1, ROWS_MAX))
            await self._write(producer, written)
            if random.random() >= FAILS:
                return producer, written
            self.stage.world.sometimes("shared: an attempt failed")
            if random.random() < ZOMBIES:
                zombie = asyncio.create_task(self._write_late(producer, run), name="zombie")
                self._zombies.add(zombie)
                zombie.add_done_callback(self._zombies.discard)

    async def _write_late(self, producer: TransactionalProducer, run: Run) -> None:
        """An attempt that was given up writes on, also in the time of the next transaction: it is refused, or
        what it writes does not count."""
        with contextlib.suppress(PostroadError):
            for _ in range(LATE_WRITES):
                await asyncio.sleep(self.stage.random.expovariate(1 / PAUSE_S))
                await self._write(producer, run.attempt(1))
                self.stage.world.sometimes("shared: an attempt wrote on when it was given up")
        producer.close()

    async def _write(self, producer: TransactionalProducer, written: Written) -> None:
        for partition, values in written.outputs():
            if values:
                await producer.send(TopicPartition(TOPIC, partition), values)

    async def _read(self, client: Client) -> None:
        """L4, as soon as it can be seen."""
        stage, random = self.stage, self.stage.random
        await create_topic(client, TOPIC, PARTITIONS, {})
        ends_at = stage.world.now + random.uniform(5, 30)
        async with Consumer(client, reset=EARLIEST, isolation=READ_COMMITTED) as consumer:
            await consumer.assign(dict.fromkeys(_parts(), 0))
            while stage.world.now < ends_at:
                for _, records, _ in await consumer.poll(1.0):
                    for record in records:
                        for violation in l9_shared.check_read(self._history, record.value or b""):
                            if self.is_kept:
                                stage.broken(violation.invariant, violation.text)

    # --- the end

    async def finish(self, client: Client) -> None:
        """Until nothing is open any more."""
        for zombie in self._zombies:
            zombie.cancel()
        await self._rest(client)
        await self._write_last(client)
        await self._rest(client)
        found = await read_all(client, _parts(), READ_COMMITTED)
        self._history.final = [record.value or b"" for _, record in found]

    async def _rest(self, client: Client) -> None:
        deadline = self.stage.world.now + REST_S
        while left := await self._unstable(client):
            if self.stage.world.now > deadline:
                self.stage.broken("L11", f"a transaction stays open: {left}")
                break
            await asyncio.sleep(0.5)

    async def _write_last(self, client: Client) -> None:
        """Another batch, by two tasks: whatever happened before, it is written."""
        history = self._history
        while True:
            run = history.begin(history.checkpoint)
            shared = SharedRun(client, NAME, f"last-{run.number}", run.batch, TIMEOUT_MS)
            try:
                kept = await self._write_twice(shared, run)
            except InvalidProducerEpoch:
                if self.is_kept:
                    raise
                continue  # a power cut took epochs that partitions remember; each run has the next one
            if kept:
                await self._commit(shared, run, kept)
                return
            self._is_done(run)

    async def _write_twice(self, shared: SharedRun, run: Run) -> list[Kept]:
        """Nothing if the batch is done."""
        kept: list[Kept] = []
        while len(kept) < 2 and (producer := await shared.enter()) is not None:
            written = run.attempt(ROWS_MAX)
            await self._write(producer, written)
            kept.append((producer, written))
        return kept

    async def _unstable(self, client: Client) -> dict[str, str]:
        stable = await offsets.latest(client, _parts(), READ_COMMITTED)
        ends = await offsets.latest(client, _parts(), READ_UNCOMMITTED)
        return {str(part): f"{stable[part]} of {end}" for part, end in ends.items() if stable[part] != end}

    def check(self) -> Iterator[Violation]:
        if self.is_kept:
            yield from l9_shared.check(self._history)


def _parts() -> list[TopicPartition]:
    return [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
