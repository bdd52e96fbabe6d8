"""A compacted topic: keys whose values change, are deleted and come back, and readers that read all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, LATEST
from postroad.client.producer import Producer
from postroad.cluster.ids import id_text
from simulator.checkers import k1_latest, k2_active
from simulator.partition_files import segments
from simulator.violation import Violation
from simulator.workloads.compacted_history import CompactedHistory, Scan, Version
from simulator.workloads.log_writer import create_topic, timestamp_ms
from simulator.workloads.workload import NEVER, Role, Stage, Workload

TOPIC: Final = "compacted"
DELETE_RETENTION_MS: Final = 4_000
CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": "700",
    "index.interval.bytes": "300",
    "min.cleanable.dirty.ratio": "0.2",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
KEYS: Final = 12
PAUSE_S: Final = 0.6
SIZE_MAX: Final = 80
TOMBSTONES: Final = 0.25


class Compacted(Workload):
    name = "compacted"
    many_nodes = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._history = CompactedHistory(TOPIC, DELETE_RETENTION_MS)
        self._numbers = count()

    def roles(self) -> Mapping[str, Role]:
        return {"producer": self._produce, "reader": self._read}

    async def _produce(self, client: Client) -> None:
        await create_topic(client, TOPIC, 1, CONFIG)
        random = self.stage.random
        async with Producer(client) as producer:
            while not self.stage.calm:
                for _ in range(random.randrange(1, 6)):
                    await self._write(producer, b"key-%d" % random.randrange(KEYS))
                await asyncio.sleep(random.expovariate(1 / PAUSE_S))
        await asyncio.sleep(self.stage.seconds)

    async def _write(self, producer: Producer, key: bytes) -> None:
        number, now = next(self._numbers), self.stage.world.now
        value = b"%d.%s" % (number, b"x" * self.stage.random.randrange(SIZE_MAX))
        wanted = None if self.stage.random.random() < TOMBSTONES else value
        self._history.in_doubt[number] = Version(key, wanted, now, now)
        delivery = await producer.send(TOPIC, wanted, key=key, partition=0, timestamp=timestamp_ms(now))
        sent = await delivery
        if sent.offset >= 0:
            del self._history.in_doubt[number]
            version = Version(key, wanted, now, self.stage.world.now)
            self._history.acknowledged[sent.offset] = version

    async def _read(self, client: Client) -> None:
        await asyncio.sleep(self.stage.random.uniform(2, 6))
        await create_topic(client, TOPIC, 1, CONFIG)
        await self._scan(client)

    async def _scan(self, client: Client) -> None:
        begun, part = self.stage.world.now, TopicPartition(TOPIC, 0)
        seen_until = self.stage.seen_until(*part)
        topic_id = (await client.topic(TOPIC)).id
        end = (await offsets.find(client, {part: LATEST}))[part].offset
        records: dict[int, tuple[bytes, bytes | None]] = {}
        async with Consumer(client, reset=None) as consumer:
            await consumer.assign({part: EARLIEST})
            while consumer.positions[part] < end:
                for _, found, _ in await consumer.poll(5.0):
                    for record in found:
                        records[record.offset] = (record.key or b"", record.value)
        seen_until = min(begun, seen_until, self.stage.seen_until(*part))
        active = self._active(topic_id)
        scan = Scan(begun, self.stage.world.now, records, active, seen_until)
        self._history.scans.append(scan)
        self._note(scan)

    def _active(self, topic_id: bytes) -> int:
        """The base offset of the newest segment of all replicas. They end their segments by themselves, and
        one may have copied, as its newest, what its leader had ended already and compacted."""
        machines = [service.machine for service in self.stage.services]
        found = [segments(each.drive, f"/{each.host}/logs/{id_text(topic_id)}-0") for each in machines]
        return max(base for bases in found for base in bases)

    def _note(self, scan: Scan) -> None:
        gone = [offset for offset in self._history.acknowledged if offset not in scan.records]
        if any(offset < scan.active for offset in gone):
            self.stage.world.sometimes("compacted: records were superseded")
        keys = [key for key, _ in scan.records.values()]
        if any(self._history.acknowledged[offset].key not in keys for offset in gone):
            self.stage.world.sometimes("compacted: the tombstone of a key was dropped")

    async def finish(self, client: Client) -> None:
        async with Producer(client) as producer:  # it can be written again
            await self._write(producer, b"probe")
        await self._scan(client)

    def check(self) -> Iterator[Violation]:
        for scan in self._history.scans:
            lost = max((cut for cut in self.stage.losses(TOPIC) if cut < scan.ended), default=NEVER)
            yield from k1_latest.check(self._history, scan, self.stage.passed_ms, lost)
            yield from k2_active.check(self._history, scan, lost)
