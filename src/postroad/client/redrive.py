"""Dead letters back to where they came from.

They are read through a subscription of its own on the dead-letter topic, `<dead-letter topic>.redrive`,
and each is accepted there after its copy was acknowledged by all replicas. So:

1. A crash loses nothing: at worst a letter that was published and not yet accepted is published twice.
2. It can be repeated: what was sent back is done with; what did not match is held until the end, and
   released then by leaving.
3. It ends: letters that arrive after its start (perhaps those that it sent back, and failed again) wait
   for the next time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from postroad.client import offsets, subscriptions
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.producer import Delivery, Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.errors import PostroadError, UnknownTopicOrPartition
from postroad.wire.header_names import ASKED_FOR, DEAD, DEAD_AT, DEAD_REASON, DEAD_TOPIC
from postroad.wire.subscription_names import (
    DEAD_LETTER_TOPIC_CONFIG,
    DEAD_LETTERS_CONFIG,
    DELIVERY_LIMIT_CONFIG,
    LOCK_CONFIG,
    START_CONFIG,
    default_dead_letter_topic,
)

GROUP_SUFFIX: Final = ".redrive"
GROUP_CONFIG: Final = {
    START_CONFIG: "earliest",
    DELIVERY_LIMIT_CONFIG: "0",
    LOCK_CONFIG: "43200000",  # what is kept is held to the end; a crash releases it
    "share.partition.max.record.locks": "1000000",
    "postroad.member.max.record.locks": "1000000",
    "postroad.max.record.locks": "10000000",
    DEAD_LETTERS_CONFIG: "false",
}
POLL_RECORDS: Final = 500
POLL_MS: Final = 1000  # letters that are there come at once; after this there are none
LAST_POLL_MS: Final = 100  # when all that were counted have come
PACES_A_SECOND: Final = 10  # a rate is kept in steps of a tenth of a second


class Filter(NamedTuple):
    """Which letters: all conditions hold."""

    reasons: Sequence[str] = ()  # any of them
    headers: Sequence[tuple[str, bytes]] = ()
    key_pattern: str | None = None  # with * and ?
    since_ms: int = 0  # died at or after

    def matches(self, letter: ShareMessage) -> bool:
        found = dict(letter.headers)
        if self.reasons and _text(found.get(DEAD_REASON)) not in self.reasons:
            return False
        if any((name, value) not in letter.headers for name, value in self.headers):
            return False
        if self.key_pattern is not None and not fnmatchcase(_text(letter.key), self.key_pattern):
            return False
        died_at = _text(found.get(DEAD_AT))
        return not self.since_ms or (died_at.isdecimal() and int(died_at) >= self.since_ms)


EVERY: Final = Filter()


@dataclass
class Report:
    """What a run has done so far. `failed` counts letters by why they could not be sent back."""

    seen: int = 0
    sent: int = 0
    kept: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        self.failed[reason] = self.failed.get(reason, 0) + 1


async def dead_topic_of(client: Client, name: str) -> str:
    """The dead-letter topic of a subscription; any other name is taken for such a topic itself."""
    names = {found.group for found in await subscriptions.list_all(client)}
    if name not in names:
        return name
    entries = {entry.name: entry.value for entry in await subscriptions.config(client, name)}
    return entries.get(DEAD_LETTER_TOPIC_CONFIG) or default_dead_letter_topic(name)


class Redrive:
    """`to` None: each to its own topic. `rate` is letters a second. `dry` sends nothing. `ends`: up to these
    offsets of the dead-letter topic, by partition; None: what is there when it begins."""

    def __init__(
        self,
        client: Client,
        dead_topic: str,
        *,
        filter_: Filter = EVERY,
        to: str | None = None,
        rate: float | None = None,
        limit: int | None = None,
        dry: bool = False,
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self.report = Report()
        self._client = client
        self._dead_topic = dead_topic
        self._filter = filter_
        self._to = to
        self._rate = rate
        self._limit = limit
        self._dry = dry
        self._ends = ends
        self._stopping = asyncio.Event()
        self._known: dict[str, bool] = {}
        self._total = 0  # letters when it began

    def stop(self) -> None:
        """`run` returns when what is under way is done."""
        self._stopping.set()

    async def run(self, progress: Callable[[int, int], None]) -> Report:
        """`progress` is told how many letters were looked at, of how many. UnknownTopicOrPartition
        if there is no such dead-letter topic."""
        client, topic = self._client, self._dead_topic
        places = [TopicPartition(topic, part.number) for part in (await client.topic(topic)).partitions]
        ends = await self._ends_of(places)
        group = topic + GROUP_SUFFIX
        await subscriptions.alter_config(client, group, GROUP_CONFIG)
        async with ShareConsumer(client, group, [topic]) as consumer, Producer(client) as producer:
            positions = await subscriptions.positions(client, group)
            self._total = sum(max(0, position.lag) for position in positions.values())
            await self._work(consumer, producer, ends, progress)
        return self.report

    async def _ends_of(self, places: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        if self._ends is None:
            return await offsets.latest(self._client, places)
        return {place: self._ends.get(place.partition, 0) for place in places}

    async def _work(
        self,
        consumer: ShareConsumer,
        producer: Producer,
        ends: Mapping[TopicPartition, int],
        progress: Callable[[int, int], None],
    ) -> None:
        """Until a poll brings nothing, or (rule 3) as many polls as there are partitions only news."""
        began = asyncio.get_running_loop().time()
        news = 0
        while news <= len(ends) and not self._is_enough() and not self._stopping.is_set():
            wait_ms = POLL_MS if self.report.seen < self._total else LAST_POLL_MS
            letters = await consumer.poll(self._batch(), wait_ms)
            if not letters:
                return
            old = [letter for letter in letters if letter.offset < ends[letter.place]]
            news = 0 if old else news + 1
            await self._send_back(consumer, producer, old)
            progress(self.report.seen, self._total)
            await self._pace(began)

    def _is_enough(self) -> bool:
        return self._limit is not None and self.report.sent >= self._limit

    def _batch(self) -> int:
        batch = POLL_RECORDS if self._rate is None else max(1, int(self._rate / PACES_A_SECOND))
        left = POLL_RECORDS if self._limit is None else self._limit - self.report.sent
        return min(POLL_RECORDS, batch, left)

    async def _pace(self, began: float) -> None:
        if self._rate is not None and not self._dry:
            due = began + self.report.sent / self._rate
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._stopping.wait()

    async def _send_back(
        self, consumer: ShareConsumer, producer: Producer, letters: Sequence[ShareMessage]
    ) -> None:
        on_their_way: list[tuple[ShareMessage, Delivery]] = []
        for letter in letters:
            self.report.seen += 1
            if not self._filter.matches(letter):
                self.report.kept += 1
            elif (target := await self._target(letter)) is not None:
                if self._dry:
                    self.report.sent += 1
                else:
                    on_their_way.append((letter, await _publish(producer, target, letter)))
        published: list[ShareMessage] = []
        for letter, delivery in on_their_way:
            try:
                await delivery
                published.append(letter)
            except PostroadError as error:
                self.report.fail(str(error))
        self.report.sent += len(published)
        for refusal in await consumer.settle(published):
            self.report.fail(f"sent back, but not struck off the dead letters: {refusal.error}")

    async def _target(self, letter: ShareMessage) -> str | None:
        """Where it goes; None, and the reason noted, if it can't go anywhere."""
        target = self._to or _text(dict(letter.headers).get(DEAD_TOPIC))
        if not target:
            self.report.fail("it does not say from which topic it came: name one with --to")
            return None
        if target not in self._known:
            self._known[target] = await self._exists(target)
        if not self._known[target]:
            self.report.fail(f"there is no topic {target}")
            return None
        return target

    async def _exists(self, topic: str) -> bool:
        try:
            await self._client.retry(lambda: self._client.topic(topic))
        except UnknownTopicOrPartition:
            return False
        return True


async def _publish(producer: Producer, target: str, letter: ShareMessage) -> Delivery:
    headers = [
        (name, value) for name, value in letter.headers if not name.startswith(DEAD) and name not in ASKED_FOR
    ]
    return await producer.send(target, letter.value, key=letter.key, headers=headers)


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")
