"""How a setting is declared: as a field of its section, with its kind and one sentence about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from postroad.cluster import group_config, topic_config
from postroad.cluster.config_definition import ConfigType
from postroad.config.values import ValueKind
from postroad.errors import ConfigurationError

T = TypeVar("T")

ENVIRONMENT_PREFIX: Final = "POSTROAD_"


@dataclass(frozen=True)
class Setting:
    """All that is known of a setting; `section.name` is its full name.

    `kafka_name` is Kafka's config of the same meaning, in units of `kafka_unit`; `topic_config` or
    `group_config` is the config of topics or groups that has its default from here.
    """

    section: str
    name: str
    default: Any
    help: str
    kind: ValueKind
    kafka_name: str
    kafka_unit: int
    topic_config: str
    group_config: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def environment_name(self) -> str:
        return f"{ENVIRONMENT_PREFIX}{self.section}_{self.name}".upper()

    @property
    def is_secret(self) -> bool:
        return self.kind.type is ConfigType.PASSWORD

    def as_given(self, given: object) -> str:
        """For a text about it, which may end in a log."""
        return self.full_name if self.is_secret else f"{self.full_name} = {given!r}"

    def read(self, given: object) -> Any:
        """The value of what was given; raises ValueError with what would be right."""
        value = self.kind.read(given)
        if self.topic_config:
            topic_config.definition_of(self.topic_config).read(self.kafka_text(value))
        if self.group_config:
            group_config.TABLE.definition_of(self.group_config).read(self.kafka_text(value))
        return value

    def kafka_text(self, value: Any) -> str:
        """The value as Kafka's tools show it."""
        if isinstance(value, bool):
            return str(value).lower()
        return str(value // self.kafka_unit) if isinstance(value, int) else str(value)


def setting(default: T, kind: ValueKind, meaning: str, *, kafka: str = "", kafka_unit: int = 1) -> T:
    """Declares a field of a section."""
    facts = {"kind": kind, "help": meaning, "kafka_name": kafka, "kafka_unit": kafka_unit, "topic_config": ""}
    made: T = field(default=default, metadata=facts)
    return made


def topic_default(name: str, default: T, kind: ValueKind) -> T:
    """Declares a field that gives a topic config its default; its words are those of the topic config."""
    definition = topic_config.definition_of(name)
    facts = {"kind": kind, "help": definition.doc, "kafka_name": definition.node_name}
    made: T = field(default=default, metadata={**facts, "kafka_unit": 1, "topic_config": name})
    return made


def group_default(name: str, default: T, kind: ValueKind) -> T:
    """Declares a field that gives a group config its default; its words are those of the group config."""
    definition = group_config.TABLE.definition_of(name)
    facts = {"kind": kind, "help": definition.doc, "kafka_name": definition.node_name, "kafka_unit": 1}
    made: T = field(default=default, metadata={**facts, "topic_config": "", "group_config": name})
    return made


@dataclass(frozen=True, kw_only=True)
class Section:
    """A group of settings. Making one checks and normalises its values; raises ConfigurationError."""

    def __post_init__(self) -> None:
        for declared in declarations(type(self)):
            given = getattr(self, declared.name)
            try:
                object.__setattr__(self, declared.name, declared.read(given))
            except ValueError as error:
                raise ConfigurationError(f"{declared.as_given(given)}: it must be {error}.") from None


def declarations(section: type[Section]) -> Iterator[Setting]:
    for declared in fields(section):
        yield Setting(
            section=section.__name__.lower(),
            name=declared.name,
            default=declared.default,
            **declared.metadata,
        )
