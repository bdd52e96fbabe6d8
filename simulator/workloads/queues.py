"""Topics as queues: subscriptions whose members accept, release, reject, renew, forget, leave and vanish.

The checks of `s-plain`, `s-keys` and `s-later` are strict, for nobody moves them. `s-moved` has an operator.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import offsets, subscriptions, topics
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.errors import PostroadError, TopicAlreadyExists
from postroad.wire import header_names
from simulator.checkers import (
    s1_ends,
    s2_one_holder,
    s3_delivery_count,
    s4_accepted,
    s5_valid_lock,
    s6_start,
    s7_committed,
    s8_key_order,
    s9_delays,
    s10_backoff,
    s11_dead_letters,
    s12_moves,
)
from simulator.cluster_events import ELECTED
from simulator.faults import KINDS
from simulator.service import Service
from simulator.violation import Violation
from simulator.workloads.queue_admin import AGAIN_S, QueueAdmin
from simulator.workloads.queue_case import QueueCase
from simulator.workloads.queue_history import Letter, Position, QueueHistory, SeenStarts
from simulator.workloads.queue_member import QueueMember
from simulator.workloads.queue_plan import QueuePlan
from simulator.workloads.queue_producer import QueueProducer
from simulator.workloads.queue_topic import FoundMessage, QueueTopic, due_ms
from simulator.workloads.topic_reader import read_all
from simulator.workloads.workload import Role, Stage, Workload
from simulator.world import START_S

CHECKS: Final = (
    s1_ends.check,
    s2_one_holder.check,
    s3_delivery_count.check,
    s4_accepted.check,
    s5_valid_lock.check,
    s6_start.check,
    s7_committed.check,
    s8_key_order.check,
    s9_delays.check,
    s10_backoff.check,
    s11_dead_letters.check,
    s12_moves.check,
)
MEMBERS: Final = 2  # of each subscription
CRASHES: Final = ("kill", "power cut", "power cut while it starts")
DISK_FAULTS: Final = ("fail", "full")  # what a node was about to do may fail for as long as these last
DRAIN_S: Final = 25.0  # the last messages are done within so long after the calm
LOOK_S: Final = 1.5  # between two looks at where subscriptions are, in the mean


class Queues(Workload):
    name = "queues"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        random = stage.random
        self._topics = _draw_topics(stage)
        plans = [QueuePlan.draw(random, "s-plain", ("q-plain", "q-kept"))]
        if "q-keys" in self._topics:
            plans.append(QueuePlan.draw(random, "s-keys", ("q-keys",), by_key=True))
        else:
            plans.append(QueuePlan.draw(random, "s-later", ("q-later",)))
        if random.random() < 0.5:
            plans.append(QueuePlan.draw(random, "s-moved", ("q-plain",), is_moved=True))
        self._histories = [QueueHistory(plan) for plan in plans]
        self._members = {
            history.plan.name: [QueueMember(stage, history) for _ in range(MEMBERS)]
            for history in self._histories
        }
        self._producer = QueueProducer(stage, list(self._topics.values()))
        self._admins = [self._admin(history) for history in self._histories if history.plan.is_moved]
        self._crashes_at_prune: int | None = None

    def roles(self) -> Mapping[str, Role]:
        roles: dict[str, Role] = {"keeper": self._keep, "producer": self._producer.live}
        for name, members in self._members.items():
            for number, member in enumerate(members, 1):
                roles[f"{name}-{number}"] = member.live
        for admin in self._admins:
            roles["admin"] = admin.live
        return roles

    # --- the keeper: creates everything, then watches

    async def _keep(self, client: Client) -> None:
        if not self._producer.may_send:
            await self._create(client)
        while True:
            await asyncio.sleep(self.stage.random.expovariate(1 / LOOK_S))
            await self._look(client)

    async def _create(self, client: Client) -> None:
        for topic in self._topics.values():
            try:
                await topics.create(client, topic.name, partitions=topic.partitions, config=topic.configs)
            except TopicAlreadyExists:
                continue
        for history in self._histories:
            await subscriptions.alter_config(client, history.plan.name, history.plan.configs())
        self._producer.may_send = True
        for members in self._members.values():
            for member in members:
                member.may_read = True
        for admin in self._admins:
            admin.is_ready = True

    async def _look(self, client: Client) -> None:
        for history in self._histories:
            asked_at = self.stage.world.now
            try:
                found = await subscriptions.positions(client, history.plan.name)
            except PostroadError:
                continue
            starts = {part: position.start for part, position in found.items()}
            history.starts.append(SeenStarts(asked_at, self.stage.world.now, starts))
        await self._look_for_deletions(client)

    async def _look_for_deletions(self, client: Client) -> None:
        """Rare events that leave their trace in where logs begin."""
        world = self.stage.world
        if self._crashes_at_prune is None and any(map(_has_pruned_ledger, self.stage.services)):
            world.sometimes("queues: a state was written as a whole, and what it replaces deleted")
            self._crashes_at_prune = len(self._crashes())
        if self._crashes_at_prune is not None and len(self._crashes()) > self._crashes_at_prune:
            world.sometimes("queues: a crash after a state was written as a whole")
        kept = self._topics["q-kept"].topic_partitions()
        if any((await offsets.earliest(client, kept)).values()):
            world.sometimes("queues: what was acknowledged by all was deleted")

    def _crashes(self) -> list[float]:
        """Whatever may have ended what a leader was about to do, before the heal."""
        events = (*CRASHES, ELECTED) if self.stage.is_cluster else CRASHES
        moments, calm_at = self.stage.world.moments, self._calm_at
        found = [moment for event in events for moment in moments.get(event, ()) if moment < calm_at]
        for kind in DISK_FAULTS:  # until they end, with the heal at the latest
            began = [moment for moment in moments.get(f"fault {kind}", ()) if moment < calm_at]
            found += [min(moment + KINDS[kind], calm_at) for moment in began]
        return found

    @property
    def _calm_at(self) -> float:
        return START_S + self.stage.seconds

    # --- the end

    async def finish(self, client: Client) -> None:
        await self._last_changes()
        ends_at = self.stage.world.now + DRAIN_S
        for history in self._histories:
            while self.stage.world.now < ends_at:
                found = await subscriptions.positions(client, history.plan.name)
                history.lags = {part: position.lag for part, position in found.items()}
                wanted = sum(self._topics[name].partitions for name in history.plan.topics)
                if len(history.lags) == wanted and not any(history.lags.values()):
                    break
                await asyncio.sleep(0.5)
        for topic in self._topics.values():
            await self._read_topic(client, topic)
        for history in self._histories:
            await self._read_letters(client, history)

    async def _last_changes(self) -> None:
        """A member that vanished in the middle of a deletion holds it up for as long as its session lasts,
        which may be longer than the calm."""
        while not all(admin.is_done for admin in self._admins):  # noqa: ASYNC110 - they run on other loops
            await asyncio.sleep(AGAIN_S)

    async def _read_topic(self, client: Client, topic: QueueTopic) -> None:
        topic.first_offsets = await offsets.earliest(client, topic.topic_partitions())
        for part, record in await read_all(client, topic.topic_partitions()):
            position = Position(*part, record.offset)
            topic.found[position] = FoundMessage(
                position, record.timestamp, record.key, record.value or b"", record.headers
            )

    async def _read_letters(self, client: Client, history: QueueHistory) -> None:
        name = history.plan.dead_letter_topic
        if await client.topic_now(name) is None:
            return
        for _, record in await read_all(client, [TopicPartition(name, 0)]):
            headers = {name: value or b"" for name, value in record.headers}
            position = Position(
                headers[header_names.DEAD_TOPIC].decode(),
                int(headers[header_names.DEAD_PARTITION]),
                int(headers[header_names.DEAD_OFFSET]),
            )
            letter = Letter(position, record.key, record.value or b"", headers)
            history.letters.setdefault(position, []).append(letter)
            self.stage.world.sometimes(f"queues: a dead letter, {letter.text(header_names.DEAD_REASON)}")

    def check(self) -> Iterator[Violation]:
        for history in self._histories:
            self._note_loads(history)
            case = QueueCase(
                history,
                {name: self._topics[name] for name in history.plan.topics},
                self.stage.losses(*history.plan.topics, history.plan.dead_letter_topic),
                self._crashes(),
                self._calm_at,
            )
            for check in CHECKS:
                yield from check(case)
            self._count_events(case)

    def _note_loads(self, history: QueueHistory) -> None:
        for delivery in history.all():
            part = delivery.position.topic_partition
            delivery.forgotten_at = self.stage.history.locked_until(*part, delivery.asked_at)

    def _count_events(self, case: QueueCase) -> None:
        world = self.stage.world
        if any(due_ms(each.headers, each.timestamp) for each in case.history.all()):
            world.sometimes("queues: a delayed message came")
        if s8_key_order.waited(case):
            world.sometimes("queues: a message waited for an earlier one of its key")

    def _admin(self, history: QueueHistory) -> QueueAdmin:
        own = [self._topics[name] for name in history.plan.topics]
        return QueueAdmin(self.stage, history, own, self._members[history.plan.name])


def _has_pruned_ledger(service: Service) -> bool:
    partitions = () if service.node is None else service.node.partitions
    return any(each.ledger is not None and each.ledger.log.start_offset for each in partitions)


def _draw_topics(stage: Stage) -> dict[str, QueueTopic]:
    random = stage.random
    kept = {
        "postroad.retention": "acknowledged",
        "segment.bytes": str(random.choice((1_000, 4_000))),
        "segment.ms": str(random.choice((2_000, 60_000))),
    }
    found = [QueueTopic("q-plain", 2, {}), QueueTopic("q-kept", 1, kept)]
    if random.random() < 0.5:
        found.append(QueueTopic("q-keys", 2, {}, keyed=True, delayed=random.random() < 0.3))
    else:
        found.append(QueueTopic("q-later", 1, {}, delayed=True))
    return {topic.name: topic for topic in found}
