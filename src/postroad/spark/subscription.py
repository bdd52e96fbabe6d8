"""Which partitions a query reads: named topics, topics by pattern, or partitions one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from postroad.errors import ConfigurationError, UnknownTopicOrPartition
from postroad.spark.cluster import Cluster, TopicInfo
from postroad.spark.option_values import Values, wrong
from postroad.spark.router import TopicPartition

ASSIGN: Final = "assign"
SUBSCRIBE: Final = "subscribe"
PATTERN: Final = "subscribePattern"


@dataclass(frozen=True, slots=True)
class Subscription:
    """One of the three is set. Topics and partitions may come and go while a query runs."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[TopicPartition, ...] = ()

    def topic_partitions(self, cluster: Cluster, *, strict: bool = True) -> list[TopicPartition]:
        """The partitions that there are now, in order.

        UnknownTopicOrPartition for a topic or partition by name that doesn't exist; if not `strict`
        they are left out instead. A pattern may match nothing.
        """
        if self.pattern:
            return _all_of(cluster.topics(pattern=self.pattern))
        names = self.topics or tuple(dict.fromkeys(topic for topic, _ in self.assigned))
        there = _all_of(cluster.topics(names)) if strict else existing(cluster, names)
        if not self.assigned:
            return there
        missing = sorted(set(self.assigned) - set(there))
        if missing and strict:
            topic, partition = missing[0]
            raise UnknownTopicOrPartition(
                f"Option assign names {topic}/{partition}, and there is no such partition."
            )
        return sorted(set(self.assigned) & set(there))


def parse(values: Values) -> Subscription:
    """From exactly one of the options assign, subscribe and subscribePattern."""
    given = values.given(SUBSCRIBE, PATTERN, ASSIGN)
    if not given:
        raise ConfigurationError(
            "Say what to read: option subscribe (topics, with commas between), subscribePattern or assign."
        )
    if len(given) > 1:
        raise ConfigurationError(f"Options {' and '.join(given)} contradict each other: give one of them.")
    text = values.text(given[0]) or ""
    if given[0] == SUBSCRIBE:
        return Subscription(topics=_topics(text))
    if given[0] == PATTERN:
        return Subscription(pattern=_pattern(text))
    return Subscription(assigned=_assigned(text))


def _topics(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    if not names:
        raise wrong(SUBSCRIBE, text, "topics, with commas between")
    return names


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise wrong(PATTERN, text, f"a regular expression ({error})") from None
    return text


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    right = 'JSON like {"orders": [0, 1]}'
    try:
        found = json.loads(text)
        topic_partitions = {(topic, partition) for topic, those in found.items() for partition in those}
    except (ValueError, AttributeError, TypeError):
        raise wrong(ASSIGN, text, right) from None
    if not topic_partitions or not all(
        type(partition) is int and partition >= 0 for _, partition in topic_partitions
    ):
        raise wrong(ASSIGN, text, right)
    return tuple(sorted(topic_partitions))


def _all_of(topics: dict[str, TopicInfo]) -> list[TopicPartition]:
    return sorted(topic_partition for topic in topics.values() for topic_partition in topic.topic_partitions)


def existing(cluster: Cluster, names: Iterable[str]) -> list[TopicPartition]:
    """The partitions of those of the topics that there are, in order."""
    topic_partitions = []
    for name in names:
        with suppress(UnknownTopicOrPartition):
            topic_partitions += _all_of(cluster.topics([name]))
    return sorted(topic_partitions)
