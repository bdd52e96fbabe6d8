"""A member of a share group: joins, learns which partitions it reads, stays alive, leaves.

    joining ── heartbeat, epoch 0 ──▶ member ── heartbeats ──▶ … ── heartbeat, epoch -1 ──▶ gone
       ▲                                │
       └──── unknown member, fenced ────┘

The member makes its own id and keeps it. Partitions are shared: that another member reads the same ones
is usual, so nothing has to be given up before it is read elsewhere, and joining never waits for others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.client.client import Client
from postroad.errors import FencedMemberEpoch, PostroadError, TryAgain, UnknownMemberId, by_code
from postroad.system.chance import make_uuid
from postroad.wire.messages import share_group_heartbeat as api

JOIN: Final = 0
LEAVE: Final = -1
RETRY_S: Final = 0.2  # after a coordinator that is away or moves
LEAVE_TIMEOUT_S: Final = 5.0
REJOIN: Final = (UnknownMemberId, FencedMemberEpoch)


class ShareMember:
    """`assigned` is what it reads now, by topic id; `changed` is set whenever that was told anew."""

    def __init__(self, client: Client, group: str) -> None:
        self.id = str(make_uuid(client.runtime.random))
        self.group = group
        self.assigned: Mapping[bytes, Sequence[int]] = {}
        self.changed = asyncio.Event()
        self.failure: PostroadError | None = None  # what ended the heartbeats; only the caller can mend it
        self._client = client
        self._topics: list[str] = []
        self._topics_told = False
        self._epoch = JOIN
        self._interval_s = 0.0
        self._lane = client.new_lane("share group")
        self._beating: asyncio.Task[None] | None = None

    async def join(self, topics: Sequence[str]) -> None:
        """A member that wants these topics. Partitions come with this or with a later heartbeat."""
        await self._stop_beating()
        self._topics, self._topics_told, self.failure = sorted(topics), False, None
        await self._client.retry(self._heartbeat)
        self._beating = asyncio.create_task(self._beat(), name=f"share heartbeat {self.group}")

    async def leave(self) -> None:
        await self._stop_beating()
        if self._epoch != JOIN:
            self._epoch = LEAVE
            with contextlib.suppress(PostroadError):
                await self._client.retry(self._heartbeat, LEAVE_TIMEOUT_S)
        self._client.close_lane(self._lane)

    async def _beat(self) -> None:
        pause_s = self._interval_s
        while True:
            await asyncio.sleep(pause_s)
            try:
                await self._heartbeat()
                pause_s = self._interval_s
            except TryAgain:
                self._client.forget()
                self._topics_told = False  # it may be another coordinator
                pause_s = RETRY_S
            except REJOIN:
                self._epoch, self._topics_told = JOIN, False
                pause_s = 0
            except PostroadError as error:
                self.failure = error
                self.changed.set()
                return

    async def _heartbeat(self) -> None:
        is_full = self._epoch == JOIN or not self._topics_told
        request = api.ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._topics if is_full and self._epoch != LEAVE else None,
        )
        node = await self._client.coordinator(self.group)
        answer = await self._client.call(api, request, node=node, lane=self._lane)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        self._epoch = answer.member_epoch
        self._topics_told = True
        self._interval_s = answer.heartbeat_interval_ms / 1000
        if answer.assignment is not None:
            self.assigned = {
                owned.topic_id: list(owned.partitions) for owned in answer.assignment.topic_partitions
            }
            self.changed.set()

    async def _stop_beating(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
