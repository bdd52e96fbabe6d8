"""Which dead letters are done with: in the subscription that all redrives share, and in our own marks.

`postroad redrive` accepts the letters that it sent in the subscription `<topic>.redrive`. A pipeline reads
the topic itself, so it sends first, notes which letters it sent (the marks, in the journal), and accepts
them in that subscription at the end: then marks are needed no more. Each side leaves out what the other
has done. Apache Kafka does not tell what a subscription is done with: there the marks stay.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from postroad.client import Client, subscriptions
from postroad.client.browse import DONE
from postroad.client.metadata import TopicPartition
from postroad.client.redrive import GROUP_CONFIG, dead_topic_of
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import ShareMessage
from postroad.client.struck_off import GROUP_SUFFIX
from postroad.errors import GroupIdNotFound, UnsupportedVersion
from postroad.pipelines.delivery import Span
from postroad.pipelines.journal import Journal

MARKS: Final = "sent "
SPANS_MAX: Final = 5_000  # of one note, some 100 KB
PEEK_MAX: Final = 100_000
POLL_RECORDS: Final = 500
POLL_MS: Final = 1000

Spans = dict[int, list[Span]]
"""Offsets of each partition, ascending."""


def dead_topic(bootstrap: str, name: str) -> str:
    """The dead-letter topic of a subscription, or the name itself."""

    async def ask() -> str:
        async with Client(bootstrap) as client:
            return await dead_topic_of(client, name)

    return asyncio.run(ask())


def holds(bootstrap: str, subscription: str, topic: str) -> bool:
    """Whether the subscription hands out messages of this topic."""

    async def ask() -> bool:
        async with Client(bootstrap) as client:
            try:
                positions = await subscriptions.positions(client, subscription)
            except GroupIdNotFound:
                return False
            return any(each.topic == topic for each in positions)

    return asyncio.run(ask())


def accepted(bootstrap: str, topic: str, ends: Mapping[int, int]) -> Spans | None:
    """What the subscription is done with, up to the ends. None if the cluster doesn't tell."""

    async def ask() -> Spans | None:
        async with Client(bootstrap) as client:
            try:
                found = {
                    partition: await _accepted(client, TopicPartition(topic, partition), end)
                    for partition, end in ends.items()
                }
            except UnsupportedVersion:
                return None
            return {partition: spans for partition, spans in found.items() if spans}

    return asyncio.run(ask())


async def _accepted(client: Client, topic_partition: TopicPartition, end: int) -> list[Span]:
    spans: list[Span] = []
    at = 0
    while at < end:
        try:
            answer = await subscriptions.peek(
                client, topic_partition.topic + GROUP_SUFFIX, topic_partition, at, PEEK_MAX
            )
        except GroupIdNotFound:
            return []  # nobody has redriven anything yet
        if answer.start_offset > at:
            spans.append(Span(at, answer.start_offset - 1))
        spans += [Span(each.first, each.last) for each in answer.ranges if each.state == DONE]
        looked = max((each.last for each in answer.ranges), default=end)
        at = max(looked, answer.start_offset - 1) + 1
    return merged(spans)


def read_marks(journal: Journal) -> Spans:
    """All letters that pipelines sent and nobody has accepted yet."""
    spans: Spans = {}
    for key, note in journal.all().items():
        if key.startswith(MARKS):
            spans.setdefault(note["partition"], []).extend(Span(*each) for each in note["offsets"])
    return {partition: merged(those) for partition, those in spans.items()}


def write_marks(journal: Journal, sent: Spans) -> None:
    """They are noted; writing them again changes nothing."""
    journal.put_all(_notes(sent))


def rewrite_marks(journal: Journal, left: Spans) -> None:
    """These are the marks now, and no others."""
    old = [key for key in journal.all() if key.startswith(MARKS)]
    new = _notes(left)
    journal.put_all({**{key: None for key in old if key not in new}, **new})


def _notes(sent: Spans) -> dict[str, dict[str, object]]:
    notes: dict[str, dict[str, object]] = {}
    for partition, spans in sent.items():
        for first in range(0, len(spans), SPANS_MAX):
            some = [span[:2] for span in spans[first : first + SPANS_MAX]]
            notes[f"{MARKS}{partition}/{some[0][0]}"] = {"partition": partition, "offsets": some}
    return notes


def accept(bootstrap: str, topic: str, marked: Spans, before: Spans) -> Spans:
    """Accept those in the subscription that were not before; what is left of them: somebody else holds it."""

    async def work() -> Spans:
        wanted = {
            (partition, offset)
            for partition, offset in _offsets(marked)
            if not _has(before.get(partition, []), offset)
        }
        group = topic + GROUP_SUFFIX
        async with Client(bootstrap) as client:
            await subscriptions.alter_config(client, group, GROUP_CONFIG)
            async with ShareConsumer(client, group, [topic]) as consumer:
                while wanted and (letters := await consumer.poll(POLL_RECORDS, POLL_MS)):
                    mine = [letter for letter in letters if _at(letter) in wanted]
                    refused = {_at(refusal.message) for refusal in await consumer.settle(mine)}
                    wanted -= {_at(letter) for letter in mine} - refused
        return from_offsets(wanted)

    return asyncio.run(work())


def _offsets(spans: Spans) -> Iterator[tuple[int, int]]:
    for partition, those in spans.items():
        for span in those:
            for offset in range(span.first, span.last + 1):
                yield partition, offset


def _has(spans: list[Span], offset: int) -> bool:
    at = bisect_right(spans, offset, key=lambda span: span.first) - 1
    return at >= 0 and offset <= spans[at].last


def _at(letter: ShareMessage) -> tuple[int, int]:
    return letter.partition, letter.offset


def from_offsets(offsets: Iterable[tuple[int, int]]) -> Spans:
    spans: Spans = {}
    for partition, offset in offsets:
        spans.setdefault(partition, []).append(Span(offset, offset))
    return {partition: merged(those) for partition, those in spans.items()}


def merged(spans: Iterable[Span]) -> list[Span]:
    """Ascending, and no two of them touch."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.first <= found[-1].last + 1:
            found[-1] = Span(found[-1].first, max(found[-1].last, span.last))
        else:
            found.append(Span(span.first, span.last))
    return found


def union(*several: Spans) -> Spans:
    partitions = sorted({partition for spans in several for partition in spans})
    return {
        partition: merged(span for spans in several for span in spans.get(partition, ()))
        for partition in partitions
    }


def within(spans: Spans, first: Mapping[int, int], end: Mapping[int, int]) -> Spans:
    """Those that lie in a range of each partition, cut to it."""
    found: Spans = {}
    for partition, those in spans.items():
        low, high = first.get(partition, 0), end.get(partition, 0) - 1
        cut = [Span(max(low, span.first), min(high, span.last)) for span in those]
        if kept := [span for span in cut if span.first <= span.last]:
            found[partition] = kept
    return found
