"""What became of messages, said to the nodes: concurrent settlements of one kind go out as one request.

A partition's acknowledgements are taken as a whole or not at all. So where they are refused, they are said
again in halves, down to the one that is at fault, and each gets its own answer.

What could not be said is said again to whoever leads by then. A node that died may have written an accept
down before: one that its successor refuses because the message is done was done by us.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from postroad.client import owned_locks, subscriptions
from postroad.client.browse import DONE
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType
from postroad.client.share_session import AckBatch, Terms, TopicIdPartition
from postroad.errors import (
    InvalidRecordState,
    PostroadError,
    TryAgain,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from postroad.gateway.receipts import Receipt
from postroad.gateway.topic_ids import TopicIds
from postroad.wire.share_requests import NOT_GIVEN, InTransaction

TRY_S: Final = 10.0

Offsets = dict[TopicIdPartition, list[int]]
Failures = dict[tuple[bytes, int, int], PostroadError]
"""By topic, partition and offset."""


class SettlementKind(NamedTuple):
    """What goes into one request."""

    subscription: str
    owner: bytes
    type: AckType
    lock_ms: int
    delay_ms: int
    reason: str
    late: int
    transaction: InTransaction | None


class PendingSettlement(NamedTuple):
    """What one caller says, of one kind; the future has an outcome for each receipt."""

    receipts: list[Receipt]
    future: asyncio.Future[list[PostroadError | None]]


class Settler:
    def __init__(self, client: Client, topic_ids: TopicIds) -> None:
        self._client = client
        self._topic_ids = topic_ids
        self._gathered: dict[SettlementKind, list[PendingSettlement]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    async def settle(
        self,
        receipts: Sequence[Receipt],
        type_: AckType,
        lock_ms: int | None = None,
        delay_ms: int | None = None,
        reason: str = "",
        late: int = NOT_GIVEN,
        transaction: InTransaction | None = None,
    ) -> list[PostroadError | None]:
        """For each: None when it is durable, else why nothing was changed (InvalidRecordState: not held).

        `late`: what counts when the lock is over, in the words of `wire.share_requests`. `transaction`: of
        which pledges are a part; of a partition all are taken or none."""
        loop = asyncio.get_running_loop()
        if not self._gathered:
            loop.call_soon(self._send)
        lock = NOT_GIVEN if lock_ms is None else lock_ms
        delay = NOT_GIVEN if delay_ms is None else delay_ms
        said: list[tuple[list[int], PendingSettlement]] = []
        for (subscription, owner), indexes in _by_owner(receipts).items():
            pending = PendingSettlement([receipts[index] for index in indexes], loop.create_future())
            kind = SettlementKind(subscription, owner, type_, lock, delay, reason, late, transaction)
            self._gathered[kind].append(pending)
            said.append((indexes, pending))
        outcomes: list[PostroadError | None] = [None] * len(receipts)
        for indexes, pending in said:
            for index, outcome in zip(indexes, await pending.future, strict=True):
                outcomes[index] = outcome
        return outcomes

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, defaultdict(list)
        for kind, settlements in gathered.items():
            task = asyncio.create_task(self._send_kind(kind, settlements))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send_kind(self, kind: SettlementKind, settlements: list[PendingSettlement]) -> None:
        failures: Failures = {}
        wanted = _by_topic_partition(chain.from_iterable(said.receipts for said in settlements))
        await self._settle(kind, wanted, failures)
        for said in settlements:
            if not said.future.done():
                said.future.set_result([failures.get(receipt[1:4]) for receipt in said.receipts])

    async def _settle(self, kind: SettlementKind, wanted: Offsets, failures: Failures) -> None:
        """Say it to the leaders; what was refused as a whole is said again in halves."""
        attempts = _Attempts(self._client, self._topic_ids, kind, wanted)
        try:
            await self._client.retry(attempts.one, timeout_s=TRY_S)
        except PostroadError as failed:
            attempts.refused.update(dict.fromkeys(attempts.left, failed))
        halves: list[Offsets] = []
        for topic_partition, error in attempts.refused.items():
            offsets = wanted[topic_partition]
            if not isinstance(error, InvalidRecordState) or kind.type is AckType.PLEDGE:
                _fail(failures, topic_partition, offsets, error)
            elif len(offsets) > 1:
                middle = len(offsets) // 2
                halves += [{topic_partition: offsets[:middle]}, {topic_partition: offsets[middle:]}]
            elif not (kind.type is AckType.ACCEPT and await attempts.is_done(topic_partition, offsets[0])):
                _fail(failures, topic_partition, offsets, error)
        await _all(self._settle(kind, half, failures) for half in halves)


class _Attempts:
    """Tries to settle messages of some partitions, each at the node that leads it at that moment."""

    def __init__(self, client: Client, topic_ids: TopicIds, kind: SettlementKind, wanted: Offsets) -> None:
        self.left = dict(wanted)  # what is not yet answered: only that is said again
        self.refused: dict[TopicIdPartition, PostroadError] = {}
        self._client = client
        self._topic_ids = topic_ids
        self._kind = kind
        self._in_doubt: set[TopicIdPartition] = set()  # it was said, and the answer got lost

    async def one(self) -> None:
        """Say all that is left, once. Raises a TryAgain if something still is."""
        again: list[TryAgain] = []
        by_node: dict[int, Offsets] = defaultdict(dict)
        for topic_partition, offsets in list(self.left.items()):
            try:
                by_node[await self._topic_ids.leader(*topic_partition)][topic_partition] = offsets
            except (UnknownTopicId, UnknownTopicOrPartition) as error:
                self._refuse(topic_partition, error)
            except TryAgain as error:
                again.append(error)
            except PostroadError as error:
                self._refuse(topic_partition, error)
        await _all(self._say(node, those, again) for node, those in by_node.items())
        if again:
            raise again[0]

    async def _say(self, node: int, wanted: Offsets, again: list[TryAgain]) -> None:
        try:
            errors = await self._ask(node, wanted)
        except TryAgain as error:
            self._in_doubt.update(wanted)
            again.append(error)
            return
        except PostroadError as error:
            errors = dict.fromkeys(wanted, error)
        for topic_partition in wanted:
            refused = errors.get(topic_partition)
            if refused is None:
                del self.left[topic_partition]
            elif isinstance(refused, TryAgain):
                self._in_doubt.add(topic_partition)  # a leader that resigned may have written it down
                again.append(refused)
            else:
                self._refuse(topic_partition, refused)

    def _refuse(self, topic_partition: TopicIdPartition, error: PostroadError) -> None:
        del self.left[topic_partition]
        self.refused[topic_partition] = error

    async def _ask(self, node: int, wanted: Offsets) -> dict[TopicIdPartition, PostroadError]:
        kind = self._kind
        batches = {topic_partition: _runs(offsets, kind.type) for topic_partition, offsets in wanted.items()}
        terms = Terms(
            kind.type is AckType.RENEW, kind.lock_ms, kind.delay_ms, kind.reason, kind.late, kind.transaction
        )
        refused: Mapping[TopicIdPartition, PostroadError] = await owned_locks.settle(
            self._client, node, kind.subscription, kind.owner.hex(), batches, terms
        )
        return dict(refused)

    async def is_done(self, topic_partition: TopicIdPartition, offset: int) -> bool:
        """Whether a message that was refused is done with because an earlier try, whose answer got lost, has
        done it."""
        if topic_partition not in self._in_doubt:
            return False
        topic_id, index = topic_partition
        try:
            topic = await self._topic_ids.topic(topic_id)
            where = TopicPartition(topic.name, index)
            found = await subscriptions.peek(self._client, self._kind.subscription, where, offset, 1)
        except PostroadError:
            return False
        return offset < found.start_offset or any(
            each.state == DONE and each.first <= offset <= each.last for each in found.ranges
        )


async def _all(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """At the same time; one alone, as it is nearly always, without a task."""
    those = list(works)
    if len(those) == 1:
        await those[0]
    else:
        await asyncio.gather(*those)


def _by_owner(receipts: Sequence[Receipt]) -> dict[tuple[str, bytes], list[int]]:
    """Where in the list each owner's receipts are."""
    owners: dict[tuple[str, bytes], list[int]] = defaultdict(list)
    for index, receipt in enumerate(receipts):
        owners[receipt.subscription, receipt.owner].append(index)
    return owners


def _by_topic_partition(receipts: Iterable[Receipt]) -> Offsets:
    """Offsets of each partition, in order, each once."""
    topic_partitions: dict[TopicIdPartition, set[int]] = defaultdict(set)
    for _, topic_id, partition, offset, _, _ in receipts:
        topic_partitions[topic_id, partition].add(offset)
    return {topic_partition: sorted(offsets) for topic_partition, offsets in topic_partitions.items()}


def _runs(offsets: list[int], type_: AckType) -> list[AckBatch]:
    """Neighbours as one."""
    runs: list[AckBatch] = []
    first = last = offsets[0]
    for offset in offsets[1:]:
        if offset != last + 1:
            runs.append(AckBatch(first, last, type_))
            first = offset
        last = offset
    runs.append(AckBatch(first, last, type_))
    return runs


def _fail(
    failures: Failures, topic_partition: TopicIdPartition, offsets: Iterable[int], error: PostroadError
) -> None:
    for offset in offsets:
        failures[*topic_partition, offset] = error
