"""Produce (0), versions 3–13: messages come in. (What repeats itself takes the short way, `produce_run`.)

Advertised from 0 although 0–2 are refused: librdkafka stops compressing otherwise (KAFKA-18659).
A partition's records must be exactly one batch of format 2 whose CRC holds. acks=0 is never
answered (an error closes the connection, the only sign that the client can see), acks=1 is
answered when the batch is in the file, acks=all when it is committed (`partition`). A batch that
an idempotent producer sends again is answered with its first offset. Whoever asks a node that does not
lead hears who does (KIP-951).
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from postroad.broker.access import OPEN, Rights
from postroad.broker.admission import ACKS, ACKS_ALL, ACKS_NONE, admit, waits_for_commit
from postroad.broker.cluster_view import WRONG_LEADER, ClusterView
from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Partition
from postroad.broker.parts import (
    HasClock,
    HasImage,
    HasPartitions,
    HasRegistration,
    HasSecurity,
    HasSettings,
    HasTasks,
    HasTransactions,
    HasTurn,
)
from postroad.broker.transactions import gates
from postroad.errors import (
    ApiError,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTransactionState,
    ProtocolError,
    TransactionAbortable,
)
from postroad.log.producers import OpensTransaction
from postroad.security.resources import Operation
from postroad.wire import produce as codec
from postroad.wire.batch import only_batch
from postroad.wire.leader_hints import NodeEndpoint
from postroad.wire.produce import PartitionAnswer

KEY: Final = codec.KEY
VERSIONS: Final = (0, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.WRITE, transactional_id=Operation.WRITE)

ABORTABLE_FROM: Final = 11  # clients know TRANSACTION_ABORTABLE
JOINS_FROM: Final = 12  # the first batch makes the partition part of the transaction (KIP-890)
WRONG_RECORDS_MAX: Final = 10_000  # named in an answer: some 70 bytes each, for a batch of a few bytes each


class Uses(
    HasClock,
    HasImage,
    HasPartitions,
    HasRegistration,
    HasSecurity,
    HasSettings,
    HasTasks,
    HasTransactions,
    HasTurn,
    Protocol,
):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    if call.version < codec.MIN_VERSION:
        raise ProtocolError(f"Produce version {call.version} needs message formats 0 and 1; send 3 or later")
    request = codec.decode(call.body, call.version)
    refusal = (
        None if request.acks in ACKS and request.transactional_id is None else _refusal(node, call, request)
    )
    if (
        refusal is None
        and node.settings.kafka.short_ways
        and codec.can_repeat(request, call.version)
        and call.access.topic_refusal(request.partitions[0][0]) is None
        and call.connection.quotas is None  # what counts goes the long way
    ):
        tags = b"\0" if call.flexible else b""
        call.connection.last_produce = codec.Repetition(request, call.frame, call.version, tags)
        call.connection.allowed_produce = node.security.revision
    answer = ProduceAnswer(node, call, request)
    now_ms = node.clock.now_ms()
    for topic, index, records in request.partitions:
        answer.stage(topic, index, records, now_ms, refusal)
    node.turn.when_written(answer)
    return answer


def _refusal(node: Uses, call: Call, request: codec.ProduceRequest) -> ApiError | None:
    """What is wrong with the request as a whole; each partition answers it."""
    if request.acks not in ACKS:
        return InvalidRequiredAcks()
    if request.acks != ACKS_ALL:
        return InvalidRequiredAcks("A transaction needs acks=all.")
    try:
        call.access.check_transactional_id(request.transactional_id or "")
        node.transactions.check(request.transactional_id or "")
    except ApiError as error:
        return error
    return None


class Append(PartitionAnswer):
    """One partition's batch, and what is to be answered for it."""

    __slots__ = ("end", "partition")

    def __init__(self, topic: codec.TopicKey, index: int) -> None:
        PartitionAnswer.__init__(self, topic, index)
        self.partition: Partition | None = None  # where it is staged; None: it was refused
        self.end = 0  # acks=all waits until everything below this offset is committed

    def admitted(self, partition: Partition, admitted: tuple[int, int, int]) -> None:
        self.partition = partition
        self.base_offset, self.append_time_ms, self.end = admitted
        self.start_offset = partition.log.start_offset

    def refuse(self, error: ApiError) -> None:
        self.error, self.message = error.code, str(error)
        if isinstance(error, InvalidRecord):
            self.wrong_records = error.records[:WRONG_RECORDS_MAX]
        self.base_offset = self.append_time_ms = self.start_offset = -1


