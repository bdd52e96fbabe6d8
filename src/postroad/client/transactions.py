"""Writes to any number of partitions, and commits a group's offsets or accepts messages, all or nothing.

    producer = await TransactionalProducer.begin(client, "copier-1")
    await producer.send(TopicPartition("copies", 0), [b"value"])
    await producer.send_offsets("copiers", consumer.uncommitted, consumer.committer)
    await producer.commit()

Instead of offsets, `acknowledge` accepts what a share consumer holds. `begin` fences whoever used the
transactional id before. A transaction begins with the first `send`, `send_offsets` or `acknowledge` after
that, and ends with `commit` or `abort`.

What a call raises, and what the caller does then:
- ProducerFenced, InvalidProducerEpoch: another producer has taken over. Make no more calls.
- `commit` raised something else: nobody knows the verdict. Begin again, and look at the group's offsets.
- anything else: `abort`, or begin again.

Where the cluster has `transaction.version` 2 each transaction has an epoch of its own (KIP-890); partitions
and groups join it with what is sent there. Elsewhere they are added first, and an abort after a failure
takes a higher epoch. Either way a batch that is still on its way can't come into the next transaction.

All calls about the id use a connection of their own, one at a time: without such epochs the coordinator
refuses what comes late by an older one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from postroad.client.backoff import Backoff
from postroad.client.client import CALLS, Client, pause_after
from postroad.client.connection import ANY_VERSION, Connection
from postroad.client.groups import Committer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import by_topic
from postroad.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    DuplicateSequence,
    PostroadError,
    UnsupportedVersion,
    by_code,
)
from postroad.wire.batch import TRANSACTIONAL
from postroad.wire.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    produce,
    txn_offset_commit,
)
from postroad.wire.records import Record, encode_batch
from postroad.wire.share_requests import InTransaction

if TYPE_CHECKING:
    from postroad.client.share_consumer import ShareConsumer
    from postroad.client.share_message import ShareMessage

TIMEOUT_MS: Final = 60_000
SEQUENCE_MASK: Final = 0x7FFFFFFF
NO_PLEDGES: Final = "Accepting messages in a transaction needs transaction.version 2 (kafka.transactions)."
# Nothing was changed, and a moment later it may be taken: what was held is held.
PASSING: Final = (ConcurrentTransactions, CoordinatorLoadInProgress, CoordinatorNotAvailable)
FEATURE: Final = "transaction.version"
OWN_EPOCHS: Final = 2
# Later versions are for transactions that have epochs of their own.
VERSIONS_MAX: Final = {
    produce.KEY: 11,
    add_partitions_to_txn.KEY: 3,
    end_txn.KEY: 4,
    txn_offset_commit.KEY: 4,
}


class TransactionalProducer:
    """Made by `begin`. One task at a time calls it; but where transactions have epochs of their own, batches
    for different partitions may be sent at once."""

    def __init__(
        self,
        client: Client,
        name: str,
        timeout_ms: int = TIMEOUT_MS,
        call_s: float | None = None,
        *,
        own_epochs: bool = True,
    ) -> None:
        """`call_s`: how long one try may take; a call as a whole may take the client's time-out.

        `own_epochs`: each transaction has an epoch of its own if the cluster can do that."""
        self._client = client
        self._name = name
        self._timeout_ms = timeout_ms
        self._call_s = client.timeout_s if call_s is None else call_s
        self._lane = client.new_lane("transactions")
        self._wants_own_epochs = own_epochs
        self.has_own_epochs = False
        self.tries = 0  # of the last question to the coordinator
        self._producer_id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: dict[TopicPartition, None] = {}
        self._is_open = False
        self._has_failed = False

    @classmethod
    async def begin(cls, client: Client, name: str, **settings: Any) -> TransactionalProducer:
        """A producer that has fenced those before it; what they left open is aborted."""
        made = cls(client, name, **settings)
        await made._initialize()
        return made

    @classmethod
    def entered(
        cls, client: Client, name: str, producer_id: int, epoch: int, **settings: Any
    ) -> TransactionalProducer:
        """One of several in a transaction that is open (`shared_transactions`). Send, and nothing else."""
        made = cls(client, name, **settings)
        made.has_own_epochs = made._is_open = True
        made._producer_id, made._epoch = producer_id, epoch
        return made

    @property
    def identity(self) -> tuple[int, int]:
        """The producer id and epoch that it writes with."""
        return self._producer_id, self._epoch

    async def send(self, to: TopicPartition, values: Sequence[bytes]) -> int:
        """Store the values as one batch of the transaction. Returns the first offset, −1 for a repetition."""
        return await self.send_records(to, self._records(values))

    async def send_records(self, to: TopicPartition, records: Sequence[Record]) -> int:
        """The same for records; each one's offset is its number in the batch."""
        with self._noting_failure():
            await self._reach(to)
            sequence = self._sequences.get(to, 0)
            base = await self._produce(to, self._request(to, records, sequence))
            self._sequences[to] = (sequence + len(records)) & SEQUENCE_MASK
            return base

    async def send_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], committer: Committer
    ) -> None:
        """The group's offsets are these if the transaction commits."""
        if not offsets:
            return
        with self._noting_failure():
            await self._reach_group(group)
            await self._commit_offsets(group, offsets, committer)

    async def acknowledge(self, consumer: ShareConsumer, messages: Iterable[ShareMessage]) -> None:
        """The messages, which the consumer holds, are accepted if the transaction commits; else they are
        released as after a failed delivery.

        Raises InvalidRecordState if one of them is no longer held: those of its partition stay as they are,
        others may have been taken. UnsupportedVersion, and the transaction has not begun, where the cluster
        knows no `transaction.version` 2."""
        if not self.has_own_epochs:
            raise UnsupportedVersion(NO_PLEDGES)
        left = list(messages)
        backoff = Backoff(self._client.timeout_s, self._client.runtime)
        with self._noting_failure():
            while left:
                refused = await consumer.pledge(left, self.take_part())
                left = [each.message for each in refused]
                for each in refused:
                    if not isinstance(each.error, PASSING):
                        raise each.error
                for each in refused[:1]:
                    assert isinstance(each.error, PASSING)
                    if not await backoff.wait(pause_after(each.error)):
                        raise each.error

    def take_part(self) -> InTransaction:
        """What a request says that is part of the transaction, which is open from now on."""
        self._is_open = True
        return InTransaction(self._producer_id, self._epoch, self._name)

    async def commit(self) -> None:
        """All of it is in effect, and stays."""
        with self._noting_failure():
            await self._end(committed=True)

    async def abort(self) -> None:
        """Nothing of it is in effect, nor will be."""
        with self._noting_failure():
            await self._end(committed=False)
        if self._has_failed and not self.has_own_epochs:
            await self._initialize()
        self._has_failed = False

    def close(self) -> None:
        """Go without a word: what is open is aborted when its time is over, or by the next `begin`."""
        self._client.close_lane(self._lane)

    async def connection(self) -> Connection:
        """The one by which it speaks to its coordinator now."""
        node = await self._client.transaction_coordinator(self._name)
        return await self._client.connection(node, self._lane)

    def reconnect(self) -> None:
        """Leave the connection to the coordinator as it is, and open another with the next call."""
        self._lane = self._client.new_lane("transactions")

    def end_request(self, *, committed: bool) -> end_txn.EndTxnRequest:
        return end_txn.EndTxnRequest(self._name, self._producer_id, self._epoch, committed)

    def produce_request(self, to: TopicPartition, values: Sequence[bytes]) -> produce.ProduceRequest:
        """What `send` would send next."""
        return self._request(to, self._records(values), self._sequences.get(to, 0))

    # --- the steps of a transaction

    async def _initialize(self) -> None:
        self.has_own_epochs = self._wants_own_epochs and await self._can_have_epochs()
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=self._name,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
        )
        answer = await self._ask(init_producer_id, request)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._has_failed = False

    async def _can_have_epochs(self) -> bool:
        async def attempt() -> bool:
            return (await self.connection()).features.get(FEATURE, 0) >= OWN_EPOCHS

        return await self._client.retry(attempt)

    async def _reach(self, to: TopicPartition) -> None:
        """The partition is part of the transaction, or joins it with the first batch."""
        self._is_open = True
        if to in self._added or self.has_own_epochs:
            return
        topic = add_partitions_to_txn.AddPartitionsToTxnTopic(to.topic, [to.partition])
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic],
        )
        await self._ask(
            add_partitions_to_txn,
            request,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )
        self._added[to] = None

    def _records(self, values: Sequence[bytes]) -> list[Record]:
        now_ms = self._client.runtime.clock.now_ms()
        return [Record(number, now_ms, None, value) for number, value in enumerate(values)]

    def _batch(self, records: Sequence[Record], sequence: int) -> bytearray:
        return encode_batch(
            records,
            base_offset=0,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )

    def _request(
        self, to: TopicPartition, records: Sequence[Record], sequence: int
    ) -> produce.ProduceRequest:
        partition = produce.PartitionProduceData(index=to.partition, records=self._batch(records, sequence))
        topic = produce.TopicProduceData(name=to.topic, partition_data=[partition])
        return produce.ProduceRequest(
            transactional_id=self._name,
            acks=-1,
            timeout_ms=int(self._client.timeout_s * 1000),
            topic_data=[topic],
        )

    async def _produce(self, to: TopicPartition, request: produce.ProduceRequest) -> int:
        async def attempt() -> int:
            node = await self._client.leader(*to)
            answer = await self._call(produce, request, node, CALLS)
            result = answer.responses[0].partition_responses[0]
            if result.error_code == DuplicateSequence.code:
                return -1
            if result.error_code:
                raise by_code(result.error_code, result.error_message)
            return int(result.base_offset)

        return await self._client.retry(attempt)

    async def _reach_group(self, group: str) -> None:
        """The same for a group and its offsets."""
        self._is_open = True
        if self.has_own_epochs:
            return
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(self._name, self._producer_id, self._epoch, group)
        await self._ask(add_offsets_to_txn, request)

    async def _commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], committer: Committer
    ) -> None:
        topics = [
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name,
                [
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
                        index, offsets[TopicPartition(name, index)]
                    )
                    for index in indexes
                ],
            )
            for name, indexes in by_topic(offsets).items()
        ]
        request = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            generation_id=committer.generation,
            member_id=committer.member_id,
            group_instance_id=committer.instance_id,
            topics=topics,
        )

        async def attempt() -> None:
            node = await self._client.coordinator(group)
            answer = await self._call(txn_offset_commit, request, node, self._lane)
            codes = [part.error_code for topic in answer.topics for part in topic.partitions]
            for code in filter(None, codes):
                raise by_code(code)

        await self._client.retry(attempt)

    async def _end(self, *, committed: bool) -> None:
        if self._is_open:
            answer = await self._ask(end_txn, self.end_request(committed=committed))
            self._is_open = False
            self._added.clear()
            if self.has_own_epochs:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                self._sequences.clear()

    # --- helpers

    async def _ask(self, api: Any, request: Any, code: Callable[[Any], int] | None = None) -> Any:
        """One answer of the id's coordinator, whichever node that is."""

        self.tries = 0

        async def attempt() -> Any:
            self.tries += 1
            node = await self._client.transaction_coordinator(self._name)
            answer = await self._call(api, request, node, self._lane)
            failed = answer.error_code if code is None else code(answer)
            if failed:
                raise by_code(failed)
            return answer

        return await self._client.retry(attempt)

    async def _call(self, api: Any, request: Any, node: int, lane: str) -> Any:
        connection = await self._client.connection(node, lane)
        version = connection.version(api)
        if not self.has_own_epochs:
            version = min(version, VERSIONS_MAX.get(api.KEY, ANY_VERSION))
        return await connection.call(api, request, self._call_s, version)

    def _noting_failure(self) -> _NotingFailure:
        return _NotingFailure(self)

    def note_failure(self) -> None:
        """Something may be on its way: the next abort takes a higher epoch."""
        self._has_failed = True


class _NotingFailure:
    def __init__(self, producer: TransactionalProducer) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        """Nothing has failed yet."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, (PostroadError, TimeoutError)):
            self._producer.note_failure()
