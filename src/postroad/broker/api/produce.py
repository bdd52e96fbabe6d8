"""Produce (0), versions 3–13: messages come in.

Advertised from 0 although 0–2 are refused: librdkafka stops compressing otherwise (KAFKA-18659).
A partition's records must be exactly one batch of format 2 whose CRC holds. acks=0 is never
answered (an error closes the connection, the only sign that the client can see), acks=1 is
answered when the batch is in the file, acks=all when it is committed (`partition`). A batch that
an idempotent producer sends again is answered with its first offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from postroad.broker.connection import Answer
from postroad.broker.dispatch import Call, Result
from postroad.broker.partition import Committed, Partition
from postroad.errors import (
    ApiError,
    CorruptMessage,
    InvalidRecord,
    InvalidRequest,
    InvalidRequiredAcks,
    InvalidTopic,
    NotEnoughReplicas,
    ProtocolError,
    StorageFailed,
    TransactionalIdAuthorizationFailed,
)
from postroad.wire import batch as batches
from postroad.wire import produce as codec
from postroad.wire.produce import PartitionAnswer

if TYPE_CHECKING:
    from postroad.broker.node import Node

KEY: Final = codec.KEY
VERSIONS: Final = (0, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
REPLICAS: Final = 1  # of every partition, for as long as a cluster is one node


def handle(node: Node, call: Call) -> Result:
    if call.version < codec.MIN_VERSION:
        raise ProtocolError(f"Produce version {call.version} needs message formats 0 and 1; send 3 or later")
    request, records = _decode(call)
    pending = PendingProduce(call, request.acks)
    refusal = _refusal(request)
    now_ms = node.clock.now_ms()
    if records is not None:
        topic, index, _ = request.partitions[0]
        pending.add(node, topic, index, records, now_ms, refusal)
    else:
        for topic, index, records in request.partitions:
            pending.add(node, topic, index, records, now_ms, refusal)
    node.turn.settle(pending)
    return pending.answer


def _decode(call: Call) -> tuple[codec.ProduceRequest, memoryview | None]:
    """The request; with records apart if it repeats the one before on this connection."""
    last = call.connection.last_produce
    if last is not None:
        records = last.records_of(call.body, call.version)
        if records is not None:
            return last.request, records
    request = codec.decode(call.body, call.version)
    if len(request.partitions) == 1:
        call.connection.last_produce = codec.Repetition(request, call.body, call.version)
    return request, None


def _refusal(request: codec.ProduceRequest) -> ApiError | None:
    """What is wrong with the request as a whole; each partition answers it."""
    if request.acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
        return InvalidRequiredAcks()
    if request.transactional_id is not None:
        return TransactionalIdAuthorizationFailed()
    return None


class PendingProduce:
    """A request whose batches are staged; it settles at the end of the turn, or when they are committed."""

    __slots__ = ("_acks", "_appends", "_results", "_uncommitted", "_version", "answer")

    def __init__(self, call: Call, acks: int) -> None:
        self._acks = acks
        self._version = call.version
        # acks=0: the place in the order is kept all the same, so that an error can close the connection
        self.answer: Answer = call.park()
        self._results: list[PartitionAnswer] = []
        # (place in the results, partition, offset that must be committed)
        self._appends: list[tuple[int, Partition, int]] = []
        self._uncommitted = 0

    def add(
        self,
        node: Node,
        topic: codec.TopicKey,
        index: int,
        records: memoryview | None,
        now_ms: int,
        refusal: ApiError | None,
    ) -> None:
        """Stage one partition's batch, or note why not."""
        try:
            if refusal is not None:
                raise refusal
            partition = node.partitions.lead(topic, index)
            if partition.internal:
                raise InvalidTopic(f"{partition.topic} is written by the nodes only.")
            if self._acks == ACKS_ALL and partition.min_insync_replicas > REPLICAS:
                raise NotEnoughReplicas()
            header = _one_batch(records)
            assert records is not None
            if partition.inspect is not None:
                records, header = partition.inspect(records, header)
            appended = partition.append(records, header, now_ms)
        except ApiError as error:
            self._results.append(_refused(topic, index, error))
            return
        needed = appended.base_offset + header.last_offset_delta + 1
        self._appends.append((len(self._results), partition, needed))
        self._results.append(
            PartitionAnswer(
                topic,
                index,
                0,
                appended.base_offset,
                appended.append_time_ms,
                partition.log.start_offset,
                None,
            )
        )

    def settle(self) -> None:
        """The turn has written: answer, or wait for the commit."""
        for place, partition, needed in self._appends:
            if partition.write_error is not None:
                self._refuse(place, partition.write_error)
            elif self._acks == ACKS_ALL and needed > partition.high_watermark:
                self._uncommitted += 1
                partition.when_committed(needed, self._waiter(place))
        if not self._uncommitted:
            self._finish()

    def _waiter(self, place: int) -> Committed:
        def committed(error: StorageFailed | None) -> None:
            if error is not None:
                self._refuse(place, error)
            self._uncommitted -= 1
            if not self._uncommitted:
                self._finish()

        return committed

    def _refuse(self, place: int, error: ApiError) -> None:
        topic, index = self._results[place][:2]
        self._results[place] = _refused(topic, index, error)

    def _finish(self) -> None:
        answer = self.answer
        if answer.abandoned:
            return
        if self._acks != ACKS_NONE:
            answer.complete(codec.encode(self._results, self._version))
        elif any(result.error for result in self._results):
            answer.hang_up("a message sent with acks=0 was refused: " + str(self._first_error()))
        else:
            answer.skip()

    def _first_error(self) -> str | None:
        return next(result.message for result in self._results if result.error)


def _one_batch(records: memoryview | None) -> batches.BatchHeader:
    """The header of the only batch, checked."""
    if records is None or len(records) < batches.HEADER_BYTES:
        raise CorruptMessage("There is no whole record batch in the request.")
    header = batches.read_header(records)
    batches.check(records, header)
    if header.size != len(records):
        raise InvalidRecord("Send exactly one record batch for each partition.")
    if header.count != header.last_offset_delta + 1:
        raise InvalidRecord("The batch's record count does not fit its last offset.")
    if header.attributes & (batches.CONTROL | batches.TRANSACTIONAL):
        raise InvalidRequest("Transactions are not supported yet; control batches come from nodes only.")
    return header


def _refused(topic: codec.TopicKey, index: int, error: ApiError) -> PartitionAnswer:
    return PartitionAnswer(topic, index, error.code, -1, -1, -1, str(error))
