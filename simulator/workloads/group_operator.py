"""An operator of groups: looks at those that have members, and keeps one without members of its own."""

from __future__ import annotations

from typing import Final

from postroad.client import groups
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import GroupIdNotFound, RequestRefused
from postroad.wire.messages import offset_delete
from simulator.workloads.group_history import GroupHistory, Read, acknowledged
from simulator.workloads.workload import Stage

OFFSET_MAX: Final = 6


class GroupOperator:
    def __init__(self, stage: Stage, client: Client, partitions: int) -> None:
        self._stage = stage
        self._client = client
        self._partitions = partitions

    @property
    def _now(self) -> float:
        return self._stage.world.now

    def _parts(self, history: GroupHistory) -> list[TopicPartition]:
        return [TopicPartition(history.topic, n) for n in range(self._partitions)]

    async def read(self, history: GroupHistory) -> None:
        asked = self._now
        found = await groups.committed(self._client, history.group, self._parts(history))
        for part in self._parts(history):
            history.reads.append(Read(part.partition, found.get(part), asked, self._now, "an operator"))

    async def describe(self, history: GroupHistory) -> str:
        """Answers the type of the group, such as classic. No partition may be named twice."""
        try:
            found = await groups.describe(self._client, history.group)
        except GroupIdNotFound:
            return ""
        owned = [part for member in found.members for part in member.partitions]
        if len(owned) != len(dict.fromkeys(owned)):
            self._stage.broken("L14", f"{history.group} is described with two owners: {sorted(owned)}")
        return found.type

    async def reset(self, history: GroupHistory) -> None:
        """Set an offset, which a group with members refuses."""
        partition, offset = self._stage.random.randrange(self._partitions), self._offset()
        handed = self._now
        writes = history.hands_over({partition: offset}, handed)
        try:
            await groups.commit(self._client, history.group, {self._parts(history)[partition]: offset})
        except RequestRefused:
            self._stage.world.sometimes("groups: an operator's commit was refused")
        else:
            acknowledged(writes, self._now)
            history.operated.append((handed, self._now))

    async def delete_offset(self, history: GroupHistory) -> None:
        partition = self._stage.random.randrange(self._partitions)
        writes = history.hands_over({partition: None}, self._now)
        topic = offset_delete.OffsetDeleteRequestTopic(
            history.topic, [offset_delete.OffsetDeleteRequestPartition(partition)]
        )
        request = offset_delete.OffsetDeleteRequest(history.group, [topic])

        async def attempt(node: int) -> None:
            answer = await self._client.call(offset_delete, request, node=node)
            groups.raise_for(answer)
            groups.raise_for(answer.topics[0].partitions[0])

        try:
            await groups.at_coordinator(self._client, history.group, attempt)
        except GroupIdNotFound:
            return  # now, or after an attempt whose answer was lost
        acknowledged(writes, self._now)

    async def delete(self, history: GroupHistory) -> None:
        writes = history.hands_over(dict.fromkeys(range(self._partitions)), self._now)
        try:
            await groups.delete(self._client, history.group)
        except GroupIdNotFound:
            return
        acknowledged(writes, self._now)
        self._stage.world.sometimes("groups: a group was deleted")

    async def list(self, expected: str) -> None:
        """A group with offsets is listed."""
        names = [found.group for found in await groups.list_all(self._client)]
        if expected not in names and not self._stage.may_lose_what_was_acknowledged:
            self._stage.broken("L14", f"{expected} has offsets, but only {names} are listed")

    def _offset(self) -> int:
        return self._stage.random.randrange(OFFSET_MAX)
