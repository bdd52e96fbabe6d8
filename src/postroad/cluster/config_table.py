"""All configs of one kind of resource: finds, checks, reads and shows them by name.

A value comes from the resource's own overrides, else from the node's defaults, else from its definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from postroad.cluster.config_definition import (
    ConfigEntry,
    ConfigSource,
    Definition,
    Synonym,
    Value,
    nearest,
)
from postroad.errors import InvalidConfig, PolicyViolation

CONFIG_BYTES_MAX: Final = 64 * 1024  # texts of one resource's overrides; they are in every node's memory

Overrides: TypeAlias = Mapping[str, str]


class ConfigTable:
    """`kind` is the resource's word in messages, `source` says in DescribeConfigs that it gave a value."""

    def __init__(self, kind: str, source: ConfigSource, definitions: Iterable[Definition]) -> None:
        self.kind = kind
        self.definitions: Mapping[str, Definition] = {
            definition.name: definition for definition in sorted(definitions, key=lambda d: d.name)
        }
        self._source = source

    def definition_of(self, name: str) -> Definition:
        """Raises InvalidConfig for a name that is not known, with the nearest one that is."""
        if name not in self.definitions:
            raise InvalidConfig(f"There is no {self.kind} config {name!r}{nearest(name, self.definitions)}")
        return self.definitions[name]

    def check(self, config: Mapping[str, str | None]) -> dict[str, str]:
        """The config as it came, with a text for each name.

        Raises InvalidConfig if a name or value is not valid, PolicyViolation if it is all too much.
        """
        texts = {}
        for name, text in config.items():
            definition = self.definition_of(name)
            if text is None:
                raise InvalidConfig(f"{name}: a value is missing.")
            definition.parse(text)
            texts[name] = text
        size = sum(len(name) + len(text) for name, text in texts.items())
        if size > CONFIG_BYTES_MAX:
            raise PolicyViolation(
                f"The {self.kind}'s configs take {size} bytes; at most {CONFIG_BYTES_MAX} are kept."
            )
        return texts

    def value(self, name: str, overrides: Overrides, defaults: Overrides) -> Value:
        """What holds; both were checked when they were set."""
        definition = self.definitions[name]
        return definition.parse(overrides.get(name, defaults.get(name, definition.default)))

    def describe(
        self, overrides: Overrides, defaults: Overrides, names: Iterable[str] | None = None
    ) -> list[ConfigEntry]:
        """For DescribeConfigs: every config, or those asked for (as in Kafka, without unknown ones)."""
        known = self.definitions
        wanted = known if names is None else [name for name in names if name in known]
        return [self._describe(known[name], overrides, defaults) for name in wanted]

    def _describe(self, definition: Definition, overrides: Overrides, defaults: Overrides) -> ConfigEntry:
        name, node_name = definition.name, definition.node_name or definition.name
        synonyms = [Synonym(node_name, definition.default, ConfigSource.DEFAULT)]
        if defaults.get(name, definition.default) != definition.default:
            synonyms.insert(0, Synonym(node_name, defaults[name], ConfigSource.NODE))
        if name in overrides:
            synonyms.insert(0, Synonym(name, overrides[name], self._source))
        _, value, source = synonyms[0]
        return ConfigEntry(
            name, value, definition.type, source, False, definition.documentation, tuple(synonyms)
        )