class ProduceAnswer(Answer):
    """A produce answer that waits: complete at the end of the turn, or when its batches are committed.

    With acks=0 it keeps its place in the order all the same, so that an error can close the connection.
    """

    __slots__ = (
        "_access",
        "_acks",
        "_appends",
        "_in_turn",
        "_node",
        "_open",
        "_timeout_ms",
        "_transactional_id",
        "_version",
        "_wrong_leader",
        "throttle_ms",
    )

    def __init__(self, node: Uses, call: Call, request: codec.ProduceRequest) -> None:
        super().__init__(call.connection, call.correlation, call.flexible)
        self.connection.park(self)
        self._node = node
        self.throttle_ms = 0  # how long the client is to wait
        self._wrong_leader = False  # a partition was refused because another node leads it
        self._access = call.access
        self._acks = request.acks
        self._transactional_id = request.transactional_id
        self._timeout_ms = request.timeout_ms  # of its wait for commits
        self._version = call.version
        self._appends: list[Append] = []
        self._in_turn: list[Append] = []  # those that were staged at once: nearly all
        self._open = 1  # what it waits for: the end of the turn, then each commit

    def stage(
        self,
        topic: codec.TopicKey,
        index: int,
        records: memoryview | None,
        now_ms: int,
        refusal: ApiError | None,
    ) -> None:
        """Stage one partition's batch, or note why not."""
        append = Append(topic, index)
        self._appends.append(append)
        try:
            if refusal is not None:
                raise refusal
            if self._access is not OPEN:
                self._access.check_topic(topic)
            partition = self._node.partitions.lead(topic, index)
            admitted = self._admit(partition, records or _NO_RECORDS, now_ms)
        except OpensTransaction:
            self._verify(append, partition, records or _NO_RECORDS)
            return
        except ApiError as error:
            self._refuse(append, error)
            return
        append.admitted(partition, admitted)
        self._in_turn.append(append)

    def _admit(self, partition: Partition, records: memoryview, now_ms: int) -> tuple[int, int, int]:
        return admit(partition, records, self._acks, now_ms, self._transactional_id)

    def _verify(self, append: Append, partition: Partition, records: memoryview) -> None:
        """The batch opens a transaction: it comes in if the coordinator knows of that (KIP-890)."""
        node, transactional_id = self._node, self._transactional_id
        assert transactional_id is not None, "admission refuses it"
        self._open += 1
        copied = memoryview(bytearray(records))  # the receive buffer is used again when this turn ends

        def verified(error: ApiError | None) -> None:
            try:
                if error is not None:
                    raise error
                now_ms = node.clock.now_ms()
                admitted = admit(partition, copied, self._acks, now_ms, transactional_id, may_open=True)
            except ApiError as refusal:
                self._refuse(append, refusal)
                self._done()
                return
            append.admitted(partition, admitted)
            node.turn.when_written(_Verified(self, append))

        joins = self._version >= JOINS_FROM
        gates.verify(node, transactional_id, only_batch(copied), partition, verified, joins=joins)

    def written(self) -> None:
        """The turn has written: answer, or wait for the commits."""
        for append in self._in_turn:
            self.wait(append)
        self._done()

    def wait(self, append: Append) -> None:
        """The batch is written; with acks=all it waits for its commit."""
        partition = append.partition
        assert partition is not None, "it was staged"
        if partition.write_error is not None:
            append.refuse(partition.write_error)
        elif waits_for_commit(partition, self._acks, append.end):
            self._open += 1
            deadline_ms = self._node.clock.monotonic_ms() + self._timeout_ms
            partition.when_committed(append.end, partial(self._committed, append), deadline_ms)

    def _committed(self, append: Append, error: ApiError | None) -> None:
        if error is not None:
            self._refuse(append, error)
        self._done()

    def _refuse(self, append: Append, error: ApiError) -> None:
        if isinstance(error, InvalidTransactionState) and self._version >= ABORTABLE_FROM:
            error = TransactionAbortable(str(error))
        append.refuse(error)
        if error.code in WRONG_LEADER:
            self._wrong_leader = True

    def done(self) -> None:
        """One thing less to wait for."""
        self._done()

    def _done(self) -> None:
        self._open -= 1
        if self._open or self.connection.closed:
            return
        if self._acks != ACKS_NONE:
            endpoints = self._name_leaders() if self._wrong_leader else ()
            self.complete(codec.encode(self._appends, self._version, self.throttle_ms, endpoints))
            return
        refused = next((append for append in self._appends if append.error), None)
        if refused is None:
            self.skip()
        else:
            self.hang_up(f"a message sent with acks=0 was refused: {refused.message}")

    def _name_leaders(self) -> list[NodeEndpoint]:
        """Say who leads what was refused; returns where they are."""
        view = ClusterView(self._node.image, self._node.registration.me, self.connection.listener)
        for append in self._appends:
            if append.error in WRONG_LEADER:
                append.leader = view.leader_hint(append.topic, append.index, append.error)
        return view.endpoints([append.leader for append in self._appends if append.leader is not None])


class _Verified:
    """A batch that opened a transaction, on its way to the disk."""

    __slots__ = ("_answer", "_append")

    def __init__(self, answer: ProduceAnswer, append: Append) -> None:
        self._answer = answer
        self._append = append

    def written(self) -> None:
        self._answer.wait(self._append)
        self._answer.done()


_NO_RECORDS: Final = memoryview(b"")
