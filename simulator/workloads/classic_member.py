"""A member of the classic group protocol: our own consumer, and what its group's history says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.fetcher import Fetched
from postroad.client.groups import Committer
from postroad.client.offsets import EARLIEST
from simulator.conditions import GROUP_HEARTBEAT_MS, GROUP_SESSION_MS
from simulator.workloads.group_history import Given, GroupHistory, Stretch, acknowledged
from simulator.workloads.workload import Stage

REBALANCE_MS: Final = 8_000
POLL_S: Final = 0.4


class ClassicMember:
    def __init__(
        self, stage: Stage, client: Client, history: GroupHistory, instance_id: str | None = None
    ) -> None:
        self._stage = stage
        self._history = history
        self._instance_id = instance_id
        self._consumer = Consumer(
            client,
            reset=EARLIEST,
            group=history.group,
            auto_commit_ms=None,
            member={
                "instance_id": instance_id,
                "session_timeout_ms": GROUP_SESSION_MS,
                "heartbeat_ms": GROUP_HEARTBEAT_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
            },
        )
        self._positions: Any = None  # each assignment has positions of its own
        self._stretches: dict[int, Stretch] = {}
        self._is_subscribed = False

    @property
    def committer(self) -> Committer:
        return self._consumer.committer

    async def step(self) -> None:
        """A poll, which joins first where that is due."""
        if not self._is_subscribed:
            await self._consumer.subscribe([self._history.topic])
            self._is_subscribed = True
        asked = self._stage.world.now
        fetched = await self._consumer.poll(POLL_S)
        if self._consumer.positions is not self._positions:
            self._begin(asked, fetched)
        for part, records, _ in fetched:
            for record in records:
                self._stretches[part.partition].add(record.offset)

    async def commit(self) -> None:
        writes = self._history.hands_over(
            {part.partition: at for part, at in self._consumer.uncommitted.items()}, self._stage.world.now
        )
        if await self._consumer.commit():
            acknowledged(writes, self._stage.world.now)

    async def leave(self) -> None:
        """A static member only goes quiet."""

    async def close(self) -> None:
        """Leaves the group, if it is no static member."""
        await self._consumer.close()

    def _begin(self, asked: float, fetched: Sequence[Fetched]) -> None:
        self._positions = self._consumer.positions
        history, committer, now = self._history, self.committer, self._stage.world.now
        if history.joins(committer, asked):
            self._stage.world.sometimes("groups: a later generation began")
            if self._instance_id is not None and not self._stretches:
                self._stage.world.sometimes("groups: a static member came back")
        owner = self._instance_id or committer.member_id
        first = {part.partition: records[0].offset for part, records, _ in fetched}
        for part, position in self._consumer.positions.items():
            n = part.partition
            if history.numbered:
                history.given.append(Given(committer.generation, n, owner, asked, now))
            who = f"{owner} in generation {committer.generation}"
            self._stretches[n] = history.begins(who, n, first.get(n, position), asked, now)
