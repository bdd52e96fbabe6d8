"""Workers that copy a topic in transactions, some aborted, fenced, too slow or left behind; and readers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from postroad.client import groups, offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.fetcher import Fetched
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, READ_COMMITTED, READ_UNCOMMITTED
from postroad.client.producer import Producer
from postroad.client.transactions import TransactionalProducer
from postroad.errors import InvalidProducerEpoch, PostroadError, ProducerFenced, TryAgain
from postroad.wire.messages import end_txn, produce, write_txn_markers
from simulator.checkers import l9_transactions
from simulator.conditions import GROUP_HEARTBEAT_MS, GROUP_SESSION_MS
from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import create_topic
from simulator.workloads.topic_reader import read_all
from simulator.workloads.transaction_history import NOWHERE, OUT_PARTITIONS, Attempt, TransactionHistory
from simulator.workloads.workload import Role, Stage, Workload

SOURCE, TARGET, GROUP = "txn-in", "txn-out", "txn-copiers"
NAMES: Final = ("txn-a", "txn-b")  # fewer than workers: they fence each other now and then
LATE: Final = "txn-late"
STATE: Final = ("__transaction_state", "__consumer_offsets")
PARTITIONS: Final = 2
WORKERS: Final = 3
SEND_S: Final = 0.7
BURST_MAX: Final = 5
POLL_S: Final = 0.4
PAUSE_S: Final = 0.3
LIFE_S: Final = (3.0, 25.0)
NAP_S: Final = (1.0, 9.0)  # of a worker in the midst of a transaction: sometimes longer than its time-out
TIMEOUT_MS: Final = 5_000
CALL_S: Final = (0.4, 1.5, 8.0)  # one try: with a short one a request may arrive after its repetition
LATE_S: Final = 2.0  # between two requests that come late
RENEWAL: Final = 0.2  # how often their sender is another one
END_VERSION: Final = {False: 4, True: 5}  # without epochs of their own, and with them
FIRST_EPOCH: Final = 0  # of a coordinator
PRODUCE_VERSION: Final = {False: 11, True: 12}
REBALANCE_MS: Final = 8_000
REST_S: Final = 25.0  # until all is copied and stable, once the faults are over

LEAVE, NAP, ABORT, COMMIT = "leave", "nap", "abort", "commit"
FATES: Final = (LEAVE, NAP, ABORT, ABORT, ABORT, COMMIT, COMMIT, COMMIT, COMMIT, COMMIT)


class Transactions(Workload):
    name = "transactions"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = TransactionHistory()
        self._numbers = count()
        self._stable: dict[TopicPartition, int] = {}  # the highest that somebody was told

    def roles(self) -> Mapping[str, Role]:
        workers = {f"worker-{number}": self._work for number in range(1, WORKERS + 1)}
        readers = {"reader": self._read, "watcher": self._watch}
        return {"producer": self._produce, **workers, "straggler": self._straggle, **readers}

    @property
    def is_kept(self) -> bool:
        """No power cut has taken what was acknowledged: then nothing is promised of transactions."""
        return not self.stage.losses(SOURCE, TARGET, *STATE)

    async def _ensure(self, client: Client) -> None:
        await create_topic(client, SOURCE, PARTITIONS, {})
        await create_topic(client, TARGET, OUT_PARTITIONS, {})

    # --- roles

    async def _produce(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        async with Producer(client) as producer:
            while not stage.calm:
                for _ in range(random.randrange(1, BURST_MAX)):
                    value = b"%d" % next(self._numbers)
                    await producer.send(SOURCE, value, partition=random.randrange(PARTITIONS))
                await asyncio.sleep(random.expovariate(1 / SEND_S))
        await asyncio.sleep(stage.seconds)

    async def _work(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        ends_at = stage.world.now + random.uniform(*LIFE_S)
        name, call_s = random.choice(NAMES), random.choice(CALL_S)
        producer = await TransactionalProducer.begin(
            client, name, timeout_ms=TIMEOUT_MS, call_s=call_s, own_epochs=random.random() < 0.5
        )
        if producer.has_own_epochs:
            stage.world.sometimes("transactions: each has an epoch of its own")
        async with self._consumer(client) as consumer:
            await consumer.subscribe([SOURCE])
            while stage.world.now < ends_at:
                fetched = await consumer.poll(POLL_S)
                if fetched and not await self._copy(producer, consumer, fetched):
                    return
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))

    def _consumer(self, client: Client) -> Consumer:
        member = {
            "session_timeout_ms": GROUP_SESSION_MS,
            "heartbeat_ms": GROUP_HEARTBEAT_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
        }
        return Consumer(
            client, reset=EARLIEST, group=GROUP, auto_commit_ms=None, member=member, isolation=READ_COMMITTED
        )

    async def _copy(
        self, producer: TransactionalProducer, consumer: Consumer, fetched: Sequence[Fetched]
    ) -> bool:
        """One transaction; False: the worker has gone in the midst of it."""
        stage, random, now = self.stage, self.stage.random, self.stage.world.now
        inputs = [Position(part.partition, each.offset) for part, records, _ in fetched for each in records]
        attempt = self._history.begin(inputs, now)
        fate = COMMIT if stage.calm else random.choice(FATES)
        try:
            await self._fill(producer, consumer, fetched, attempt, fate)
            if fate == LEAVE:
                stage.world.sometimes("transactions: a worker left one open")
                return False
            if fate != ABORT:
                await self._commit(producer, consumer, fetched, attempt)
                return True
        except (ProducerFenced, InvalidProducerEpoch):
            stage.world.sometimes("transactions: a producer was fenced")
            raise
        except TryAgain:
            if attempt.asked <= stage.world.now:
                stage.world.sometimes("transactions: nobody knew of a commit")
                raise
            stage.world.sometimes("transactions: a step failed")
        await self._abort(producer, consumer, fetched, attempt)
        return True

    async def _fill(
        self,
        producer: TransactionalProducer,
        consumer: Consumer,
        fetched: Sequence[Fetched],
        attempt: Attempt,
        fate: str,
    ) -> None:
        for partition, values in attempt.outputs():
            await producer.send(TopicPartition(TARGET, partition), values)
        if fate == LEAVE and self.stage.random.random() < 0.5:
            return
        await producer.send_offsets(GROUP, _ends(consumer, fetched), consumer.committer)
        if fate == NAP:
            await asyncio.sleep(self.stage.random.uniform(*NAP_S))

    async def _commit(
        self,
        producer: TransactionalProducer,
        consumer: Consumer,
        fetched: Sequence[Fetched],
        attempt: Attempt,
    ) -> None:
        attempt.asked = self.stage.world.now
        await producer.commit()
        attempt.committed = self.stage.world.now
        consumer.committed_in_transaction(_ends(consumer, fetched))
        self.stage.world.sometimes("transactions: one was committed")

    async def _abort(
        self,
        producer: TransactionalProducer,
        consumer: Consumer,
        fetched: Sequence[Fetched],
        attempt: Attempt,
    ) -> None:
        await producer.abort()
        attempt.aborted = self.stage.world.now
        self.stage.world.sometimes("transactions: one was aborted")
        for part, records, _ in fetched:
            if part in consumer.positions:
                consumer.rewind(part, records[0].offset)

    async def _straggle(self, client: Client) -> None:
        """The network holds an EndTxn back; it comes when its repetition was answered and the next
        transaction is open (KAFKA-17754). So does a batch of one that was aborted."""
        stage, world, random = self.stage, self.stage.world, self.stage.random
        await self._ensure(client)
        producer: TransactionalProducer | None = None
        while not stage.calm:
            if producer is None or random.random() < RENEWAL:
                producer = await TransactionalProducer.begin(
                    client, LATE, timeout_ms=TIMEOUT_MS, own_epochs=random.random() < 0.5
                )
            former = await producer.connection()
            first = await self._begin_late(producer)
            late = producer.end_request(committed=True)
            first.asked = world.now
            await producer.commit()
            first.committed = world.now
            producer.reconnect()
            second = await self._begin_late(producer)
            with contextlib.suppress(PostroadError):
                await former.call(end_txn, late, CALL_S[1], END_VERSION[producer.has_own_epochs])
            world.sometimes("transactions: an EndTxn came late")
            await self._abort_late(client, producer, second)
            if producer.has_own_epochs:
                await self._mark_late(client, producer)
            else:
                producer = None  # the batch that came late may have taken its next sequence number
            await asyncio.sleep(random.expovariate(1 / LATE_S))
        await asyncio.sleep(stage.seconds)

    async def _abort_late(self, client: Client, producer: TransactionalProducer, aborted: Attempt) -> None:
        """A batch of the transaction that is aborted comes when it has ended: where transactions have epochs
        while the next one is open, which commits; else it must not open one that nobody ends."""
        where, values = next(aborted.outputs())
        to = TopicPartition(TARGET, where)
        batch = producer.produce_request(to, values)
        await producer.abort()
        aborted.aborted = self.stage.world.now
        following = await self._begin_late(producer) if producer.has_own_epochs else None
        with contextlib.suppress(PostroadError):
            version = PRODUCE_VERSION[producer.has_own_epochs]
            leader = await client.leader(*to)
            await client.call(produce, batch, node=leader, timeout_s=CALL_S[1], version=version)
        self.stage.world.sometimes("transactions: a batch came late")
        if following is not None:
            following.asked = self.stage.world.now
            await producer.commit()
            following.committed = self.stage.world.now

    async def _mark_late(self, client: Client, producer: TransactionalProducer) -> None:
        """The markers of the transaction before come again, while the next one is open, which is aborted."""
        late = producer.end_request(committed=True)  # the epoch of those markers is the one of now
        following = await self._begin_late(producer)
        for where, _ in following.outputs():
            marker = write_txn_markers.WritableTxnMarker(
                producer_id=late.producer_id,
                producer_epoch=late.producer_epoch,
                transaction_result=True,
                topics=[write_txn_markers.WritableTxnMarkerTopic(TARGET, [where])],
                coordinator_epoch=FIRST_EPOCH,
                transaction_version=2,
            )
            with contextlib.suppress(PostroadError):
                leader = await client.leader(TARGET, where)
                request = write_txn_markers.WriteTxnMarkersRequest([marker])
                await client.call(write_txn_markers, request, node=leader, timeout_s=CALL_S[1])
        self.stage.world.sometimes("transactions: markers came late")
        await producer.abort()
        following.aborted = self.stage.world.now

    async def _begin_late(self, producer: TransactionalProducer) -> Attempt:
        attempt = self._history.begin([Position(NOWHERE, len(self._history.attempts))], self.stage.world.now)
        for partition, values in attempt.outputs():
            await producer.send(TopicPartition(TARGET, partition), values)
        return attempt

    async def _read(self, client: Client) -> None:
        """Follows the output from somewhere on."""
        stage, random = self.stage, self.stage.random
        await self._ensure(client)
        ends_at = stage.world.now + random.uniform(5, 30)
        stable = await offsets.latest(client, _targets(), READ_COMMITTED)
        begin = {
            part: random.randrange(end + 1) if random.random() < 0.5 else 0 for part, end in stable.items()
        }
        async with Consumer(client, reset=EARLIEST, isolation=READ_COMMITTED) as consumer:
            await consumer.assign(begin)
            readings = {part: self._history.read(part.partition, at) for part, at in begin.items()}
            while stage.world.now < ends_at:
                for part, records, _ in await consumer.poll(1.0):
                    readings[part].seen += [(record.offset, record.value or b"") for record in records]
                    self._saw([record.value or b"" for record in records])
                    self._stable[part] = max(self._stable.get(part, 0), records[-1].offset + 1)
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))

    def _saw(self, values: Sequence[bytes]) -> None:
        """L4, as soon as it can be seen."""
        for value in values:
            for violation in l9_transactions.check_read(self._history.attempt_of(value)):
                if self.is_kept:
                    self.stage.broken(violation.invariant, violation.text)

    async def _watch(self, client: Client) -> None:
        """L11: the stable offset is not above the watermark, and never falls."""
        await self._ensure(client)
        while True:
            before = dict(self._stable)
            stable = await offsets.latest(client, _targets(), READ_COMMITTED)
            ends = await offsets.latest(client, _targets(), READ_UNCOMMITTED)
            for part, offset in stable.items():
                if self.is_kept and offset < before.get(part, 0):
                    self.stage.broken("L11", f"{part}: stable offset {offset} was {before[part]}")
                if self.is_kept and offset > ends[part]:
                    self.stage.broken("L11", f"{part}: stable offset {offset} is above its end {ends[part]}")
                if offset < ends[part]:
                    self.stage.world.sometimes("transactions: an open one held readers back")
                self._stable[part] = max(offset, self._stable.get(part, 0)) if self.is_kept else 0
            await asyncio.sleep(self.stage.random.expovariate(1 / PAUSE_S))

    # --- the end

    async def finish(self, client: Client) -> None:
        """All is copied, and nothing is open any more."""
        sources = [TopicPartition(SOURCE, n) for n in range(PARTITIONS)]
        if self.is_kept:
            await self._wait(lambda: self._left_to_copy(client, sources), "L9", "inputs are not copied")
        await self._wait(lambda: self._unstable(client), "L11", "a transaction stays open")
        found = await read_all(client, _targets(), READ_COMMITTED)
        self._history.final = [record.value or b"" for _, record in found]
        self._history.places = {
            Position(part.partition, record.offset): record.value or b"" for part, record in found
        }
        committed = await groups.committed(client, GROUP, sources, stable=True)
        self._history.offsets = {part.partition: at for part, at in committed.items()}

    async def _wait(self, left: Callable[[], object], invariant: str, text: str) -> None:
        deadline = self.stage.world.now + REST_S
        while found := await left():  # type: ignore[misc]
            if self.stage.world.now > deadline:
                self.stage.broken(invariant, f"{text}: {found}")
                return
            await asyncio.sleep(0.5)

    async def _left_to_copy(self, client: Client, sources: list[TopicPartition]) -> dict[str, str]:
        ends = await offsets.latest(client, sources)
        try:
            committed = await groups.committed(client, GROUP, sources, stable=True)
        except TryAgain as error:
            return {"unstable": repr(error)}
        return {
            str(part): f"{committed.get(part, 0)} of {end}"
            for part, end in ends.items()
            if committed.get(part, 0) != end
        }

    async def _unstable(self, client: Client) -> dict[str, str]:
        stable = await offsets.latest(client, _targets(), READ_COMMITTED)
        ends = await offsets.latest(client, _targets(), READ_UNCOMMITTED)
        return {str(part): f"{stable[part]} of {end}" for part, end in ends.items() if stable[part] != end}

    def check(self) -> Iterator[Violation]:
        if self.is_kept:
            yield from l9_transactions.check(self._history)


def _targets() -> list[TopicPartition]:
    return [TopicPartition(TARGET, n) for n in range(OUT_PARTITIONS)]


def _ends(consumer: Consumer, fetched: Sequence[Fetched]) -> dict[TopicPartition, int]:
    return {part: consumer.positions.get(part, records[-1].offset + 1) for part, records, _ in fetched}
