"""A member that notes when it asked and when it was answered, and for how long its sessions lasted."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from postroad.client.client import Client
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_member import JOIN, LEAVE, ShareMember
from postroad.client.share_outbox import Outbox
from postroad.client.share_session import LOST, AckBatch, ShareSession, Terms, TopicIdPartition
from postroad.errors import ApiError
from simulator.workloads.queue_history import NEVER, LostFetch, Span

Now = Callable[[], float]


class WatchedSession(ShareSession):
    def __init__(
        self, client: Client, node: int, group: str, member: str, now: Now, lost: list[LostFetch]
    ) -> None:
        super().__init__(client, node, group, member)
        self.span = Span()
        self.asked_at = self.came_at = NEVER  # of the last fetch that was answered
        self._now = now
        self._lost = lost

    async def fetch(
        self, topic_partitions: Iterable[TopicIdPartition], **options: Any
    ) -> list[tuple[TopicIdPartition, Any]]:
        span, asked_at = self.span, self._now()
        try:
            found = await super().fetch(topic_partitions, **options)
        except LOST:
            self._lost.append(LostFetch(self._member, asked_at, self._now()))
            raise
        self.asked_at, self.came_at = asked_at, self._now()
        span.prove(asked_at, self.came_at)
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
    """`lost` takes the fetches whose answer never came."""

    def __init__(
        self, client: Client, group: str, topics: Sequence[str], now: Now, lost: list[LostFetch]
    ) -> None:
        super().__init__(client, group, topics)
        self._watched_member = WatchedMember(client, group, now)
        self._member = self._watched_member
        self._now = now
        self._lost = lost

    @property
    def has_lost(self) -> bool:
        """Whether it may hold messages that it never saw."""
        return any(each.member == self.member_id for each in self._lost)

    @property
    def membership(self) -> Span:
        return self._watched_member.span

    def session(self) -> WatchedSession:
        """The session with the one node that there is."""
        (session,) = self._sessions.values()
        assert isinstance(session, WatchedSession)
        return session

    def reads(self, topic: str, partition: int) -> bool:
        """Whether it has fetched from this partition, so that it can say something of its messages."""
        return (topic, partition) in self._homes

    async def fall_silent(self) -> None:
        await self._watched_member.fall_silent()

    async def vanish(self) -> None:
        """End as a process that dies: nobody is told, the connections end with the client's."""
        await self.fall_silent()
        for task in self._under_way.values():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._under_way.clear()

    def _session(self, node: int) -> ShareSession:
        if node not in self._sessions:
            session = WatchedSession(
                self._client, node, self._member.group, self._member.id, self._now, self._lost
            )
            self._sessions[node] = session
            self._outboxes[node] = Outbox(session)
        return self._sessions[node]
