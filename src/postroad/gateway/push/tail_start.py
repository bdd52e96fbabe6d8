"""Where a tail begins: what the URL says, or where the last one stopped.

A position is written `0:42,3:17`: of each partition the next offset. That is an event's id, so that a reader
which comes back with `Last-Event-ID` misses nothing and sees nothing twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from postroad.client import offsets
from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST, LATEST

OFFSET_MAX: Final = (1 << 63) - 1
_LAST: Final = re.compile(r"-[0-9]{1,18}")
_POSITION: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,19}(,[0-9]{1,10}:[0-9]{1,19})*")

Positions = dict[int, int]


class BadPosition(ValueError):
    """The start of a tail can't be read; the text says why."""


def write(positions: Mapping[int, int]) -> str:
    return ",".join([f"{partition}:{offset}" for partition, offset in positions.items()])


def read(text: str) -> Positions:
    """Raises NoPlace."""
    if not _POSITION.fullmatch(text):
        raise BadPosition(f"{text[:40]!r} is not a position such as 0:42,1:17.")
    pairs = [pair.split(":") for pair in text.split(",")]
    return {int(partition): min(int(offset), OFFSET_MAX) for partition, offset in pairs}


def last_count(text: str) -> int | None:
    """The N of `-N`; None if it is something else."""
    return int(text[1:]) if _LAST.fullmatch(text) else None


async def find(client: Client, topic: str, partitions: Sequence[int], text: str) -> Positions:
    """The next offset of each partition. Raises NoPlace, PostroadError.

    `text` is `beginning`, `end`, an offset, a position or a time.
    """
    if text == "beginning":
        return await _ask(client, topic, dict.fromkeys(partitions, EARLIEST))
    if text == "end":
        return await _ask(client, topic, dict.fromkeys(partitions, LATEST))
    if text.isascii() and text.isdecimal():
        if len(partitions) != 1:
            raise BadPosition("An offset belongs to one partition: name it with `partition`.")
        return await _within(client, topic, partitions, {partitions[0]: min(int(text[:20]), OFFSET_MAX)})
    if ":" in text and "T" not in text:
        return await _within(client, topic, partitions, read(text))
    at_ms = _read_time(text)
    found = await _ask(client, topic, dict.fromkeys(partitions, at_ms))
    none_so_late = [partition for partition, offset in found.items() if offset < 0]
    return found | await _ask(client, topic, dict.fromkeys(none_so_late, LATEST))


async def _within(client: Client, topic: str, partitions: Sequence[int], wanted: Positions) -> Positions:
    """As wanted, as far as it is still there. A partition that is not named is new: from its beginning."""
    first = await _ask(client, topic, dict.fromkeys(partitions, EARLIEST))
    end = await _ask(client, topic, dict.fromkeys(partitions, LATEST))
    return {each: min(max(wanted.get(each, 0), first[each]), end[each]) for each in partitions}


async def find_last(client: Client, topic: str, partitions: Sequence[int], count: int) -> Positions:
    """The last `count` offsets of all partitions together, as evenly as they have them. Rounded up, so that
    the newest message is among them whichever partition has it."""
    first = await _ask(client, topic, dict.fromkeys(partitions, EARLIEST))
    end = await _ask(client, topic, dict.fromkeys(partitions, LATEST))
    has = {each: end[each] - first[each] for each in partitions}
    left, others, share = count, len(partitions), 0
    for partition in sorted(partitions, key=lambda each: has[each]):
        share = max(share, -(-left // others))
        left, others = max(0, left - has[partition]), others - 1
    return {each: end[each] - min(has[each], share) for each in partitions}


async def _ask(client: Client, topic: str, times: Mapping[int, int]) -> Positions:
    if not times:
        return {}
    topic_partitions = {TopicPartition(topic, partition): time for partition, time in times.items()}
    return {
        topic_partition.partition: at.offset
        for topic_partition, at in (await offsets.find(client, topic_partitions)).items()
    }


def _read_time(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise BadPosition(
            "`from` must be beginning, end, an offset, a position such as 0:42,1:17, or a time such as "
            "2026-03-01T08:00:00Z."
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))
