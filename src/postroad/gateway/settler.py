"""What became of messages, said to the nodes: concurrent settlements of one kind go out as one request.

A partition's acknowledgements are taken as a whole or not at all. So where they are refused, they are said
again in halves, down to the one that is at fault, and each gets its own answer.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from postroad.client import owned_locks
from postroad.client.client import Client
from postroad.client.share_message import AckType
from postroad.client.share_session import AckBatch, Terms, TopicIdPartition
from postroad.errors import InvalidRecordState, PostroadError, TryAgain
from postroad.gateway.receipts import Receipt
from postroad.gateway.topic_ids import TopicIds
from postroad.wire.share_requests import NOT_GIVEN

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
    ) -> list[PostroadError | None]:
        """For each: None when it is durable, else why nothing was changed (InvalidRecordState: not held).

        `late`: what counts when the lock is over, in the words of `wire.share_requests`."""
        loop = asyncio.get_running_loop()
        if not self._gathered:
            loop.call_soon(self._send)
        lock = NOT_GIVEN if lock_ms is None else lock_ms
        delay = NOT_GIVEN if delay_ms is None else delay_ms
        said: list[tuple[list[int], PendingSettlement]] = []
        for (subscription, owner), indexes in _by_owner(receipts).items():
            pending = PendingSettlement([receipts[index] for index in indexes], loop.create_future())
            kind = SettlementKind(subscription, owner, type_, lock, delay, reason, late)
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
        by_node: dict[int, Offsets] = defaultdict(dict)
        for topic_partition, offsets in _by_topic_partition(
            chain.from_iterable(said.receipts for said in settlements)
        ).items():
            try:
                by_node[await self._topic_ids.leader(*topic_partition)][topic_partition] = offsets
            except PostroadError as error:
                _fail(failures, topic_partition, offsets, error)
        await _all(self._send_to(node, kind, those, failures) for node, those in by_node.items())
        for said in settlements:
            if not said.future.done():
                said.future.set_result([failures.get(receipt[1:4]) for receipt in said.receipts])

    async def _send_to(self, node: int, kind: SettlementKind, wanted: Offsets, failures: Failures) -> None:
        left = dict(wanted)  # what is not yet answered: only that is said again
        refused: dict[TopicIdPartition, PostroadError] = {}

        async def attempt() -> None:
            errors = await self._ask(node, kind, left)
            again: TryAgain | None = None
            for topic_partition in list(left):
                error = errors.get(topic_partition)
                if isinstance(error, TryAgain):
                    again = error
                    continue
                del left[topic_partition]
                if error is not None:
                    refused[topic_partition] = error
            if again is not None:
                raise again

        try:
            await self._client.retry(attempt, timeout_s=TRY_S)
        except PostroadError as failed:
            refused.update(dict.fromkeys(left, failed))
        halves: list[Offsets] = []
        for topic_partition, error in refused.items():
            offsets = wanted[topic_partition]
            if isinstance(error, InvalidRecordState) and len(offsets) > 1:
                middle = len(offsets) // 2
                halves += [{topic_partition: offsets[:middle]}, {topic_partition: offsets[middle:]}]
            else:
                _fail(failures, topic_partition, offsets, error)
        await _all(self._send_to(node, kind, half, failures) for half in halves)

    async def _ask(
        self, node: int, kind: SettlementKind, wanted: Offsets
    ) -> dict[TopicIdPartition, PostroadError]:
        batches = {topic_partition: _runs(offsets, kind.type) for topic_partition, offsets in wanted.items()}
        terms = Terms(kind.type is AckType.RENEW, kind.lock_ms, kind.delay_ms, kind.reason, kind.late)
        refused: Mapping[TopicIdPartition, PostroadError] = await owned_locks.settle(
            self._client, node, kind.subscription, kind.owner.hex(), batches, terms
        )
        return dict(refused)


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
