"""Fetch (1), versions 4–18: messages go out.

Committed batches leave as they lie in the segment, by sendfile. Where fewer than `min_bytes` are
there the request parks, registered with each of its partitions, until a commit wakes it or
`max_wait` is over. The first partition with data answers at least one whole batch even beyond the
limits (KIP-74), so a consumer can't get stuck. A read_committed consumer gets what is stable, and hears which
transactions in it were aborted. Data that this process has not written itself is
checked once, in a thread, before it is served (`_verify`). Whoever asks a node that does not lead hears who
does (KIP-951).

A consumer that names its rack (version 11 on) is sent to a replica there (KIP-392): the leader answers at
once, without records, with the replica's id. That one serves what it knows to be committed, while it is in
sync and hears from its leader. An offset that it does not have yet is waited for, then answered with
OFFSET_NOT_AVAILABLE: the consumer asks the leader again.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final, Protocol, cast

from postroad.broker.access import Rights
from postroad.broker.cluster_view import WRONG_LEADER, ClusterView
from postroad.broker.connection import Answer, Body, Connection, Part
from postroad.broker.dispatch import Call, Result
from postroad.broker.fetch_sessions import FINAL_EPOCH, FetchSession
from postroad.broker.partition import Partition
from postroad.broker.parts import (
    HasColdWorkers,
    HasDamagedCopies,
    HasEvidence,
    HasFetchSessions,
    HasImage,
    HasLoop,
    HasPartitions,
    HasRegistration,
    HasReplicaSessions,
    HasSecurity,
    HasSettings,
)
from postroad.broker.tail_fetch import COPY_BYTES_MAX, WAIT_MS_MAX, TailFetch, waits_at_end
from postroad.cluster.nearby import replica_near
from postroad.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    CorruptMessage,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    StorageFailed,
)
from postroad.log.partition_log import Slice
from postroad.log.scan import DamagedBatch
from postroad.security.resources import Operation
from postroad.wire import fetch as codec
from postroad.wire.fetch import FetchRequest, PartitionAnswer, PartitionFetch
from postroad.wire.leader_hints import CurrentLeader, NodeEndpoint

KEY: Final = codec.KEY
VERSIONS: Final = (codec.MIN_VERSION, codec.MAX_VERSION)
FLEXIBLE_FROM: Final = codec.FLEXIBLE_FROM
RIGHTS: Final = Rights(topic=Operation.READ)
NEVER: Final = -1  # no revision of the rules: they are asked

log = logging.getLogger(__name__)


class Uses(
    HasColdWorkers,
    HasDamagedCopies,
    HasEvidence,
    HasFetchSessions,
    HasImage,
    HasLoop,
    HasPartitions,
    HasRegistration,
    HasReplicaSessions,
    HasSecurity,
    HasSettings,
    Protocol,
):
    """What this handler uses of the node."""


def handle(node: Uses, call: Call) -> Result:
    last = call.connection.last_fetch
    if call.connection.allowed_fetch != node.security.revision:
        last = None  # the rules have changed, or the session has ended: look again
    offset = None if last is None else last.offset_of(call.body, call.version)
    if last is None or offset is None:
        return _answer(node, call, _decode(node, call))
    call.stats.short_way += 1
    partition = node.partitions.find(last.wanted.topic, last.wanted.index)
    if partition is not None and not last.request.rack and waits_at_end(partition, last, offset):
        bytes_max = min(last.max_bytes, node.settings.limits.fetch_bytes_max)
        long_way = partial(_answer_tail, node, call.version)
        return TailFetch(call, partition, offset, bytes_max, node, long_way)
    return _answer(node, call, last.request_from(offset), call.connection.allowed_fetch)


def _decode(node: Uses, call: Call) -> FetchRequest:
    request = codec.decode(call.body, call.version)
    if (
        node.settings.kafka.short_ways
        and len(request.partitions) == 1
        and request.session_epoch == FINAL_EPOCH
        and request.replica_id < 0
        and call.access.topic_refusal(request.partitions[0].topic) is None
        and call.connection.quotas is None  # what counts goes the long way
    ):
        call.connection.last_fetch = codec.Repetition(request, call.body, call.version)
        call.connection.allowed_fetch = node.security.revision
    return request


def _answer(node: Uses, call: Call, request: FetchRequest, allowed_at: int = NEVER) -> Result:
    if request.replica_id >= 0 and not call.access.may_cluster(Operation.CLUSTER_ACTION):
        return _refused(call, ClusterAuthorizationFailed())
    if request.replica_id >= 0:
        call.connection.quotas = None  # another node copies as fast as it can
    if request.replica_id >= 0 and call.version >= codec.REPLICA_STATE_FROM:
        return node.replica_sessions.fetch(call, request)
    try:
        session = node.fetch_sessions.begin(request)
    except ApiError as error:
        return _refused(call, error)
    fetch = Fetch(node, call.version, call.connection, request, session, allowed_at)
    if fetch.collect() or request.max_wait_ms <= 0 or fetch.is_empty:
        if not fetch.unverified:
            return fetch.body()
        return fetch.verify(call.park())
    return fetch.park(LongPoll(call, fetch))


def _refused(call: Call, error: ApiError) -> bytes:
    """An answer that holds nothing but the error of the request."""
    return b"".join(cast("list[bytes]", codec.encode([], call.version, error.code)))


def _answer_tail(node: Uses, version: int, tail: TailFetch) -> None:
    """What a waiting consumer gets if it is no simple matter, or nothing came in time."""
    request = tail.repetition.request_from(tail.offset)
    fetch = Fetch(node, version, tail.connection, request, None, tail.allowed_at)
    fetch.collect()
    fetch.answer(tail)


class Fetch:
    """One fetch, from its first look at the logs to its answer."""

    __slots__ = (
        "_allowed_at",
        "_answer",
        "_answers",
        "_connection",
        "_hints",
        "_is_last",
        "_node",
        "_parked_on",
        "_partitions",
        "_request",
        "_session",
        "_timer",
        "_version",
        "_wanted",
        "unverified",
    )

    def __init__(
        self,
        node: Uses,
        version: int,
        connection: Connection,
        request: FetchRequest,
        session: FetchSession | None,
        allowed_at: int,
    ) -> None:
        self._node = node
        self._allowed_at = allowed_at  # the revision of the rules at which the client may read all of it
        self._version = version
        self._connection = connection
        self._request = request
        self._session = session
        self._wanted = request.partitions if session is None else list(session.partitions.values())
        self._parked_on: list[Partition] = []
        self._partitions: list[Partition] = []  # those of `_wanted` that are here
        self._answers: list[PartitionAnswer] = []
        self._hints: list[CurrentLeader] = []  # who leads what was asked for in vain
        self._answer: Answer | None = None
        self._is_last = request.max_wait_ms <= 0  # no more waiting: what is not there by now is answered so
        self._timer: asyncio.TimerHandle | None = None
        self.unverified: list[tuple[int, Partition, Slice]] = []

    @property
    def is_empty(self) -> bool:
        """Nothing is asked for, so there is nothing to wait for."""
        return not self._wanted

    def collect(self) -> bool:
        """Look at every partition; whether there is enough (or an error) to answer with."""
        request = self._request
        answers: list[PartitionAnswer] = []
        self._answers = answers
        self._partitions = []
        self._hints = []
        self.unverified = []
        left = min(request.max_bytes, self._node.settings.limits.fetch_bytes_max)
        if (quotas := self._connection.quotas) is not None:
            left = quotas.fetch_bytes_max(left)
        total = 0
        failed = False
        for wanted in self._wanted:
            try:
                answer = self._look(wanted, left, total == 0)
            except OffsetOutOfRange as error:
                answer = self._refusal(wanted, self._out_of_range(wanted, error))
                failed = True
            except ApiError as error:
                answer = self._refusal(wanted, error)
                failed = True
            except OSError as error:
                log.error("%s-%d can't be read: %s", wanted.topic, wanted.index, error)
                answer = PartitionAnswer(wanted.topic, wanted.index, StorageFailed.code, -1, -1, -1, None)
                failed = True
            answers.append(answer)
            if answer.records is not None:
                size = _size(answer.records)
                total += size
                left -= size
            elif answer.preferred_replica >= 0:
                failed = True
        return failed or total >= request.min_bytes

    def _look(self, wanted: PartitionFetch, left: int, first: bool) -> PartitionAnswer:
        topic, index, epoch, offset, max_bytes = wanted[:5]
        rack = self._request.rack
        guard = self._connection.guard
        if guard is not None and self._allowed_at != self._node.security.revision:
            guard.access(RIGHTS).check_topic(topic)  # each time: rules may change while a fetch waits
        partition = self._node.partitions.lead(topic, index) if not rack else self._near(topic, index, rack)
        self._partitions.append(partition)
        if epoch != -1:
            partition.check_epoch(epoch)
        high, stable, start = partition.high_watermark, partition.stable_offset, partition.log.start_offset
        if rack and not partition.leads:
            if offset > high:
                if self._is_last:
                    raise OffsetNotAvailable(f"Offset {offset} is not known to be committed here yet.")
                offset = high  # wait for it
        elif rack and partition.log.start_offset <= offset <= high:
            near = self._replica_near(partition, rack)
            if near is not None:
                return PartitionAnswer(topic, index, 0, high, stable, start, None, preferred_replica=near)
        records: bytes | Slice | None = None
        committed = self._request.isolation == codec.READ_COMMITTED
        if offset != high:  # at the end there is nothing to look for
            read = partition.read_stable if committed else partition.read
            found = read(offset, min(max_bytes, left) if left > 0 else 0)
            if found is not None and (first or (found.length <= left and found.length <= max_bytes)):
                records = self._take(partition, found)
        answer = PartitionAnswer(topic, index, 0, high, stable, start, records)
        if committed and records is not None:
            aborted = partition.aborted(offset)
            return answer._replace(aborted=aborted) if aborted else answer
        return answer

    def _near(self, topic: codec.TopicKey, index: int, rack: str) -> Partition:
        """The partition for a consumer in this rack: led here, or followed closely. Raises what else."""
        try:
            return self._node.partitions.lead(topic, index)
        except NotLeaderOrFollower:
            partition = self._followed(topic, index) if rack == self._node.registration.me.rack else None
            if partition is None:
                raise
            return partition

    def _followed(self, topic: codec.TopicKey, index: int) -> Partition | None:
        """The replica that follows its leader closely, if there is one here."""
        image = self._node.image
        found = image.topics.get(topic) if isinstance(topic, str) else image.topics_by_id.get(topic)
        partition = None if found is None else self._node.partitions.replica(found.id, index)
        if found is None or partition is None or partition.closed or partition.copying is None:
            return None
        is_in_sync = self._node.registration.me.id in found.partitions[index].isr
        if not is_in_sync or not partition.copying.is_current:
            return None
        partition.copying.read_here()
        return partition

    def _replica_near(self, partition: Partition, rack: str) -> int | None:
        topic = self._node.image.topics_by_id.get(partition.topic_id)
        if topic is None or partition.leadership is None:
            return None
        return replica_near(self._node.image, topic.partitions[partition.index], partition.index, rack)

    def _refusal(self, wanted: PartitionFetch, error: ApiError) -> PartitionAnswer:
        if isinstance(error, CorruptMessage):
            self._node.damaged_copies.found(self._partitions[-1])
        leader = None
        if error.code in WRONG_LEADER:
            view = self._view()
            leader = view.leader_hint(wanted.topic, wanted.index, error.code)
        if leader is not None:
            self._hints.append(leader)
        return PartitionAnswer(
            wanted.topic, wanted.index, error.code, -1, -1, -1, None, diverging=None, leader=leader
        )

    def _out_of_range(self, wanted: PartitionFetch, error: OffsetOutOfRange) -> ApiError:
        """A leader that was replaced may lack what its successor has: no consumer is sent back for that."""
        partition = self._node.partitions.find(wanted.topic, wanted.index)
        if partition is None or self._node.evidence.covers(partition):
            return error
        return NotLeaderOrFollower()

    def _endpoints(self) -> list[NodeEndpoint]:
        """Where the leaders are that the answer names."""
        return self._view().endpoints(self._hints)

    def _view(self) -> ClusterView:
        return ClusterView(self._node.image, self._node.registration.me, self._connection.listener)

    def _take(self, partition: Partition, found: Slice) -> bytes | Slice:
        if not found.verified:
            self.unverified.append((len(self._answers), partition, found))
        elif found.length <= COPY_BYTES_MAX or found.file.fileno() < 0:
            return found.file.read(found.position, found.length)
        return found

    def body(self) -> Body:
        session = self._session
        endpoints = self._endpoints() if self._hints else ()
        if session is None:
            parts = codec.encode(self._answers, self._version, endpoints=endpoints)
        else:
            parts = codec.encode(session.news(self._answers), self._version, 0, session.id, endpoints)
        # The slices are those that `_take` put in.
        found = parts[0] if len(parts) == 1 and isinstance(parts[0], bytes) else cast("list[Part]", parts)
        if (quotas := self._connection.quotas) is not None:
            return quotas.fetched(self._connection, found, self._node.loop.time())
        return found

    # --- waiting

    def park(self, answer: Answer) -> Answer:
        """Wait until one of the partitions commits something, or the time is over."""
        self._answer = answer
        self._parked_on = self._partitions  # `collect` will look for them anew
        for partition in self._parked_on:
            partition.readers[self] = None
        wait_ms = min(self._request.max_wait_ms, WAIT_MS_MAX)
        self._timer = self._node.loop.call_later(wait_ms / 1000, self.expire)
        return answer

    def wake(self) -> None:
        """A partition has news."""
        answer = self._answer
        assert answer is not None
        if self.collect():
            self.unpark()
            self.answer(answer)

    def expire(self) -> None:
        """The time is over: answer with what there is."""
        answer = self._answer
        assert answer is not None
        self.unpark()
        self._is_last = True
        self.collect()
        self.answer(answer)

    def unpark(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._parked_on:
            partition.readers.pop(self, None)

    def answer(self, answer: Answer) -> None:
        if self.unverified:
            self.verify(answer)
        else:
            answer.complete(self.body())

    # --- checking what lay on the disk

    def verify(self, answer: Answer) -> Answer:
        """Check the CRCs of cold data in a thread (which also warms the page cache), then answer."""
        checks = self.unverified

        def check() -> list[Slice | Exception]:
            return [_checked(partition, found) for _, partition, found in checks]

        def done(results: list[Slice | Exception], failed: BaseException | None) -> None:
            if failed is not None:
                log.error("a fetch could not be checked", exc_info=failed)
                answer.hang_up("its fetch failed")
                return
            for (number, partition, _), result in zip(checks, results, strict=True):
                self._verified(number, partition, result)
            if not answer.abandoned:
                answer.complete(self.body())

        self._node.cold_workers.run(check, done)
        return answer

    def _verified(self, number: int, partition: Partition, result: Slice | Exception) -> None:
        answer = self._answers[number]
        if isinstance(result, Slice):
            partition.log.mark_verified(result)
            self._answers[number] = answer._replace(records=result)
        else:
            if isinstance(result, CorruptMessage):
                self._node.damaged_copies.found(partition)
            code = result.code if isinstance(result, ApiError) else StorageFailed.code
            self._answers[number] = answer._replace(error=code, records=None)


class LongPoll(Answer):
    """The answer of a fetch that waits; when its connection ends, so does the waiting."""

    __slots__ = ("_fetch",)

    def __init__(self, call: Call, fetch: Fetch) -> None:
        super().__init__(call.connection, call.correlation, call.flexible)
        self._fetch = fetch
        call.connection.park(self)

    def abandon(self) -> None:
        self._fetch.unpark()


def _checked(partition: Partition, found: Slice) -> Slice | Exception:
    """What may be served of it: all that lies before the first damaged batch, or the error if that is the
    one that was asked for."""
    while True:
        try:
            partition.log.verify(found)
            return found
        except DamagedBatch as damage:
            if damage.position <= found.position:
                return damage
            found = found._replace(length=damage.position - found.position)
        except (CorruptMessage, OSError) as error:
            return error


def _size(records: codec.Records) -> int:
    return len(records) if isinstance(records, bytes) else records.length
