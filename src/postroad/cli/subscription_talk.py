"""What the commands about subscriptions share: errors in words that name it, its topics and partitions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from postroad.cli.session import Failed, talk
from postroad.errors import GroupIdNotFound, GroupSubscribedToTopic, NonEmptyGroup
from postroad.wire.subscription_names import TOPICS_CONFIG

if TYPE_CHECKING:
    from postroad.client import Client, TopicPartition

T = TypeVar("T")


def talk_about(name: str, bootstrap: str, timeout_s: float, work: Callable[[Client], Awaitable[T]]) -> T:
    """Do the work as `talk` does, and name the subscription in what is wrong."""

    async def named(client: Client) -> T:
        try:
            return await work(client)
        except GroupIdNotFound:
            raise Failed(f"there is no subscription {name}") from None
        except (NonEmptyGroup, GroupSubscribedToTopic):
            raise Failed(f"subscription {name} has members: stop them first") from None

    return talk(bootstrap, timeout_s, named)


async def exists(client: Client, name: str) -> None:
    """Failed if it doesn't, with one that may have been meant."""
    from postroad.client import subscriptions

    names = [found.group for found in await subscriptions.list_all(client)]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Failed(f"there is no subscription {name}{hint}")


async def held_topics(client: Client, name: str) -> list[str]:
    """The topics it was created with, then those that its members brought."""
    from postroad.client import subscriptions

    await exists(client, name)
    entries = {entry.name: entry.value for entry in await subscriptions.config(client, name)}
    texts = (entries.get(TOPICS_CONFIG) or "").split(",")
    named = [topic for text in texts if (topic := text.strip())]
    positions = await subscriptions.positions(client, name)
    return list(dict.fromkeys([*named, *sorted({topic_partition.topic for topic_partition in positions})]))


async def chosen(client: Client, name: str, wanted: Sequence[str]) -> list[TopicPartition]:
    """The subscription's partitions, or those of `TOPIC` and `TOPIC:PARTITION` only. Failed without any."""
    from postroad.client import subscriptions

    await exists(client, name)
    topic_partitions = sorted(await subscriptions.positions(client, name))
    if not topic_partitions:
        raise Failed(f"subscription {name} has no messages yet")
    found: dict[TopicPartition, None] = {}
    for text in wanted or sorted({topic_partition.topic for topic_partition in topic_partitions}):
        matching = [
            topic_partition
            for topic_partition in topic_partitions
            if text in (topic_partition.topic, f"{topic_partition.topic}:{topic_partition.partition}")
        ]
        if not matching:
            known = ", ".join(sorted({topic_partition.topic for topic_partition in topic_partitions}))
            raise Failed(f"subscription {name} does not have {text}; it has: {known}")
        found.update(dict.fromkeys(matching))
    return list(found)


def places_option(command: Any) -> Any:
    return click.option(
        "-t",
        "--topic",
        "wanted",
        multiple=True,
        metavar="TOPIC[:PARTITION]",
        help="Only this topic or partition; by default all of the subscription.",
    )(command)
