"""The configs of topics and groups as a list for programs: what each means, which values it takes."""

from __future__ import annotations

from typing import Final, NamedTuple

from postroad.cluster import group_config, topic_config
from postroad.cluster.config_definition import ConfigType, Definition, Range

TOPIC: Final = "topic"
GROUP: Final = "group"


class ConfigInfo(NamedTuple):
    """`of`: a topic or a group. `default_from`: the node's setting that may give another default. `range`:
    which values are right, in words; empty where any is, or a word can't say it."""

    of: str
    name: str
    type: str
    default: str
    default_from: str
    meaning: str
    has_effect: bool
    range: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]


def catalogue() -> list[ConfigInfo]:
    """All of them, by what they are of and by name."""
    tables = (GROUP, group_config.TABLE), (TOPIC, topic_config.TABLE)
    return [_info(of, definition) for of, table in tables for definition in table.definitions.values()]


def _info(of: str, definition: Definition) -> ConfigInfo:
    right = definition.rule if isinstance(definition.rule, Range) else Range("", lambda _: True)
    choices = ("true", "false") if definition.type is ConfigType.BOOLEAN else right.choices
    return ConfigInfo(
        of,
        definition.name,
        definition.type.name.lower(),
        definition.default,
        definition.node_name,
        definition.documentation,
        definition.supported,
        right.words or ("true or false" if choices else ""),
        right.low,
        right.high,
        choices,
    )
