"""Dead letters back to where they came from.

A letter that goes back to its topic is for the subscription in which it died: a header says so
(`postroad-for`), and the others pass it over, for they have done with the message.

Letters are read through a subscription of its own on the dead-letter topic, `<dead-letter topic>.redrive`,
and each is accepted there after its copy was acknowledged by all replicas. So:

1. A crash loses nothing: at worst a letter that was published and not yet accepted is published twice.
2. It can be repeated: what was sent back is done with; what did not match is held until the end, and
   released then by leaving.
3. It ends: letters that arrive after its start (perhaps those that it sent back, and failed again) wait
   for the next time.

That subscription is kept as the record of what was sent back (`struck_off`); where there is nothing to
record it goes again. Who only counts reads the topic itself, and leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from postroad.client import offsets, subscriptions
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.letter_edit import NO_EDIT, Edit
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.client.producer import Delivery, Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.client.struck_off import GROUP_SUFFIX, not_sent_back
from postroad.errors import (
    CoordinatorNotAvailable,
    GroupIdNotFound,
    NonEmptyGroup,
    PostroadError,
    UnknownTopicOrPartition,
)
from postroad.wire.header_names import (
    ASKED_FOR,
    DEAD_AT,
    DEAD_REASON,
    DEAD_SUBSCRIPTION,
    DEAD_TOPIC,
    FOR,
    tells_of_death,
)
from postroad.wire.records import Record
from postroad.wire.subscription_names import (
    BOOKKEEPING_CONFIG,
    DEAD_LETTER_TOPIC_CONFIG,
    DEAD_LETTERS_CONFIG,
    DELIVERY_LIMIT_CONFIG,
    LOCK_CONFIG,
    START_CONFIG,
    default_dead_letter_topic,
)

GROUP_CONFIG: Final = {
    START_CONFIG: "earliest",
    DELIVERY_LIMIT_CONFIG: "0",
    LOCK_CONFIG: "43200000",  # what is kept is held to the end; a crash releases it
    "share.partition.max.record.locks": "1000000",
    "postroad.member.max.record.locks": "1000000",
    "postroad.max.record.locks": "10000000",
    DEAD_LETTERS_CONFIG: "false",
    BOOKKEEPING_CONFIG: "true",
}
POLL_RECORDS: Final = 500
POLL_MS: Final = 1000  # letters that are there come at once; after this there are none
LAST_POLL_MS: Final = 100  # when all that were counted have come
PATIENCE_S: Final = 30.0  # while letters are there and none comes: a leader is being elected, as a rule
PACES_A_SECOND: Final = 10  # a rate is kept in steps of a tenth of a second


class Filter(NamedTuple):
    """Which letters: all conditions hold."""

    reasons: Sequence[str] = ()  # any of them
    headers: Sequence[tuple[str, bytes]] = ()
    key_pattern: str | None = None  # with * and ?
    since_ms: int = 0  # died at or after

    def matches(self, letter: ShareMessage | Record) -> bool:
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
    """`to` None: each to its own topic. `to_all`: for all subscriptions of the topic, not only for the one in
    which it died. `rate` is letters a second. `dry` sends nothing. `ends`: up to these offsets of the
    dead-letter topic, by partition; None: what is there when it begins. `may_write`: whether letters may go
    to a topic, where that is not the nodes' affair. `chosen`: only these, by partition and offset; None:
    all. `edit` is made to each; one that it does not fit is kept. `discard`: they are struck off, and go
    nowhere."""

    def __init__(
        self,
        client: Client,
        dead_topic: str,
        *,
        filter_: Filter = EVERY,
        to: str | None = None,
        to_all: bool = False,
        rate: float | None = None,
        limit: int | None = None,
        dry: bool = False,
        ends: Mapping[int, int] | None = None,
        may_write: Callable[[str], bool] = lambda _: True,
        chosen: Collection[tuple[int, int]] | None = None,
        edit: Edit = NO_EDIT,
        discard: bool = False,
    ) -> None:
        self.report = Report()
        self._client = client
        self._dead_topic = dead_topic
        self._filter = filter_
        self._to = to
        self._to_all = to_all
        self._rate = rate
        self._limit = limit
        self._dry = dry
        self._ends = ends
        self._may_write = may_write
        self._chosen = None if chosen is None else frozenset(chosen)
        self._to_come = set() if chosen is None else set(chosen)  # chosen ones that were not seen yet
        self._edit = edit
        self._discard = discard
        self._stopping = asyncio.Event()
        self._known: dict[str, bool] = {}
        self._held: dict[str, set[str]] = {}  # the topics of subscriptions
        self._total = 0  # letters when it began

    def stop(self) -> None:
        """`run` returns when what is under way is done."""
        self._stopping.set()

    async def run(self, progress: Callable[[int, int], None]) -> Report:
        """`progress` is told how many letters were looked at, of how many. UnknownTopicOrPartition
        if there is no such dead-letter topic."""
        client, topic = self._client, self._dead_topic
        topic_partitions = [
            TopicPartition(topic, part.number) for part in (await client.topic(topic)).partitions
        ]
        ends = await self._ends_of(topic_partitions)
        if self._dry:
            await self._count(ends, progress)
            return self.report
        group = topic + GROUP_SUFFIX
        is_first = not await self._topics_of(group)
        await subscriptions.alter_config(client, group, GROUP_CONFIG)
        try:
            await self._run(group, ends, progress)
        finally:
            if is_first and not self.report.sent:
                with contextlib.suppress(NonEmptyGroup, GroupIdNotFound):  # another redrive has joined it
                    await subscriptions.delete(client, group)
        return self.report

    async def _run(
        self, group: str, ends: Mapping[TopicPartition, int], progress: Callable[[int, int], None]
    ) -> None:
        client, topic = self._client, self._dead_topic
        async with ShareConsumer(client, group, [topic]) as consumer, Producer(client) as producer:
            positions = await subscriptions.positions(client, group)
            self._total = sum(max(0, position.lag) for position in positions.values())
            await self._work(consumer, producer, ends, progress)

    async def _count(self, ends: Mapping[TopicPartition, int], progress: Callable[[int, int], None]) -> None:
        """What a run would do with the letters that were not sent back, as far as it can be told."""
        for topic_partition, end in ends.items():
            async with Consumer(self._client, reset=EARLIEST) as consumer:
                await consumer.assign({topic_partition: EARLIEST})
                while consumer.positions[topic_partition] < end and not self._is_enough():
                    came = [
                        record for _, records, _ in await consumer.poll(POLL_MS / 1000) for record in records
                    ]
                    if not came or self._stopping.is_set():
                        break
                    old = [record for record in came if record.offset < end]
                    for letter in await not_sent_back(self._client, topic_partition, old):
                        if not self._is_enough():
                            await self._count_one(topic_partition, letter)
                    self._total = self.report.seen
                    progress(self.report.seen, self._total)

    async def _count_one(self, topic_partition: TopicPartition, letter: Record) -> None:
        self.report.seen += 1
        if not self._is_wanted(topic_partition, letter):
            self.report.kept += 1
        elif self._discard or await self._target(letter) is not None:
            self.report.sent += 1

    def _is_wanted(self, topic_partition: TopicPartition, letter: ShareMessage | Record) -> bool:
        if self._chosen is not None:
            where = topic_partition.partition, letter.offset
            self._to_come.discard(where)
            if where not in self._chosen:
                return False
        return self._filter.matches(letter) and (self._discard or self._edit.fits(letter.value))

    async def _ends_of(self, topic_partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        if self._ends is None:
            return await offsets.latest(self._client, topic_partitions)
        return {
            topic_partition: self._ends.get(topic_partition.partition, 0)
            for topic_partition in topic_partitions
        }

    async def _work(
        self,
        consumer: ShareConsumer,
        producer: Producer,
        ends: Mapping[TopicPartition, int],
        progress: Callable[[int, int], None],
    ) -> None:
        """Until nothing is left, or (rule 3) as many polls as there are partitions bring only news."""
        loop = asyncio.get_running_loop()
        began = last_came = loop.time()
        news = 0
        while news <= len(ends) and not self._is_enough() and not self._stopping.is_set():
            wait_ms = POLL_MS if self.report.seen < self._total else LAST_POLL_MS
            letters = await consumer.poll(self._batch(), wait_ms)
            if not letters:
                left = await subscriptions.receivable(self._client, self._dead_topic + GROUP_SUFFIX)
                if not left:
                    return
                if loop.time() - last_came > PATIENCE_S:
                    raise CoordinatorNotAvailable(f"{left} letters can't be received now: run it again.")
                continue
            last_came = loop.time()
            old = [letter for letter in letters if letter.offset < ends[letter.topic_partition]]
            news = 0 if old else news + 1
            await self._send_back(consumer, producer, old)
            progress(self.report.seen, self._total)
            await self._pace(began)

    def _is_enough(self) -> bool:
        if self._chosen is not None and not self._to_come:
            return True
        return self._limit is not None and self.report.sent >= self._limit

    def _batch(self) -> int:
        batch = POLL_RECORDS if self._rate is None else max(1, int(self._rate / PACES_A_SECOND))
        left = POLL_RECORDS if self._limit is None else self._limit - self.report.sent
        return min(POLL_RECORDS, batch, left)

    async def _pace(self, began: float) -> None:
        if self._rate is not None:
            due = began + self.report.sent / self._rate
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._stopping.wait()

    async def _send_back(
        self, consumer: ShareConsumer, producer: Producer, letters: Sequence[ShareMessage]
    ) -> None:
        on_their_way: list[tuple[ShareMessage, Delivery]] = []
        done_with: list[ShareMessage] = []
        for letter in letters:
            self.report.seen += 1
            if not self._is_wanted(letter.topic_partition, letter):
                self.report.kept += 1
            elif self._discard:
                done_with.append(letter)
            elif (target := await self._target(letter)) is not None:
                on_their_way.append((letter, await self._publish(producer, target, letter)))
        for letter, delivery in on_their_way:
            try:
                await delivery
                done_with.append(letter)
            except PostroadError as error:
                self.report.fail(str(error))
        self.report.sent += len(done_with)
        for refusal in await consumer.settle(done_with):
            self.report.fail(f"sent back, but not struck off the dead letters: {refusal.error}")

    async def _target(self, letter: ShareMessage | Record) -> str | None:
        """Where it goes; None, and the reason noted, if it can't go anywhere."""
        target = self._to or _text(dict(letter.headers).get(DEAD_TOPIC))
        if not target:
            self.report.fail("it does not say from which topic it came: name one with --to")
            return None
        if not self._may_write(target):
            self.report.fail(f"who began it may not write to {target}")
            return None
        if target not in self._known:
            self._known[target] = await self._exists(target)
        if not self._known[target]:
            self.report.fail(f"there is no topic {target}")
            return None
        addressee = self._addressee(letter, target)
        if addressee is not None and target not in await self._topics_of(_text(addressee)):
            gone = f"no subscription {_text(addressee)} holds {target} any more"
            self.report.fail(f"{gone}: --to-all sends it to all that do")
            return None
        return target

    def _addressee(self, letter: ShareMessage | Record, target: str) -> bytes | None:
        """The subscription that the letter is for. On another topic than its own it is for all."""
        headers = dict(letter.headers)
        if self._to_all or _text(headers.get(DEAD_TOPIC)) != target:
            return None
        return headers.get(DEAD_SUBSCRIPTION) or None

    async def _topics_of(self, subscription: str) -> set[str]:
        if subscription not in self._held:
            try:
                positions = await subscriptions.positions(self._client, subscription)
            except GroupIdNotFound:
                positions = {}
            self._held[subscription] = {topic_partition.topic for topic_partition in positions}
        return self._held[subscription]

    async def _exists(self, topic: str) -> bool:
        try:
            await self._client.retry(lambda: self._client.topic(topic))
        except UnknownTopicOrPartition:
            return False
        return True

    async def _publish(self, producer: Producer, target: str, letter: ShareMessage) -> Delivery:
        edit, headers = self._edit, self._edit.headers_of(revived(letter.headers))
        if (addressee := self._addressee(letter, target)) is not None:
            headers.append((FOR, addressee))
        value, key = edit.value_of(letter.value), edit.key_of(letter.key)
        return await producer.send(target, value, key=key, headers=headers)


def revived(headers: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    """Without the marks of death, and without what was asked for the message that died."""
    return [(name, value) for name, value in headers if not tells_of_death(name) and name not in ASKED_FOR]


def _text(data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")
