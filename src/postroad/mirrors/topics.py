"""Topics at the target: made like their originals, as many partitions, and configs that follow.

Of a config it is noted what the source had when it was last looked at. What has changed since is set at the
target; what was changed at the target alone stays. So clusters that mirror each other follow whichever
changes, and neither takes back what the other has heard of already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from postroad.client import Client, topics
from postroad.client.metadata import Topic
from postroad.errors import InvalidConfig, TopicAlreadyExists

# Those that mean the same elsewhere. Not message.timestamp.type: messages keep their time.
CARRIED: Final = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)
OURS: Final = "postroad."  # that Postroad alone knows
LARGEST: Final = "max.message.bytes"
ORIGIN_BYTES: Final = 1024  # by which a copy may be larger than its original: headers that tell its origin


class Configs(NamedTuple):
    """`given`: what is set for the topic and carried over. `largest`: how large its messages may be."""

    given: dict[str, str]
    largest: int | None


async def configs(source: Client, topic: str, wanted: Collection[str] | None) -> Configs:
    """Those of these names, or of those that usually are carried over."""
    given: dict[str, str] = {}
    largest = None
    for entry in await topics.describe_config(source, topic):
        if entry.value is None:
            continue
        if entry.is_override and _is_carried(entry.name, wanted):
            given[entry.name] = entry.value
        if entry.name == LARGEST and entry.value.isdecimal():
            largest = int(entry.value)
    return Configs(given, largest)


async def prepare(target: Client, name: str, original: Topic, configs: Configs) -> Topic:
    """The topic at the target, with at least as many partitions."""
    found = await target.topic_now(name)
    if found is None:
        await _create(target, name, len(original.partitions), _with_room(configs))
    elif len(found.partitions) < len(original.partitions):
        await topics.add_partitions(target, name, len(original.partitions))
    else:
        return found
    return await target.topic(name)


async def follow(target: Client, name: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """What has changed at the source is so at the target."""
    changes = {key: value for key, value in now.items() if before.get(key) != value}
    resets = [key for key in before if key not in now]
    if changes or resets:
        with suppress(InvalidConfig):  # a setting that the target does not know, or not so
            await topics.alter_config(target, name, changes, resets)


async def _create(target: Client, name: str, partitions: int, given: Mapping[str, str]) -> None:
    plain = {key: value for key, value in given.items() if not key.startswith(OURS)}
    with suppress(TopicAlreadyExists):
        try:
            await topics.create(target, name, partitions=partitions, config=given)
        except InvalidConfig:
            if plain == given:
                raise
            await topics.create(target, name, partitions=partitions, config=plain)


def _with_room(configs: Configs) -> dict[str, str]:
    if configs.largest is None:
        return configs.given
    return {**configs.given, LARGEST: str(configs.largest + ORIGIN_BYTES)}


def _is_carried(name: str, wanted: Collection[str] | None) -> bool:
    if wanted is not None:
        return name in wanted
    return name in CARRIED or name.startswith(OURS)
