"""A member of a classic consumer group: joins, learns what it owns, stays alive, leaves.

    joining ── JoinGroup ──▶ waiting ── SyncGroup ──▶ owner ── heartbeats ──▶ … ── LeaveGroup ──▶ gone
       ▲                                                │
       └──────────── rebalance, unknown member ─────────┘   `must_join` is set; the consumer joins again

The coordinator elects one member as leader, which assigns the partitions (`protocol.assign_range`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from postroad.client import protocol
from postroad.client.backoff import Backoff
from postroad.client.client import Client
from postroad.client.groups import NO_GENERATION, Committer
from postroad.client.metadata import TopicPartition
from postroad.errors import (
    IllegalGeneration,
    MemberIdRequired,
    PostroadError,
    RebalanceInProgress,
    RequestTimedOut,
    TryAgain,
    UnknownMemberId,
    by_code,
)
from postroad.wire.messages import heartbeat, join_group, leave_group, sync_group

SESSION_TIMEOUT_MS: Final = 45_000
HEARTBEAT_MS: Final = 3_000
REBALANCE_TIMEOUT_MS: Final = 60_000
ANSWER_MARGIN_S: Final = 5.0
JOIN_AGAIN: Final = (RebalanceInProgress, IllegalGeneration, UnknownMemberId)


class GroupMember:
    """`partitions` is what it owns; valid until `must_join` is set."""

    def __init__(
        self,
        client: Client,
        group: str,
        *,
        instance_id: str | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        heartbeat_ms: int = HEARTBEAT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
    ) -> None:
        self.group = group
        self.must_join = True
        self.failure: PostroadError | None = None
        self._client = client
        self._instance_id = instance_id
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_s = heartbeat_ms / 1000
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._join_timeout_s = rebalance_timeout_ms / 1000 + ANSWER_MARGIN_S
        self._lane = client.new_lane("group")
        self._id = ""
        self._generation = NO_GENERATION
        self._beating: asyncio.Task[None] | None = None

    @property
    def committer(self) -> Committer:
        return Committer(self._id, self._generation, self._instance_id)

    async def join(self, topics: Sequence[str]) -> list[TopicPartition]:
        """A member of the current generation afterwards; what it owns there.
        RequestTimedOut if the group does not come to rest."""
        await self._stop_beating()
        backoff = Backoff(self._join_timeout_s, self._client.runtime)
        while True:
            try:
                owned = await self._client.retry(lambda: self._join_and_sync(topics), backoff.left_s)
            except MemberIdRequired:
                continue  # with the id that came along
            except JOIN_AGAIN as error:
                if isinstance(error, UnknownMemberId):
                    self._id = ""
                if not await backoff.wait():
                    raise RequestTimedOut(f"Group {self.group} keeps rebalancing.") from None
            else:
                self.must_join = False
                self._beating = asyncio.create_task(self._beat(), name=f"heartbeat {self.group}")
                return owned

    async def leave(self) -> None:
        """A static member only goes quiet: its place is kept until the session times out."""
        await self._stop_beating()
        if self._id and self._instance_id is None:
            await self._say_goodbye()
        self._id = ""
        self._client.close_lane(self._lane)

    async def _say_goodbye(self) -> None:
        identity = leave_group.MemberIdentity(member_id=self._id)
        request = leave_group.LeaveGroupRequest(group_id=self.group, member_id=self._id, members=[identity])
        with contextlib.suppress(PostroadError):
            await self._call(leave_group, request, ANSWER_MARGIN_S)

    async def _join_and_sync(self, topics: Sequence[str]) -> list[TopicPartition]:
        return await self._sync(await self._join(topics))

    async def _join(self, topics: Sequence[str]) -> Any:
        wanted = join_group.JoinGroupRequestProtocol(
            name=protocol.RANGE, metadata=protocol.write_subscription(topics)
        )
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self._id,
            group_instance_id=self._instance_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocols=[wanted],
        )
        answer = await self._call(join_group, request, self._join_timeout_s, checked=False)
        if answer.error_code in (0, MemberIdRequired.code):
            self._id = answer.member_id
        if answer.error_code:
            raise by_code(answer.error_code)
        self._generation = answer.generation_id
        return answer

    async def _sync(self, joined: Any) -> list[TopicPartition]:
        assignments = []
        if joined.leader == self._id:
            assignments = await self._assign(joined.members)
        request = sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self._id,
            group_instance_id=self._instance_id,
            protocol_type=protocol.PROTOCOL_TYPE,
            protocol_name=protocol.RANGE,
            assignments=assignments,
        )
        answer = await self._call(sync_group, request, self._join_timeout_s)
        return protocol.read_assignment(answer.assignment)

    async def _assign(self, members: Sequence[Any]) -> list[sync_group.SyncGroupRequestAssignment]:
        wanted = {member.member_id: protocol.read_subscription(member.metadata) for member in members}
        topics = {topic for names in wanted.values() for topic in names}
        found = (await self._client.cluster(sorted(topics))).topics
        counts = {name: len(topic.partitions) for name, topic in found.items()}
        return [
            sync_group.SyncGroupRequestAssignment(
                member_id=member, assignment=protocol.write_assignment(topic_partitions)
            )
            for member, topic_partitions in protocol.assign_range(wanted, counts).items()
        ]

    async def _beat(self) -> None:
        """Until joining again ends it, or something is wrong that only the caller can mend. During a
        rebalance it goes on: the group waits for a slow member, as long as that is alive."""
        request = heartbeat.HeartbeatRequest(
            group_id=self.group,
            generation_id=self._generation,
            member_id=self._id,
            group_instance_id=self._instance_id,
        )
        while True:
            await asyncio.sleep(self._heartbeat_s)
            try:
                await self._call(heartbeat, request, self._session_timeout_ms / 1000)
            except JOIN_AGAIN as error:
                self.must_join = True
                if not isinstance(error, RebalanceInProgress):
                    return
            except TryAgain:
                self._client.forget()
            except PostroadError as error:
                self.failure = error
                return

    async def _stop_beating(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None

    async def _call(self, api: Any, request: Any, timeout_s: float, checked: bool = True) -> Any:
        node = await self._client.coordinator(self.group)
        answer = await self._client.call(api, request, node=node, lane=self._lane, timeout_s=timeout_s)
        if checked and answer.error_code:
            raise by_code(answer.error_code)
        return answer
