"""Several nodes as a client sees them: what they answer, without sockets. Each partition's queue is a few
lines that show who holds what, for how long, and how often it was delivered.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

from postroad.client.client import Client
from postroad.client.share_message import AckType
from postroad.client.share_session import FINAL
from postroad.errors import InvalidRecordState, NetworkException, UnknownTopicOrPartition
from postroad.wire import share_acknowledge, share_fetch
from postroad.wire.messages import metadata
from postroad.wire.messages import share_acknowledge as acknowledge_messages
from postroad.wire.messages import share_fetch as fetch_messages
from postroad.wire.records import Record, encode_batch
from postroad.wire.share_requests import AcknowledgementBatch

VERSION = 2
LOOK_S = 0.005


class Held(NamedTuple):
    owner: str
    until: float  # on the loop's clock
    lock_ms: int


class Partition:
    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.error = 0  # with which code its node answers
        self.available: list[int] = []
        self.held: dict[int, Held] = {}
        self.deliveries: Counter[int] = Counter()
        self.end = 0
        self.value_bytes = 0  # every message is filled up to so many
        self.key: bytes | None = None

    def publish(self) -> None:
        self.available.append(self.end)
        self.end += 1

    def record(self, topic: str, index: int, offset: int) -> Record:
        value = f"{topic}/{index}/{offset}".encode()
        return Record(offset, 0, self.key, value.ljust(self.value_bytes, b"."))

    def acquire(self, count: int, owner: str, lock_ms: int) -> list[int]:
        taken, self.available = self.available[:count], self.available[count:]
        until = asyncio.get_running_loop().time() + lock_ms / 1000
        for offset in taken:
            self.held[offset] = Held(owner, until, lock_ms)
            self.deliveries[offset] += 1
        return taken

    def acknowledge(self, owner: str, batches: list[AcknowledgementBatch], lock_ms: int) -> int:
        """An error's code; then nothing was changed."""
        now = asyncio.get_running_loop().time()
        said = [(offset, types[0]) for first, last, types in batches for offset in range(first, last + 1)]
        for offset, _ in said:
            held = self.held.get(offset)
            if held is None or held.owner != owner or held.until <= now:
                return InvalidRecordState.code
        for offset, kind in said:
            if kind == AckType.RENEW:
                self.held[offset] = Held(owner, now + lock_ms / 1000, lock_ms)
                continue
            del self.held[offset]
            self.deliveries[offset] -= kind == AckType.RETURN
            if kind in (AckType.RELEASE, AckType.RETURN):
                self.available = sorted([*self.available, offset])
        return 0


