"""A member that notes when it asked and when it was answered, and for how long its sessions lasted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from postroad.client.client import Client
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_member import JOIN, LEAVE, ShareMember
from postroad.client.share_message import ShareMessage
from postroad.client.share_outbox import Outbox
from postroad.client.share_session import LOST, AckBatch, ShareSession, Terms, TopicIdPartition
from postroad.errors import ApiError
from simulator.workloads.queue_history import NEVER, LostFetch, Span

Now = Callable[[], float]


class Fetched(NamedTuple):
    """How a fetch that was answered went: between which moments, in which session, for how long it locks.

    Session and membership are those in which it was asked: its answer may come when its member has been
    taken for dead and has joined again."""

    asked_at: float
    came_at: float
    lock_ms: int
    session: Span
    membership: Span


Arrived = Callable[["WatchedConsumer", ShareMessage, Fetched], None]


class WatchedSession(ShareSession):
    def __init__(
        self, client: Client, node: int, member: WatchedMember, now: Now, lost: list[LostFetch]
    ) -> None:
        super().__init__(client, node, member.group, member.id)
        self.span = Span()
        self.asked_at = NEVER  # for the fetch that is under way
        self.fetched = Fetched(NEVER, NEVER, 0, self.span, member.span)  # the last one that was answered
        self._watched_member = member
        self._now = now
        self._lost = lost

    async def fetch(
        self, topic_partitions: Iterable[TopicIdPartition], **options: Any
    ) -> list[tuple[TopicIdPartition, Any]]:
        span, self.asked_at = self.span, self._now()
        asked_at, membership = self.asked_at, self._watched_member.span
        try:
            found = await super().fetch(topic_partitions, **options)
        except LOST:
            self._lost.append(LostFetch(self._member, asked_at, self._now()))
            raise
        self.fetched = Fetched(asked_at, self._now(), options["lock_ms"], span, membership)
        span.prove(asked_at, self.fetched.came_at)
        return found

    async def acknowledge(
        self, batches: Mapping[TopicIdPartition, Sequence[AckBatch]], terms: Terms
    ) -> dict[TopicIdPartition, ApiError]:
        span, said_at = self.span, self._now()
        refused = await super().acknowledge(batches, terms)
        span.prove(said_at, self._now())
        return refused

    def _reset(self) -> None:
        super()._reset()
        self.span = Span()


class WatchedMember(ShareMember):
    def __init__(self, client: Client, group: str, now: Now) -> None:
        super().__init__(client, group)
        self.span = Span()
        self._now = now

    async def _heartbeat(self) -> None:
        if self._epoch == LEAVE:
            await super()._heartbeat()
            return
        if self._epoch == JOIN:
            self.span = Span()
        span, said_at = self.span, self._now()
        await super()._heartbeat()
        span.prove(said_at, self._now())

    async def fall_silent(self) -> None:
        """No heartbeats any more: the node takes it for dead after a while."""
        await self._stop_beating()


class WatchedConsumer(ShareConsumer):
    """`lost` takes the fetches whose answer never came; `arrived` hears of each message as soon as it comes,
    though a later `poll` may return it: several nodes are asked at once."""

    def __init__(
        self,
        client: Client,
        group: str,
        topics: Sequence[str],
        now: Now,
        lost: list[LostFetch],
        arrived: Arrived,
    ) -> None:
        super().__init__(client, group, topics)
        self._watched_member = WatchedMember(client, group, now)
        self._member = self._watched_member
        self._now = now
        self._lost = lost
        self._on_arrival = arrived

    @property
    def has_lost(self) -> bool:
        """Whether it may hold messages that it never saw."""
        return any(each.member == self.member_id for each in self._lost)

    def reads(self, topic: str, partition: int) -> bool:
        """Whether it has fetched from this partition, so that it can say something of its messages."""
        return (topic, partition) in self._homes

    async def close(self) -> None:
        """What fetches that are under way still bring is released."""
        self._lose_answers()
        await super().close()

    async def fall_silent(self) -> None:
        await self._watched_member.fall_silent()

    async def vanish(self) -> None:
        """End as a process that dies: nobody is told, the connections end with the client's."""
        await self.fall_silent()
        self._lose_answers()
        for task in self._under_way.values():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._under_way.clear()

    def _take(self, node: int, answers: Iterable[tuple[TopicIdPartition, Any]]) -> None:
        before = len(self._arrived)
        try:
            super()._take(node, answers)
        finally:
            for message in list(self._arrived)[before:]:
                self._on_arrival(self, message, self._watched(node).fetched)

    def _lose_answers(self) -> None:
        """What fetches have brought, or still bring, and no poll has looked at, nobody will see."""
        for node in self._under_way:
            self._lost.append(LostFetch(self.member_id, self._watched(node).asked_at, self._now()))

    def _watched(self, node: int) -> WatchedSession:
        session = self._sessions[node]
        assert isinstance(session, WatchedSession)
        return session

    def _session(self, node: int) -> ShareSession:
        if node not in self._sessions:
            session = WatchedSession(self._client, node, self._watched_member, self._now, self._lost)
            self._sessions[node] = session
            self._outboxes[node] = Outbox(session)
        return self._sessions[node]
