"""Which logs and which keys of the store belong to one moment of a cluster.

The store is read before and after the ends of the logs were noted. What both readings have existed in
between; a topic that one of them lacks was being created or deleted, and is left out. A topic that got
partitions, or a first subscription, in between is reason to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from postroad.backups.manifest import LogKey
from postroad.cluster import keys
from postroad.cluster.ids import id_text
from postroad.wire.backup import LogFacts, StoreKey


class StoredTopic(NamedTuple):
    """A topic as the store has it."""

    name: str
    id: str
    ledgers: tuple[bool, ...]  # of each partition, whether it has one

    def logs(self) -> Iterable[LogKey]:
        for index, has_ledger in enumerate(self.ledgers):
            yield LogKey(self.id, index, False)
            if has_ledger:
                yield LogKey(self.id, index, True)


class Again(Exception):
    """The cluster was changing: look again. The text says what was missing."""


def topics_in(entries: Iterable[StoreKey]) -> dict[str, StoredTopic]:
    """By id. Raises CoordinationError if a value can't be read."""
    by_key = {entry.key: entry.value for entry in entries}
    found = {}
    for key, value in by_key.items():
        if key.startswith(keys.TOPICS):
            topic = keys.decode(key, value, keys.TopicValue)
            states = states_of(by_key, topic.id)
            found[topic.id] = StoredTopic(topic.name, topic.id, tuple(state.ledger for state in states))
    return found


def states_of(by_key: Mapping[str, bytes], topic_id: str) -> list[keys.PartitionState]:
    """The states of the topic's partitions, in order."""
    prefix = f"{keys.PARTITIONS}{topic_id}/"
    states: list[keys.PartitionState] = []
    for key in sorted(key for key in by_key if key.startswith(prefix)):
        states += keys.decode(key, by_key[key], keys.ChunkValue).states
    return states


def key_of(facts: LogFacts) -> LogKey:
    return LogKey(id_text(facts.topic_id), facts.index, facts.is_ledger)


def of_one_moment(
    before: list[StoreKey], logs: Mapping[LogKey, LogFacts], after: list[StoreKey]
) -> tuple[dict[LogKey, StoredTopic], list[StoreKey]]:
    """The logs that belong into the backup, with their topics, and the store's keys. Raises Again."""
    old, new = topics_in(before), topics_in(after)
    kept = {id_: new[id_] for id_ in old.keys() & new.keys()}
    for id_, topic in kept.items():
        if topic != old[id_]:
            raise Again(f"{topic.name} was just changed")
    wanted = {key: topic for topic in kept.values() for key in topic.logs()}
    missing = sorted({f"{wanted[key].name}/{key.index}" for key in wanted.keys() - logs.keys()})
    if missing:
        raise Again(f"nobody leads {', '.join(missing[:5])}{' and more' if missing[5:] else ''}")
    gone = {topic.id for topic in new.values()} - kept.keys()
    return wanted, [entry for entry in after if not _is_of(entry, gone)]


def _is_of(entry: StoreKey, topic_ids: set[str]) -> bool:
    if entry.key.startswith(keys.PARTITIONS):
        return entry.key.removeprefix(keys.PARTITIONS).partition("/")[0] in topic_ids
    if entry.key.startswith(keys.TOPICS):
        return keys.decode(entry.key, entry.value, keys.TopicValue).id in topic_ids
    return False
