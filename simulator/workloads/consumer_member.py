"""A member of the newer group protocol (KIP-848), which our own client does not speak.

It sends heartbeats, gives up and takes what the answers say, reads what it owns, and commits with its epoch.
It has one thing under way at a time, and notes what it is told in its group's history.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from postroad.client import groups
from postroad.client.client import Client
from postroad.client.fetcher import Fetcher
from postroad.client.groups import Committer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    PostroadError,
    RequestRefused,
    TryAgain,
    UnknownMemberId,
    by_code,
)
from postroad.wire.messages import consumer_group_heartbeat as api
from postroad.wire.messages import offset_commit
from simulator.conditions import GROUP_HEARTBEAT_MS, GROUP_SESSION_MS
from simulator.workloads.group_history import (
    NEVER,
    GroupHistory,
    Hold,
    Pulse,
    Read,
    Stretch,
    acknowledged,
)
from simulator.workloads.workload import Stage

REBALANCE_MS: Final = 8_000
CALL_S: Final = 3.0
POLL_S: Final = 0.4
FENCED: Final = (FencedMemberEpoch, UnknownMemberId, GroupIdNotFound)
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2


class ConsumerMember:
    def __init__(
        self,
        stage: Stage,
        client: Client,
        history: GroupHistory,
        topic_id: bytes,
        member_id: str,
        instance_id: str | None = None,
    ) -> None:
        self.epoch = JOIN
        self.member_id = member_id
        self.instance_id = instance_id
        self._stage = stage
        self._world = stage.world
        self._client = client
        self._history = history
        self._topic_id = topic_id
        self._fetcher = Fetcher(client, reset=EARLIEST)
        self._pulse = self._new_pulse()
        self._holds: dict[int, Hold] = {}  # also what it was told to give up, and has not confirmed
        self._stretches: dict[int, Stretch] = {}
        self._committed: dict[int, int] = {}
        self._committed_at = 0.0  # when it asked for that
        self._next_beat = 0.0
        self._tells_all = True  # as after an answer that was lost

    @property
    def owner(self) -> str:
        return self.instance_id or self.member_id

    @property
    def committer(self) -> Committer:
        return Committer(self.member_id, self.epoch, self.instance_id)

    @property
    def owned(self) -> list[int]:
        return [n for n, hold in self._holds.items() if hold.revoked == NEVER]

    @property
    def _now(self) -> float:
        return self._world.now

    # --- its life

    async def step(self) -> None:
        """A heartbeat, when it is time for one, and a poll. Raises the error of a member that was refused,
        which joins again with the next one."""
        if self._now >= self._next_beat:
            await self._beat()
        await self._poll()

    async def _beat(self) -> None:
        """What the answer says to give up is given up at once, and confirmed by the next heartbeat."""
        sent = self._now
        self._confirm(sent)
        self._pulse.beats(sent)
        self._next_beat = sent + GROUP_HEARTBEAT_MS / 1000
        try:
            answer = await self._say(self.epoch)
        except TryAgain:
            self._client.forget()
            self._tells_all = True
            return
        except FENCED:
            self._history.fences(self.committer, sent)
            self._lose_all()
            raise
        self._tells_all = False
        first_sent = min(sent, self._pulse.unanswered_since)
        self._pulse.is_answered(sent)
        self.epoch = answer.member_epoch
        self._history.joins(self.committer, sent)
        if answer.assignment is not None:
            await self._reconcile(answer.assignment, sent, first_sent)

    async def leave(self) -> None:
        """For good; a static member until it is back."""
        for hold in self._holds.values():
            hold.until = min(hold.until, self._now)
        self._holds.clear()
        self._fetcher.seek({})
        if self.epoch > JOIN:
            await self._say(LEAVE if self.instance_id is None else LEAVE_FOR_A_WHILE)

    async def close(self) -> None:
        await self._fetcher.close()

    async def _poll(self) -> None:
        await self._begin([n for n in self.owned if self._part(n) not in self._fetcher.positions])
        for part, records, _ in await self._fetcher.next(POLL_S):
            for record in records:
                self._stretches[part.partition].add(record.offset)

    async def commit(self) -> None:
        """All that was polled, and what a power cut may have taken. Raises why it was refused."""
        if any(loss >= self._committed_at for loss in self._stage.losses(OFFSETS_TOPIC)):
            self._committed.clear()
        news = {
            part.partition: at
            for part, at in self._fetcher.positions.items()
            if self._committed.get(part.partition) != at
        }
        if not news:
            return
        asked_at = self._now
        writes = self._history.hands_over(news, asked_at)
        try:
            await self._commit_once(news)
        except TryAgain:
            self._client.forget()
            return
        except RequestRefused:
            self._history.was_refused(writes)
            raise
        acknowledged(writes, self._now)
        self._committed.update(news)
        self._committed_at = asked_at

    # --- helpers

    async def _say(self, epoch: int) -> Any:
        joins = epoch == JOIN
        whole = joins or self._tells_all
        owned = [] if joins or not self.owned else [api.RequestTopicPartitions(self._topic_id, self.owned)]
        request = api.ConsumerGroupHeartbeatRequest(
            group_id=self._history.group,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if whole else -1,
            subscribed_topic_names=[self._history.topic] if whole else None,
            topic_partitions=owned if epoch >= JOIN else None,
        )
        node = await self._client.coordinator(self._history.group)
        answer = await self._client.call(api, request, node=node, timeout_s=CALL_S)
        if answer.error_code:
            raise by_code(answer.error_code, answer.error_message)
        return answer

    def _confirm(self, now: float) -> None:
        """The heartbeat that is sent now does not name what was given up."""
        for partition in [n for n, hold in self._holds.items() if hold.revoked < NEVER]:
            self._holds.pop(partition).until = now

    async def _reconcile(self, assignment: Any, sent: float, first_sent: float) -> None:
        wanted = [n for topic in assignment.topic_partitions for n in topic.partitions]
        revoked = [n for n in self.owned if n not in wanted]
        for partition in [n for n in wanted if n not in self._holds]:
            hold = Hold(self.owner, partition, sent, self._now, self._pulse)
            self._holds[partition] = hold
            self._history.holds.append(hold)
        if revoked:
            await self._commit_before_it_goes()
            self._next_beat = 0.0
            self._world.sometimes("groups: a partition was given up for another member")
        for partition in revoked:
            self._holds[partition].revoked = first_sent
            self._fetcher.positions.pop(self._part(partition), None)

    async def _commit_before_it_goes(self) -> None:
        with contextlib.suppress(PostroadError):  # else whoever owns the partitions next reads them again
            await self.commit()

    async def _begin(self, partitions: list[int]) -> None:
        """Read them from where the group has got to."""
        if not partitions:
            return
        asked = self._now
        parts = [self._part(n) for n in partitions]
        found = await groups.committed(self._client, self._history.group, parts)
        told, who = self._now, f"{self.owner} in epoch {self.epoch}"
        for part in parts:
            n, offset = part.partition, found.get(part)
            self._history.reads.append(Read(n, offset, asked, told, who))
            self._stretches[n] = self._history.begins(who, n, offset or 0, asked, told)
            self._committed.pop(n, None)
            self._fetcher.positions[part] = offset or 0

    async def _commit_once(self, offsets: Mapping[int, int]) -> None:
        wanted = {self._part(n): at for n, at in offsets.items()}
        node = await self._client.coordinator(self._history.group)
        request = groups.commit_request(self._history.group, wanted, self.committer)
        answer = await self._client.call(offset_commit, request, node=node, timeout_s=CALL_S)
        for topic in answer.topics:
            for partition in topic.partitions:
                groups.raise_for(partition)

    def _lose_all(self) -> None:
        now = self._now
        for hold in self._holds.values():
            hold.until = min(hold.until, now)
        self._holds.clear()
        self._fetcher.seek({})
        self._pulse = self._new_pulse()
        self.epoch = JOIN

    def _part(self, partition: int) -> TopicPartition:
        return TopicPartition(self._history.topic, partition)

    def _new_pulse(self) -> Pulse:
        pulse = Pulse(GROUP_SESSION_MS / 1000, REBALANCE_MS / 1000)
        self._history.pulses.append(pulse)
        return pulse
