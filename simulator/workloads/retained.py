"""Topics that let go of their beginning: by time, by size, and because somebody asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from postroad.client import offsets, topics
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, LATEST
from postroad.client.producer import Producer
from postroad.cluster.ids import id_text
from simulator.checkers import l1_acknowledged, l2_one_value, l3_once, r1_start, r2_kept, r3_deleted
from simulator.partition_files import segments
from simulator.violation import Violation
from simulator.workloads.log_history import Position
from simulator.workloads.log_writer import ON_ITS_WAY_S, create_topic, lost_until, saw, unseen_until, write
from simulator.workloads.retained_history import RetainedHistory, Start, Step
from simulator.workloads.workload import NEVER, Role, Stage, Workload

BY_TIME, BY_BYTES, BY_REQUEST = "retained-time", "retained-bytes", "retained-asked"
RETENTION_MS: Final = 6_000
RETENTION_BYTES: Final = 3_000
SEGMENT_BYTES: Final = 1_000
CONFIGS: Final = {
    BY_TIME: {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": str(RETENTION_MS)},
    BY_BYTES: {
        "segment.bytes": str(SEGMENT_BYTES),
        "retention.ms": "-1",
        "retention.bytes": str(RETENTION_BYTES),
    },
    BY_REQUEST: {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"},
}
CHECK_S_MAX: Final = 10.0  # between two looks of a node at what is old (`conditions`)
PAUSE_S: Final = 0.6
LOOK_S: Final = 1.0
SIZE_MAX: Final = 200


class Retained(Workload):
    name = "retained"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._histories = {
            name: RetainedHistory(name, RETENTION_MS if name == BY_TIME else -1) for name in CONFIGS
        }
        self._left: list[Violation] = []  # what should have been deleted by the end, and was not

    def roles(self) -> Mapping[str, Role]:
        return {"producer": self._produce, "reader": self._read, "admin": self._look}

    # --- roles

    async def _create(self, client: Client) -> None:
        for name, config in CONFIGS.items():
            await create_topic(client, name, 1, config)

    async def _produce(self, client: Client) -> None:
        await self._create(client)
        random = self.stage.random
        async with Producer(client) as producer:
            while not self.stage.calm:
                history = self._histories[random.choice(list(CONFIGS))]
                for _ in range(random.randrange(1, 6)):
                    await write(self.stage, history, producer, 0, random.randrange(SIZE_MAX))
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        await asyncio.sleep(self.stage.seconds)

    async def _look(self, client: Client) -> None:
        """Where the logs begin; and now and then everything below some offset is to go."""
        await self._create(client)
        while True:
            await asyncio.sleep(self.stage.random.expovariate(1 / LOOK_S))
            if not self.stage.calm and self.stage.random.random() < 0.2:
                await self._delete(client)
            known = {name: self._known_until(name) for name in CONFIGS}
            found = await offsets.find(client, {TopicPartition(name, 0): EARLIEST for name in CONFIGS})
            for part, at in found.items():
                self._note_start(self._histories[part.topic], known[part.topic], at.offset)

    async def _delete(self, client: Client) -> None:
        history = self._histories[BY_REQUEST]
        offset = self.stage.random.choice([0, *(position.offset for position in history.acknowledged)])
        history.asked_for = max(history.asked_for, offset)
        history.deletions.append((self.stage.world.now, offset))
        known, part = self._known_until(BY_REQUEST), TopicPartition(BY_REQUEST, 0)
        starts = await topics.delete_before(client, {part: offset})
        self.stage.world.sometimes("retained: records were deleted by request")
        known = min(known, self._known_until(BY_REQUEST), self._followed_since(history, starts[part]))
        history.known_starts.append(Start(known, self.stage.world.now, starts[part]))

    def _followed_since(self, history: RetainedHistory, start: int) -> float:
        """Followers may have confirmed the start when it was asked for first, and a power cut since then may
        have taken it from one of them: a leader that has nothing left to delete does not ask them again."""
        asked = [at for at, offset in history.deletions if offset >= start]
        return min(asked, default=self.stage.world.now) if self.stage.is_cluster else self.stage.world.now

    def _known_until(self, topic: str) -> float:
        """Who is asked about the log now knows of all that was deleted by this moment. A leader that has not
        heard yet that another was elected still answers, with where the log began when it was replaced."""
        now = self.stage.world.now
        return min(now, self.stage.seen_until(topic, 0)) if self.stage.is_cluster else now

    def _note_start(self, history: RetainedHistory, known: float, offset: int) -> None:
        before = history.known_starts[-1].offset if history.known_starts else 0
        if offset > before:
            self.stage.world.sometimes(f"retained: the start of {history.topic} rose")
        is_kept = not self.stage.is_cluster  # else followers hear of it a moment later
        known = min(known, self._known_until(history.topic))
        history.known_starts.append(Start(known, self.stage.world.now, offset, is_kept))

    async def _read(self, client: Client) -> None:
        """Follows all of them from their beginnings for a while; the next one begins anew."""
        await self._create(client)
        ends_at = self.stage.world.now + self.stage.random.uniform(5, 30)
        parts = [TopicPartition(name, 0) for name in CONFIGS]
        async with Consumer(client, reset=EARLIEST) as consumer:
            await consumer.assign(dict.fromkeys(parts, EARLIEST))
            next_offsets = dict(consumer.positions)
            came_at = dict.fromkeys(parts, self.stage.world.now)
            while self.stage.world.now < ends_at:
                known = {part: self._known_until(part.topic) for part in parts}
                for part, records, _ in await consumer.poll(1.0):
                    history = self._histories[part.topic]
                    for record in records:
                        self._follow(history, next_offsets[part], record.offset, came_at[part])
                        next_offsets[part] = record.offset + 1
                        came_at[part] = self.stage.seen_until(*part)
                        history.served(min(known[part], self._known_until(part.topic)), record.offset)
                        saw(self.stage, history, Position(0, record.offset), record.value or b"")
                await asyncio.sleep(self.stage.random.expovariate(1 / LOOK_S))

    def _follow(self, history: RetainedHistory, expected: int, found: int, since: float) -> None:
        """`since`: when the record before came, or when its leader was replaced. What was deleted since may
        be back after a power cut (R1), or with a leader that had not followed yet, and whoever heard that his
        next record is gone begins where the log does by then."""
        if found > expected:
            self.stage.world.sometimes("retained: a reader was overtaken")
            history.steps.append(Step(self.stage.world.now, expected, found))
        elif found < expected and not (
            self.stage.may_lose_what_was_acknowledged
            or any(cut > since for cut in self.stage.power_cuts)
            or self.stage.is_led_anew(history.topic, 0, since)
        ):
            self.stage.broken("L5", f"{history.topic}: {found} came where {expected} was next")

    # --- the end

    async def finish(self, client: Client) -> None:
        parts = [TopicPartition(name, 0) for name in CONFIGS]
        await self._wait_until_old(client, parts[0])
        starts = await offsets.find(client, dict.fromkeys(parts, EARLIEST))
        ends = await offsets.find(client, dict.fromkeys(parts, LATEST))
        self._left += r3_deleted.check_time(BY_TIME, starts[parts[0]].offset, ends[parts[0]].offset)
        for part in parts:
            found = await self._segments(client, part)
            self._left += r3_deleted.check_files(part.topic, starts[part].offset, found)
            if part.topic == BY_BYTES:
                self._left += r3_deleted.check_bytes(part.topic, found, RETENTION_BYTES)
        for part in parts:
            await self._read_all(client, self._histories[part.topic])

    async def _wait_until_old(self, client: Client, part: TopicPartition) -> None:
        """What was written when all was well again is as old as the topic keeps it, the next check closes its
        segment, and the one after that removes it."""
        ends_at = self.stage.world.now + RETENTION_MS / 1000 + 2 * CHECK_S_MAX
        while self.stage.world.now < ends_at:
            start = (await offsets.find(client, {part: EARLIEST}))[part].offset
            if start == (await offsets.find(client, {part: LATEST}))[part].offset:
                return
            await asyncio.sleep(LOOK_S)

    async def _segments(self, client: Client, part: TopicPartition) -> dict[int, int]:
        """Those on the drive of its leader."""
        machine = self.stage.services[await client.leader(*part) - 1].machine
        directory = f"/{machine.host}/logs/{id_text((await client.topic(part.topic)).id)}-0"
        return segments(machine.drive, directory)

    async def _read_all(self, client: Client, history: RetainedHistory) -> None:
        part = TopicPartition(history.topic, 0)
        async with Producer(client) as producer:  # it can be written again
            await write(self.stage, history, producer, 0, 10)
        end = (await offsets.find(client, {part: LATEST}))[part].offset
        async with Consumer(client, reset=EARLIEST) as consumer:
            await consumer.assign({part: EARLIEST})
            while consumer.positions[part] < end:
                for _, records, _ in await consumer.poll(5.0):
                    for record in records:
                        history.final[Position(0, record.offset)] = record.value or b""
        history.ended = self.stage.world.now
        history.starts[0] = (await offsets.find(client, {part: EARLIEST}))[part].offset

    def check(self) -> Iterator[Violation]:
        cuts = self.stage.power_cuts
        yield from self._left
        for history in self._histories.values():
            yield from l1_acknowledged.check(history, lost_until(self.stage))
            yield from l2_one_value.check(history, unseen_until(self.stage))
            yield from l3_once.check(history)
            yield from r1_start.check(history, cuts)
            if history.topic != BY_BYTES:
                yield from r2_kept.check(history, self._latest_ms, lost_until(self.stage))
            last_cut = cuts[-1] + ON_ITS_WAY_S if cuts else NEVER
            yield from r2_kept.check_steps(history, history.starts.get(0, 0), last_cut)

    def _latest_ms(self, since: float, until: float) -> int:
        return self.stage.wall_range_ms(since, until)[1]
