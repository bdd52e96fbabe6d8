"""An operator who seeks, purges, alters and deletes one subscription while its members work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from postroad.client import offsets, subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import GroupIdNotFound, NonEmptyGroup
from simulator.workloads.queue_history import Move, MoveKind, Outcome, QueueHistory
from simulator.workloads.queue_member import QueueMember
from simulator.workloads.queue_topic import QueueTopic
from simulator.workloads.workload import Stage

PAUSE_S: Final = 5.0  # between two changes, in the mean
AGAIN_S: Final = 0.5  # after one that failed


class QueueAdmin:
    def __init__(
        self, stage: Stage, history: QueueHistory, topics: list[QueueTopic], members: list[QueueMember]
    ) -> None:
        self._stage = stage
        self._world = stage.world
        self._random = stage.random
        self._history = history
        self._parts = [each for topic in topics for each in topic.topic_partitions()]
        self._members = members
        self._is_deleting = False  # it was begun: until it is created again nobody may join
        self.is_ready = False  # the subscription was created
        self.is_done = False  # the last change was made, in the calm

    async def live(self, client: Client) -> None:
        """One change after the other, and a last one in the calm. Each may fail; then another follows."""
        calm = self._stage.calm
        if not self.is_ready or self.is_done:
            await asyncio.sleep(AGAIN_S)
            return
        if not calm:
            await asyncio.sleep(self._random.expovariate(1 / PAUSE_S))
        if self._is_deleting:
            await self._create_anew(client)
        else:
            await self._change(client)
        self.is_done = calm

    async def _change(self, client: Client) -> None:
        chance = self._random.random()
        if self._stage.calm:
            await subscriptions.alter_config(client, self._history.plan.name, self._history.plan.configs())
        elif chance < 0.2:
            await self._alter(client)
            return
        if chance < 0.45:
            await self._move(client, MoveKind.SEEK, await self._somewhere(client))
        elif chance < 0.65:
            await self._move(client, MoveKind.PURGE, await offsets.latest(client, self._parts))
        else:
            await self._create_anew(client)

    async def _somewhere(self, client: Client) -> dict[TopicPartition, int]:
        first = await offsets.earliest(client, self._parts)
        last = await offsets.latest(client, self._parts)
        if self._random.random() < 0.4:
            return first
        return {part: self._random.randint(first[part], last[part]) for part in self._parts}

    async def _move(self, client: Client, kind: MoveKind, starts: Mapping[TopicPartition, int]) -> None:
        move = Move(kind, dict(starts), self._world.now)
        self._history.moves.append(move)
        await subscriptions.move(client, self._history.plan.name, starts)
        self._finish(move)

    def _finish(self, move: Move) -> None:
        move.told_at, move.outcome = self._world.now, Outcome.DONE
        self._world.sometimes(f"queues: {move.kind} was answered")
        self._world.note(self._history.plan.name, move.kind, sorted(move.starts.items()))

    async def _alter(self, client: Client) -> None:
        """Change limits and order: the same messages come as before."""
        changes = {
            "postroad.order": self._random.choice(("none", "key", "partition")),
            "share.delivery.count.limit": self._random.choice(("3", "5", "0")),
            "postroad.backoff.initial.ms": self._random.choice(("0", "200")),
            "postroad.fair.by": self._random.choice(("", "tenant")),
        }
        await subscriptions.alter_config(client, self._history.plan.name, changes)
        self._world.sometimes("queues: a subscription was altered")

    async def _create_anew(self, client: Client) -> None:
        """Delete it, see that it stays away, create it again."""
        plan = self._history.plan
        self._is_deleting = True
        await self._send_away()
        move = Move(MoveKind.CREATE, await offsets.earliest(client, self._parts), self._world.now)
        self._history.moves.append(move)
        ends = await offsets.latest(client, self._parts)
        await self._delete(client)
        cuts = len(self._stage.losses())
        await asyncio.sleep(self._random.choice((0.0, 0.5, 3.0)))
        await self._expect_none(client, ends, cuts)
        await subscriptions.alter_config(client, plan.name, plan.configs())
        self._finish(move)
        self._is_deleting = False
        for member in self._members:
            member.may_read = True

    async def _send_away(self) -> None:
        """Whoever came back after it was deleted would create it anew."""
        for member in self._members:
            member.may_read = False
        while any(member.is_inside for member in self._members):  # noqa: ASYNC110 - they run on other loops
            await asyncio.sleep(AGAIN_S)

    async def _delete(self, client: Client) -> None:
        while True:
            try:
                await subscriptions.delete(client, self._history.plan.name)
                return
            except GroupIdNotFound:
                return
            except NonEmptyGroup:  # a member that has vanished counts until the node has noticed
                await asyncio.sleep(AGAIN_S)

    async def _expect_none(self, client: Client, ends: Mapping[TopicPartition, int], cuts: int) -> None:
        """What was deleted stays so, though the node may have crashed since. What a member's last request,
        late by accident, has begun anew begins at the log's end."""
        try:
            found = await subscriptions.positions(client, self._history.plan.name)
        except GroupIdNotFound:
            return
        may_be_back = len(self._stage.losses()) > cuts
        is_back = any(position.start < ends[part] for part, position in found.items())
        if is_back and not may_be_back:
            self._stage.broken("S12", f"{self._history.plan.name} was deleted, and is back at {found}")
