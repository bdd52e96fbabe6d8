"""What a mirror needs besides messages: topics at the target, and the positions of consumer groups."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from postroad.client import Client, groups, topics
from postroad.errors import (
    GroupIdNotFound,
    InvalidConfig,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from postroad.mirrors.topics import CARRIED, OURS
from postroad.pipelines.offset_map import Translation
from postroad.spark.cluster import Cluster
from postroad.spark.router import TopicPartition

SHARE: Final = "share"


def prepare_topics(source: str, target: str, partitions: Mapping[str, int], prefix: str) -> None:
    """Each topic is at the target, with at least as many partitions; if it is new, with its settings."""

    async def work() -> None:
        async with Client(source) as one, Client(target) as other:
            for name, count in partitions.items():
                try:
                    found = await other.topic(prefix + name)
                except UnknownTopicOrPartition:
                    await _create(one, other, name, prefix, count)
                    continue
                if len(found.partitions) < count:
                    await topics.add_partitions(other, prefix + name, count)

    asyncio.run(work())


async def _create(source: Client, target: Client, name: str, prefix: str, partitions: int) -> None:
    entries = await topics.describe_config(source, name)
    carried = {
        entry.name: entry.value
        for entry in entries
        if entry.is_override
        and entry.value is not None
        and (entry.name in CARRIED or entry.name.startswith(OURS))
    }
    plain = {key: value for key, value in carried.items() if not key.startswith(OURS)}
    with suppress(TopicAlreadyExists):
        try:
            await topics.create(target, prefix + name, partitions=partitions, config=carried)
        except InvalidConfig:
            if plain == carried:
                raise
            await topics.create(target, prefix + name, partitions=partitions, config=plain)


def group_names(bootstrap: str, names: Sequence[str], pattern: str | None) -> list[str]:
    """The consumer groups of these names, and those that the pattern matches as a whole."""
    if pattern is None:
        return list(names)

    async def ask() -> list[str]:
        async with Client(bootstrap) as client:
            return [found.group for found in await groups.list_all(client) if found.type != SHARE]

    return sorted({*names, *(name for name in asyncio.run(ask()) if re.fullmatch(pattern, name))})


def move_groups(
    source: Cluster,
    target: Cluster,
    names: Collection[str],
    translate: Translation,
    topic_partitions: Mapping[TopicPartition, TopicPartition],
) -> dict[str, int]:
    """Groups go on at the target where they are at the source; how many partitions of each were moved.

    `topic_partitions` are the target's by the source's. No position is moved back, and none beyond what is
    mirrored. A group that has members at the target is left alone: it has failed over, and its positions are
    its own.
    """
    moved: dict[str, int] = {}
    ends = target.latest(list(topic_partitions.values()))
    for name in names:
        wanted = _wanted(source, name, translate, topic_partitions)
        try:
            there = target.committed(name, list(wanted)) if wanted else {}
        except GroupIdNotFound:
            there = {}
        forward = {}
        for topic_partition, offset in wanted.items():
            at, capped = there.get(topic_partition), min(offset, ends[topic_partition])
            if at is None or at < capped:
                forward[topic_partition] = capped
        if forward:
            try:
                target.commit(name, forward)
            except UnknownMemberId:
                continue
            moved[name] = len(forward)
    return moved


def _wanted(
    source: Cluster,
    name: str,
    translate: Translation,
    topic_partitions: Mapping[TopicPartition, TopicPartition],
) -> dict[TopicPartition, int]:
    try:
        committed = source.committed(name, list(topic_partitions))
    except GroupIdNotFound:
        return {}
    wanted = {}
    for topic_partition, offset in committed.items():
        if offset is not None and (translated := translate(topic_partition, offset)) is not None:
            wanted[topic_partitions[topic_partition]] = translated
    return wanted
