"""Decisions about the config overrides of topics and groups: change some (KIP-339), or replace all.

A topic must be there to be configured. A group need not: its configs may come before its first member.

When `postroad.topics` begins to name a topic, the same commit notes whether that exists, and with how many
partitions. A topic or partition that is not noted came later, which can be told after any crash. An image
that lags behind the store can only note too little, so a race never makes a late topic an early one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

from postroad.cluster import group_config, keys, partition_rules, topic_config
from postroad.cluster.config_definition import ConfigType
from postroad.cluster.config_table import ConfigTable, Overrides
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.internal_topics import refuse_internal
from postroad.cluster.named_topics import named_topics
from postroad.cluster.store import Compare, Delete, Put
from postroad.errors import InvalidConfig, InvalidGroupId, InvalidRequest, PolicyViolation

# A group's configs are in every node's memory: a client that makes up names must not fill it.
CONFIGURED_GROUPS_MAX: Final = 100_000
GROUP_ID_CHARACTERS_MAX: Final = 1024


# Raises ApiError where a group's overrides, valid in themselves, don't go with those of others.
GroupCheck: TypeAlias = Callable[[Image, str, Overrides], None]


class ConfigOperation(IntEnum):
    """The codes of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    operation: int  # a ConfigOperation; as it came, since a client may send any number
    value: str | None = None


def alter_config(
    image: Image, name: str, changes: Sequence[ConfigChange], defaults: Overrides | None = None
) -> Decision:
    """Some of a topic's overrides change, the others stay.

    `defaults` are the node's: what a list begins with to which something is appended for the first time.
    """
    topic = image.topic(name)
    return _put_topic(image, topic, altered(topic_config.TABLE, topic.config, changes, defaults or {}))


def replace_config(image: Image, name: str, config: Mapping[str, str | None]) -> Decision:
    """These are all of a topic's overrides from now on; the old AlterConfigs, which has no other way."""
    return _put_topic(image, image.topic(name), config)


def alter_group_config(
    image: Image,
    group_id: str,
    changes: Sequence[ConfigChange],
    check: GroupCheck | None = None,
    defaults: Overrides = group_config.NO_DEFAULTS,
) -> Decision:
    """Some of a group's overrides change, the others stay. `defaults` are the node's."""
    config = altered(group_config.TABLE, image.groups.get(group_id, {}), changes, defaults)
    return replace_group_config(image, group_id, config, check, defaults)


def delete_group_config(image: Image, group_id: str) -> Decision:
    """The group has no overrides any more; nothing to do if it had none."""
    return replace_group_config(image, group_id, {})


def note_topic(image: Image, group_id: str, topic: Topic) -> Decision:
    """From now on the topic counts as one that existed when the group named it; nothing to do if the group
    does not name it."""
    if group_id not in image.named_by.get(topic.name, ()):
        return Decision([], [])
    existed = image.existed.get(group_id, {}) | {topic.name: _known(topic)}
    if existed == image.existed.get(group_id):
        return Decision([], [])
    return _write_group(image, group_id, keys.GroupValue(image.groups[group_id], existed))


# --- the rule of KIP-339 -----------------------------------------------------------------------


def altered(
    table: ConfigTable, config: Overrides, changes: Sequence[ConfigChange], defaults: Overrides
) -> dict[str, str]:
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise InvalidRequest("Each config may be changed once in a request.")
    altered = dict(config)
    for change in changes:
        _change(table, altered, change, defaults)
    return altered


def _change(table: ConfigTable, config: dict[str, str], change: ConfigChange, defaults: Overrides) -> None:
    name, value = change.name, change.value
    definition = table.definition_of(name)
    if change.operation == ConfigOperation.DELETE:
        config.pop(name, None)
        return
    if value is None:
        raise InvalidConfig(f"{name}: a value is missing.")
    if change.operation == ConfigOperation.SET:
        config[name] = value
        return
    if change.operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
        raise InvalidRequest(f"{name}: there is no config operation {change.operation}.")
    if definition.type != ConfigType.LIST:
        raise InvalidConfig(f"{name} is not a list: set it instead of appending to or subtracting from it.")
    old = _items(config.get(name, defaults.get(name, definition.default)))
    config[name] = ",".join(_combined(old, _items(value), change.operation))


def _combined(old: list[str], items: list[str], operation: int) -> list[str]:
    if operation == ConfigOperation.APPEND:
        return old + [item for item in items if item not in old]
    return [item for item in old if item not in items]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


# --- what is written ---------------------------------------------------------------------------


def _put_topic(image: Image, topic: Topic, config: Mapping[str, str | None]) -> Decision:
    refuse_internal(topic.name, "its configs are fixed")
    replicas = len(topic.partitions[0].replicas)
    texts = topic_config.with_min_insync(topic_config.validate(config), replicas)
    if texts == topic.config:
        return Decision([], [])
    key = keys.topic_key(topic.name)
    value = keys.TopicValue(topic.name, topic.id_text, len(topic.partitions), texts)
    after = Topic(topic.name, topic.id, topic.partitions, texts)
    puts = [Put(key, keys.encode(value)), *_without_needless_elrs(after)]
    return Decision([Compare(put.key, image.key_revision(put.key)) for put in puts], puts)


def _without_needless_elrs(topic: Topic) -> Iterator[Put]:
    """A lower min.insync.replicas lets an ISR commit that was too small; its ELR is emptied in the same
    commit, or a replica could be elected that lacks what is committed from now on."""
    for number, states in keys.chunks(topic.partitions):
        left = tuple(partition_rules.leave(topic, state, ()) if state.elr else state for state in states)
        if left != states:
            yield Put(keys.chunk_key(topic.id_text, number), keys.encode(keys.ChunkValue(left)))


def replace_group_config(
    image: Image,
    group_id: str,
    config: Mapping[str, str | None],
    check: GroupCheck | None = None,
    defaults: Overrides = group_config.NO_DEFAULTS,
) -> Decision:
    """These are all of a group's overrides from now on."""
    _check_group_id(group_id)
    texts = group_config.validate(config, defaults)
    if check is not None:
        check(image, group_id, texts)
    if texts == image.groups.get(group_id, {}):
        return Decision([], [])
    if group_id not in image.groups and len(image.groups) >= CONFIGURED_GROUPS_MAX:
        raise PolicyViolation(f"{CONFIGURED_GROUPS_MAX} groups have configs; delete some first.")
    return _write_group(image, group_id, keys.GroupValue(texts, _existed(image, group_id, texts)))


def _write_group(image: Image, group_id: str, value: keys.GroupValue) -> Decision:
    key = keys.group_key(group_id)
    operation = Put(key, keys.encode(value)) if value.config else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])


def _existed(image: Image, group_id: str, config: Overrides) -> dict[str, keys.KnownTopic]:
    """What was noted of names that stay is kept; of new names it is noted now."""
    named_before = named_topics(image.groups.get(group_id, {}))
    existed = dict(image.existed.get(group_id, {}))
    for name in named_topics(config):
        if name not in named_before and name in image.topics:
            existed[name] = _known(image.topics[name])
    return {name: existed[name] for name in named_topics(config) if name in existed}


def _known(topic: Topic) -> keys.KnownTopic:
    return keys.KnownTopic(topic.id_text, len(topic.partitions))


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidRequest("A group's id is missing: there are no configs for all groups.")
    if len(group_id) > GROUP_ID_CHARACTERS_MAX or "\0" in group_id:
        raise InvalidGroupId(
            f"A group's id has at most {GROUP_ID_CHARACTERS_MAX} characters, none of them NUL."
        )
