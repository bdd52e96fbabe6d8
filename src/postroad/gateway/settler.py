"""What became of messages, said to the nodes: concurrent settlements of one kind go out as one request.

A partition's acknowledgements are taken as a whole or not at all. So where one of several is refused, they
are said again one by one, and each gets its own answer.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from postroad.client import owned_locks
from postroad.client.client import Client
from postroad.client.share_message import AckType
from postroad.client.share_session import AckBatch, Place, Terms
from postroad.errors import InvalidRecordState, PostroadError, TryAgain
from postroad.gateway.receipts import Receipt
from postroad.gateway.topic_ids import TopicIds
from postroad.wire.share_requests import NOT_GIVEN

TRY_S: Final = 10.0


class Kind(NamedTuple):
    """What goes into one request."""

    subscription: str
    owner: bytes
    type: AckType
    lock_ms: int
    delay_ms: int


class Saying(NamedTuple):
    receipt: Receipt
    future: asyncio.Future[PostroadError | None]


class Settler:
    def __init__(self, client: Client, topic_ids: TopicIds) -> None:
        self._client = client
        self._topic_ids = topic_ids
        self._gathered: dict[Kind, list[Saying]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    async def settle(
        self,
        receipts: Sequence[Receipt],
        type_: AckType,
        lock_ms: int | None = None,
        delay_ms: int | None = None,
    ) -> list[PostroadError | None]:
        """For each: None when it is durable, else why nothing was changed (InvalidRecordState: not held)."""
        loop = asyncio.get_running_loop()
        sayings = [Saying(receipt, loop.create_future()) for receipt in receipts]
        if not self._gathered:
            loop.call_soon(self._send)
        lock = NOT_GIVEN if lock_ms is None else lock_ms
        delay = NOT_GIVEN if delay_ms is None else delay_ms
        for saying in sayings:
            kind = Kind(saying.receipt.subscription, saying.receipt.owner, type_, lock, delay)
            self._gathered[kind].append(saying)
        return list(await asyncio.gather(*(saying.future for saying in sayings)))

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, defaultdict(list)
        for kind, sayings in gathered.items():
            task = asyncio.create_task(self._say(kind, sayings))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _say(self, kind: Kind, sayings: list[Saying]) -> None:
        by_node: dict[int, list[Saying]] = defaultdict(list)
        for saying in sayings:
            try:
                by_node[
                    await self._topic_ids.leader(saying.receipt.topic_id, saying.receipt.partition)
                ].append(saying)
            except PostroadError as error:
                _tell(saying, error)
        await asyncio.gather(*(self._say_at(node, kind, those) for node, those in by_node.items()))

    async def _say_at(self, node: int, kind: Kind, sayings: list[Saying]) -> None:
        try:
            refused = await self._client.retry(lambda: self._ask(node, kind, sayings), timeout_s=TRY_S)
        except PostroadError as failed:
            for saying in sayings:
                _tell(saying, failed)
            return
        again: list[Saying] = []
        for place, those in _by_place(sayings).items():
            error = refused.get(place)
            if isinstance(error, InvalidRecordState) and len(those) > 1:
                again += those
                continue
            for saying in those:
                _tell(saying, error)
        await asyncio.gather(*(self._say_at(node, kind, [saying]) for saying in again))

    async def _ask(self, node: int, kind: Kind, sayings: list[Saying]) -> dict[Place, PostroadError]:
        batches = {
            place: [
                AckBatch(offset, offset, kind.type) for offset in sorted({s.receipt.offset for s in those})
            ]
            for place, those in _by_place(sayings).items()
        }
        terms = Terms(kind.type is AckType.RENEW, kind.lock_ms, kind.delay_ms)
        subscription, owner = kind.subscription, kind.owner.hex()
        refused = await owned_locks.settle(self._client, node, subscription, owner, batches, terms)
        for error in refused.values():
            if isinstance(error, TryAgain):
                raise error
        return dict(refused)


def _by_place(sayings: Sequence[Saying]) -> dict[Place, list[Saying]]:
    places: dict[Place, list[Saying]] = defaultdict(list)
    for saying in sayings:
        places[saying.receipt.topic_id, saying.receipt.partition].append(saying)
    return places


def _tell(saying: Saying, error: PostroadError | None) -> None:
    if not saying.future.done():
        saying.future.set_result(error)