class Cluster(Client):
    """`leaders`: for each topic, who leads its partitions."""

    def __init__(self, **leaders: list[int]) -> None:
        super().__init__("127.0.0.1:1")
        self.topics = {
            name: [Partition(leader) for leader in partitions] for name, partitions in leaders.items()
        }
        self.away: set[int] = set()
        self.slow_s = 0.0  # an answer with messages is on the way for so long
        self.slow_acknowledge_s = 0.0  # so is that to an acknowledgement
        self.slow_close_s = 0.0  # and the end of a session takes so long
        self.silent: set[int] = set()  # nodes that take requests and don't answer
        self.asked: Counter[str] = Counter()
        self.fetch_bytes: list[int] = []  # how much each fetch asked for; it gets all that there is
        self._sessions: dict[int, set[tuple[bytes, int]]] = {}  # by node: what is read there

    async def names(self) -> list[str]:
        return list(self.topics)

    async def call(
        self,
        api: Any,
        body: Any,
        *,
        node: int = -1,
        lane: str = "",
        timeout_s: float | None = None,
        version: int | None = None,
    ) -> Any:
        self.asked[api.NAME] += 1
        if api.KEY == metadata.KEY:
            return self._metadata(body)
        if node in self.away:
            raise NetworkException("It is away.")
        request = api.encode_request(body, VERSION)
        if api.KEY == share_fetch.KEY:
            return await self._fetch(node, share_fetch.decode(request, VERSION))
        asked = share_acknowledge.decode(request, VERSION)
        if asked.share_session_epoch == FINAL:
            await asyncio.sleep(self.slow_close_s)
        answer = self._acknowledge(asked)
        await asyncio.sleep(self.slow_acknowledge_s)
        return answer

    def _metadata(self, body: Any) -> Any:
        names = list(self.topics) if body.topics is None else [topic.name for topic in body.topics]
        found = [self._topic(name) for name in names]
        return SimpleNamespace(topics=found, brokers=[], cluster_id="c", controller_id=1)

    def _topic(self, name: str) -> Any:
        partitions = self.topics.get(name, [])
        return SimpleNamespace(
            name=name,
            topic_id=_id(name),
            is_internal=False,
            error_code=0 if partitions else UnknownTopicOrPartition.code,
            partitions=[
                SimpleNamespace(
                    partition_index=index,
                    leader_id=partition.leader,
                    leader_epoch=0,
                    replica_nodes=[],
                    isr_nodes=[],
                )
                for index, partition in enumerate(partitions)
            ],
        )

    async def _fetch(self, node: int, asked: share_fetch.ShareFetchRequest) -> Any:
        self.fetch_bytes.append(asked.max_bytes)
        session = self._sessions.setdefault(node, set())
        session |= {place[:2] for place in asked.partitions}
        session -= set(asked.forgotten)
        loop = asyncio.get_running_loop()
        while node in self.silent:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        deadline = loop.time() + asked.max_wait_ms / 1000
        while not (answers := self._collect(node, asked)) and loop.time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        if answers:
            await asyncio.sleep(self.slow_s)
        return fetch_messages.ShareFetchResponse(responses=self._refusals(node) + answers)

    def _collect(self, node: int, asked: share_fetch.ShareFetchRequest) -> list[Any]:
        answers: list[Any] = []
        left = asked.max_records
        for name, index, partition in self._read_at(node):
            offsets = [] if partition.error else partition.acquire(left, asked.owner, asked.lock_ms)
            left -= len(offsets)
            if offsets:
                acquired = [
                    fetch_messages.AcquiredRecords(at, at, partition.deliveries[at]) for at in offsets
                ]
                records = b"".join(
                    encode_batch([partition.record(name, index, at)], base_offset=at) for at in offsets
                )
                answer = fetch_messages.PartitionData(index, records=records, acquired_records=acquired)
                answers.append(fetch_messages.ShareFetchableTopicResponse(_id(name), [answer]))
        return answers

    def _refusals(self, node: int) -> list[Any]:
        return [
            fetch_messages.ShareFetchableTopicResponse(
                _id(name), [fetch_messages.PartitionData(index, partition.error)]
            )
            for name, index, partition in self._read_at(node)
            if partition.error
        ]

    def _read_at(self, node: int) -> list[tuple[str, int, Partition]]:
        return [
            (name, index, partition)
            for name, partitions in self.topics.items()
            for index, partition in enumerate(partitions)
            if (_id(name), index) in self._sessions[node]
        ]

    def _acknowledge(self, asked: share_acknowledge.ShareAcknowledgeRequest) -> Any:
        names = {_id(name): name for name in self.topics}
        answers = []
        for topic_id, index, batches in asked.partitions:
            partition = self.topics[names[topic_id]][index]
            code = partition.error or partition.acknowledge(asked.owner, batches, asked.lock_ms)
            data = acknowledge_messages.PartitionData(index, code)
            answers.append(acknowledge_messages.ShareAcknowledgeTopicResponse(topic_id, [data]))
        return acknowledge_messages.ShareAcknowledgeResponse(responses=answers)


def _id(name: str) -> bytes:
    return name.encode().ljust(16, b".")
