"""Consumer groups of both protocols: members that read, commit, leave, fall silent and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import count
from typing import Final

from postroad.client import groups, offsets
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Producer
from postroad.cluster.internal_topics import OFFSETS_TOPIC
from postroad.errors import PostroadError, RequestRefused, UnreleasedInstanceId
from simulator.checkers import l5_groups, l14_commits, l14_one_owner, l14_stale
from simulator.loop import Loop
from simulator.violation import Violation
from simulator.workloads.classic_member import ClassicMember
from simulator.workloads.consumer_member import FENCED, ConsumerMember
from simulator.workloads.group_history import NEVER, STALE_OFFSET, GroupHistory, StaleCommit
from simulator.workloads.group_operator import GroupOperator
from simulator.workloads.workload import Role, Stage, Workload

TOPIC: Final = "groups"
PARTITIONS: Final = 3
SEND_S: Final = 1.5  # between the bursts of the producer, in the mean
STEP_S: Final = 1.0  # between two polls of a member, in the mean
OPERATE_S: Final = 2.0  # between two things that the operator does, in the mean
BURST_MAX: Final = 4
LIFE_S: Final = (6.0, 40.0)  # how long a member stays
SILENCE_S: Final = (1.0, 14.0)  # how long a process stops; a session is 6 s
SILENT: Final = 0.02  # how likely after a poll
STALE: Final = 0.1
COMMIT: Final = 0.5
CAUGHT_UP_S: Final = 40.0  # after the calm: longer than a session and a rebalance
Member = ClassicMember | ConsumerMember


class Groups(Workload):
    name = "groups"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.classic = GroupHistory("groups-classic", TOPIC, numbered=True)
        self.newer = GroupHistory("groups-newer", TOPIC)
        self.moving = GroupHistory("groups-moving", TOPIC)
        self.empty = GroupHistory("groups-empty", TOPIC)
        self._numbers = count(1)
        self._moving_type = ""

    @property
    def _with_members(self) -> tuple[GroupHistory, ...]:
        return self.classic, self.newer, self.moving

    def roles(self) -> Mapping[str, Role]:
        return {
            "producer": self._produce,
            "operator": self._operate,
            "classic-1": partial(self._live, self.classic, None),
            "classic-2": partial(self._live, self.classic, None),
            "classic-static": partial(self._live, self.classic, "groups-classic-static"),
            "newer-1": partial(self._live, self.newer, None),
            "newer-2": partial(self._live, self.newer, None),
            "newer-static": partial(self._live, self.newer, "groups-newer-static"),
            "moving-1": partial(self._live, self.moving, None),
            "moving-2": partial(self._live, self.moving, None),
        }

    # --- roles

    async def _produce(self, client: Client) -> None:
        random = self.stage.random
        await client.topic(TOPIC, create=True)
        async with Producer(client) as producer:
            while not self.stage.calm:
                for _ in range(random.randrange(1, BURST_MAX)):
                    await producer.send(TOPIC, b"x", partition=random.randrange(PARTITIONS))
                await asyncio.sleep(random.expovariate(1 / SEND_S))
            await asyncio.sleep(self.stage.seconds)

    async def _live(self, history: GroupHistory, instance_id: str | None, client: Client) -> None:
        """One member, from its first join until it leaves."""
        member = await self._make(history, instance_id, client)
        ends_at = self.stage.world.now + self.stage.random.uniform(*LIFE_S)
        try:
            while self.stage.calm or self.stage.world.now < ends_at:
                await self._step(member, history, client)
                await asyncio.sleep(self.stage.random.expovariate(1 / STEP_S))
            await member.leave()
        finally:
            await member.close()

    async def _make(self, history: GroupHistory, instance_id: str | None, client: Client) -> Member:
        topic = await client.topic(TOPIC, create=True)
        newer = history is self.newer or (history is self.moving and self.stage.random.random() < 0.5)
        if not newer:
            return ClassicMember(self.stage, client, history, instance_id)
        member_id = f"member-{next(self._numbers)}"
        return ConsumerMember(self.stage, client, history, topic.id, member_id, instance_id)

    async def _step(self, member: Member, history: GroupHistory, client: Client) -> None:
        random, calm = self.stage.random, self.stage.calm
        try:
            await member.step()
            if not calm and random.random() < SILENT:
                await self._fall_silent()
            if random.random() < COMMIT:
                await member.commit()
        except FENCED:
            self.stage.world.sometimes("groups: a member was fenced")
        except UnreleasedInstanceId:
            self.stage.world.sometimes("groups: a static member waited for its former self to be gone")
        except RequestRefused:
            if isinstance(member, ClassicMember):
                raise
            self.stage.world.sometimes("groups: a commit was refused")
        if not calm and history.superseded and random.random() < STALE:
            await self._commit_stale(history, client)

    async def _fall_silent(self) -> None:
        """The whole process stops: it knows nothing of it when it goes on."""
        seconds = self.stage.random.uniform(*SILENCE_S)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        loop.pause(seconds)
        await asyncio.sleep(0)
        self.stage.world.sometimes("groups: a member fell silent")

    async def _commit_stale(self, history: GroupHistory, client: Client) -> None:
        """By somebody who was a member once; it must be refused."""
        stage = self.stage
        committer, since, known_at = stage.random.choice(history.superseded)
        part = TopicPartition(TOPIC, stage.random.randrange(PARTITIONS))
        handed, is_taken = stage.world.now, True
        try:
            wanted = {part: STALE_OFFSET + next(self._numbers)}
            await groups.commit(client, history.group, wanted, committer, timeout_s=3.0)
        except RequestRefused:
            stage.world.sometimes("groups: a stale commit was refused")
            is_taken = False
        except PostroadError:
            is_taken = False
        who = f"{committer.member_id} of {committer.generation}"
        history.stale.append(StaleCommit(who, since, known_at, handed, is_taken))

    async def _operate(self, client: Client) -> None:
        stage, random = self.stage, self.stage.random
        await client.topic(TOPIC, create=True)
        operator = GroupOperator(stage, client, PARTITIONS)
        while not stage.calm:
            await asyncio.sleep(random.expovariate(1 / OPERATE_S))
            chance, history = random.random(), random.choice(self._with_members)
            if chance < 0.25:
                await operator.read(history)
            elif chance < 0.4:
                await self._describe(operator, self.moving if random.random() < 0.7 else history)
            elif chance < 0.5:
                await operator.reset(history)
            else:
                await self._keep_empty_group(operator, chance)
        await asyncio.sleep(stage.seconds)

    async def _describe(self, operator: GroupOperator, history: GroupHistory) -> None:
        found = await operator.describe(history)
        if history is self.moving and found and found != self._moving_type:
            if self._moving_type:
                self.stage.world.sometimes("groups: a group changed its protocol")
            self._moving_type = found

    async def _keep_empty_group(self, operator: GroupOperator, chance: float) -> None:
        if chance < 0.7:
            await operator.reset(self.empty)
        elif chance < 0.85:
            await operator.read(self.empty)
        elif chance < 0.93:
            await operator.delete_offset(self.empty)
        else:
            await operator.delete(self.empty)

    # --- the end

    async def finish(self, client: Client) -> None:
        operator = GroupOperator(self.stage, client, PARTITIONS)
        await operator.read(self.empty)
        await operator.reset(self.empty)
        await operator.list(self.empty.group)
        parts = [TopicPartition(TOPIC, n) for n in range(PARTITIONS)]
        ends = await offsets.latest(client, parts)
        for history in self._with_members:
            await self._wait_for_end(operator, history, client, ends)

    async def _wait_for_end(
        self,
        operator: GroupOperator,
        history: GroupHistory,
        client: Client,
        ends: Mapping[TopicPartition, int],
    ) -> None:
        """A2: everything is read and committed, and every partition has an owner."""
        until = self.stage.world.now + CAUGHT_UP_S
        while True:
            committed = await groups.committed(client, history.group, list(ends))
            found = await groups.describe(client, history.group)
            owned = sorted(part.partition for member in found.members for part in member.partitions)
            is_read = all(
                committed.get(part, 0) == end or self._has_forgotten(history, part.partition, end)
                for part, end in ends.items()
            )
            if owned == list(range(PARTITIONS)) and is_read:
                await operator.read(history)
                return
            if self.stage.world.now > until:
                break
            await asyncio.sleep(1.0)
        self.stage.broken(
            "A2",
            f"{history.group} has committed {list(committed.values())}, the log ends at "
            f"{list(ends.values())}; its members own {owned}",
        )

    def _has_forgotten(self, history: GroupHistory, partition: int, offset: int) -> bool:
        """Whether a power cut may have taken this commit: its member has nothing new to commit."""
        cut = max(self.stage.losses(OFFSETS_TOPIC), default=-NEVER)
        return any(
            write.offset == offset and write.handed < cut and write.told < NEVER
            for write in history.writes[partition]
        )

    def check(self) -> Iterator[Violation]:
        cuts = self.stage.losses(TOPIC, OFFSETS_TOPIC)
        for history in (*self._with_members, self.empty):
            self._count_survivors(history)
            yield from l14_commits.check(history, cuts)
            yield from l14_commits.check_begins(history, cuts)
            yield from l14_stale.check(history, cuts)
            yield from l14_one_owner.check(history, cuts)
            if not cuts:
                yield from l5_groups.check(history)

    def _count_survivors(self, history: GroupHistory) -> None:
        """Commits that were acknowledged before a power cut and read after it."""
        for read in history.reads:
            for write in history.writes[read.partition]:
                if write.offset == read.offset and any(
                    write.told < cut < read.asked for cut in self.stage.power_cuts
                ):
                    self.stage.world.sometimes("groups: a commit outlived a power cut")
