"""Decisions about a topic's config overrides: change some (KIP-339), or replace all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from postroad.cluster import keys, topic_config
from postroad.cluster.config_definition import ConfigType
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.store import Compare, Put
from postroad.cluster.topics import check_config
from postroad.errors import InvalidConfig, InvalidRequest


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
    image: Image, name: str, changes: Sequence[ConfigChange], defaults: Mapping[str, str] | None = None
) -> Decision:
    """Some overrides change, the others stay.

    `defaults` are the node's: what a list begins with to which something is appended for the first time.
    """
    topic = image.topic(name)
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise InvalidRequest("Each config may be changed once in a request.")
    config = dict(topic.config)
    for change in changes:
        _change(config, change, defaults or {})
    return _put(image, topic, config)


def replace_config(image: Image, name: str, config: Mapping[str, str | None]) -> Decision:
    """These are all overrides from now on; the old AlterConfigs, which has no other way."""
    check_config(config)
    return _put(image, image.topic(name), {key: text for key, text in config.items() if text is not None})


def _change(config: dict[str, str], change: ConfigChange, defaults: Mapping[str, str]) -> None:
    name, value = change.name, change.value
    definition = topic_config.definition_of(name)
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
        raise InvalidConfig(f"{name} is no list: set it instead of appending to or subtracting from it.")
    old = _items(config.get(name, defaults.get(name, definition.default)))
    config[name] = ",".join(_combined(old, _items(value), change.operation))


def _combined(old: list[str], items: list[str], operation: int) -> list[str]:
    if operation == ConfigOperation.APPEND:
        return old + [item for item in items if item not in old]
    return [item for item in old if item not in items]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _put(image: Image, topic: Topic, config: dict[str, str]) -> Decision:
    check_config(config)
    if config == topic.config:
        return Decision([], [])
    key = keys.topic_key(topic.name)
    value = keys.TopicValue(topic.name, topic.id_text, len(topic.partitions), config)
    return Decision([Compare(key, image.key_revision(key))], [Put(key, keys.encode(value))])
