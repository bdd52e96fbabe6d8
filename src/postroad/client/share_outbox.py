"""Acknowledgements on their way: gathered, sent in as few requests as can be, each with its own outcome.

A node takes the acknowledgements of a partition in one request all or none, so one message whose lock has
ended would spoil it for its neighbours. Then the halves are sent on their own, down to the messages that
are really at fault; ISOLATION_REQUESTS_MAX bounds that, and what is left then is refused as a whole: it
was not changed, and comes again. Pledges are not sent in halves: whoever hears of one that is
refused aborts the transaction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from postroad.client.share_message import AckType
from postroad.client.share_session import AckBatch, ShareSession, Terms, TopicIdPartition
from postroad.errors import (
    InvalidRecordState,
    InvalidShareSessionEpoch,
    NetworkException,
    PostroadError,
    ShareSessionNotFound,
)

ISOLATION_REQUESTS_MAX: Final = 64

Outcome = asyncio.Future[PostroadError | None]


class Acknowledgement(NamedTuple):
    topic_partition: TopicIdPartition
    offset: int
    type: AckType
    terms: Terms
    outcome: Outcome


class Outbox:
    """What is to be said to one node. What is put while a request is under way goes with the next one.

    Sending is a task of its own: whoever stops waiting for an outcome doesn't stop that of others.
    """

    def __init__(self, session: ShareSession) -> None:
        self._session = session
        self._waiting: dict[tuple[TopicIdPartition, int], Acknowledgement] = {}
        self._sending: asyncio.Task[None] | None = None

    def put(self, topic_partition: TopicIdPartition, offset: int, type_: AckType, terms: Terms) -> Outcome:
        """Queue an acknowledgement, in place of an earlier one of this message. None is a good outcome."""
        earlier = self._waiting.get((topic_partition, offset))
        outcome = earlier.outcome if earlier else asyncio.get_running_loop().create_future()
        self._waiting[topic_partition, offset] = Acknowledgement(
            topic_partition, offset, type_, terms, outcome
        )
        return outcome

    def send(self) -> None:
        """All that was put is on its way; outcomes follow."""
        if self._waiting and self._sending is None:
            self._sending = asyncio.create_task(self._drain(), name=f"acknowledge {self._session.node}")

    async def close(self) -> None:
        """Nothing is on its way any more."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    async def _drain(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = list(self._waiting.values()), {}
                try:
                    for terms in dict.fromkeys(said.terms for said in waiting):
                        await self._send([said for said in waiting if said.terms == terms], terms)
                finally:
                    _settle(waiting, NetworkException("The client was stopped."))
        finally:
            self._sending = None

    async def _send(self, said: Sequence[Acknowledgement], terms: Terms) -> None:
        left = deque([list(said)])
        requests = 0
        while left:
            together = left.popleft()
            requests += 1
            refused = await self._ask(together, terms)
            for topic_partition, part in _by_topic_partition(together).items():
                error = refused.get(topic_partition)
                can_divide = isinstance(error, InvalidRecordState) and len(part) > 1
                if terms.transaction is not None:
                    can_divide = False  # it is to be aborted: what else is held, stays so
                if can_divide and requests + len(left) < ISOLATION_REQUESTS_MAX:
                    half = len(part) // 2
                    left += (part[:half], part[half:])
                else:
                    _settle(part, error)

    async def _ask(
        self, together: Sequence[Acknowledgement], terms: Terms
    ) -> dict[TopicIdPartition, PostroadError]:
        batches = {
            topic_partition: runs(part) for topic_partition, part in _by_topic_partition(together).items()
        }
        try:
            try:
                refused = await self._session.acknowledge(batches, terms)
            except (ShareSessionNotFound, InvalidShareSessionEpoch):
                refused = await self._session.acknowledge(batches, terms)  # nothing was changed
        except PostroadError as error:
            return dict.fromkeys(batches, error)
        return dict[TopicIdPartition, PostroadError](refused)


def runs(said: Iterable[Acknowledgement]) -> list[AckBatch]:
    """Neighbours of which the same is said, as ascending ranges."""
    found: list[AckBatch] = []
    for ack in sorted(said, key=lambda ack: ack.offset):
        if found and found[-1].last + 1 == ack.offset and found[-1].type == ack.type:
            found[-1] = AckBatch(found[-1].first, ack.offset, ack.type)
        else:
            found.append(AckBatch(ack.offset, ack.offset, ack.type))
    return found


def _by_topic_partition(said: Iterable[Acknowledgement]) -> dict[TopicIdPartition, list[Acknowledgement]]:
    """In ascending order, so that halves are as few ranges as can be."""
    gathered: dict[TopicIdPartition, list[Acknowledgement]] = {}
    for ack in sorted(said, key=lambda ack: ack.offset):
        gathered.setdefault(ack.topic_partition, []).append(ack)
    return gathered


def _settle(part: Iterable[Acknowledgement], error: PostroadError | None) -> None:
    for ack in part:
        if not ack.outcome.done():
            ack.outcome.set_result(error)
