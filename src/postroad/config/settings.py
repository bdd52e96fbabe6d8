"""The settings of a node, all sections together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, cast

from postroad.cluster import group_config
from postroad.cluster.config_definition import nearest
from postroad.config.declaration import Section, Setting, declarations
from postroad.config.sections import (
    Cluster,
    Data,
    Durability,
    Groups,
    Http,
    Kafka,
    Limits,
    Logging,
    Node,
    Storage,
    Subscriptions,
    Topics,
)
from postroad.errors import ConfigurationError, InvalidConfig

__all__ = [
    "SECTIONS",
    "Cluster",
    "Data",
    "Durability",
    "Groups",
    "Http",
    "Kafka",
    "Limits",
    "Logging",
    "Node",
    "Settings",
    "Storage",
    "Subscriptions",
    "Topics",
    "all_settings",
    "declared",
]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All sections. Making one checks what spans several settings; raises ConfigurationError."""

    node: Node = field(default_factory=Node)
    data: Data = field(default_factory=Data)
    cluster: Cluster = field(default_factory=Cluster)
    kafka: Kafka = field(default_factory=Kafka)
    http: Http = field(default_factory=Http)
    topics: Topics = field(default_factory=Topics)
    durability: Durability = field(default_factory=Durability)
    limits: Limits = field(default_factory=Limits)
    groups: Groups = field(default_factory=Groups)
    subscriptions: Subscriptions = field(default_factory=Subscriptions)
    storage: Storage = field(default_factory=Storage)
    logging: Logging = field(default_factory=Logging)

    @classmethod
    def of(cls, **overrides: Any) -> Settings:
        """Defaults but for what is named: `Settings.of(kafka_port=0, limits_idle_ms="5s")`."""
        sections: dict[str, dict[str, Any]] = {}
        for keyword, value in overrides.items():
            known = declared(keyword.replace("_", ".", 1))
            sections.setdefault(known.section, {})[known.name] = value
        return cls.from_sections(sections)

    @classmethod
    def from_sections(cls, sections: dict[str, dict[str, Any]]) -> Settings:
        made: dict[str, Any] = {name: SECTIONS[name](**values) for name, values in sections.items()}
        return cls(**made)

    def __post_init__(self) -> None:
        _check_exposure(self.kafka)
        _check_gateway(self.http)
        if self.groups.session_min_ms > self.groups.session_max_ms:
            raise ConfigurationError("groups.session_min_ms must not be above groups.session_max_ms.")
        if self.groups.consumer_heartbeat_ms >= self.groups.consumer_session_ms:
            raise ConfigurationError("groups.consumer_heartbeat_ms must be below groups.consumer_session_ms.")

        try:
            group_config.check_combination(group_config.settings_of({}, self.group_defaults))
        except InvalidConfig as error:
            raise ConfigurationError(f"section subscriptions: {error}") from None

    def get(self, full_name: str) -> Any:
        section, _, name = full_name.partition(".")
        return getattr(getattr(self, section), name)

    @cached_property
    def topic_defaults(self) -> dict[str, str]:
        """The node's part of `topic_config.resolve` and `describe`, by topic config name."""
        return {
            known.topic_config: known.kafka_text(self.get(known.full_name))
            for known in all_settings()
            if known.topic_config
        }

    @cached_property
    def group_defaults(self) -> dict[str, str]:
        """The node's part of `group_config.settings_of` and `describe`, by group config name."""
        return {
            known.group_config: known.kafka_text(self.get(known.full_name))
            for known in all_settings()
            if known.group_config
        }


SECTIONS: Final[Mapping[str, type[Section]]] = {
    section.name: cast("type[Section]", section.default_factory) for section in fields(Settings)
}


def all_settings() -> Iterator[Setting]:
    for section in SECTIONS.values():
        yield from declarations(section)


def declared(full_name: str) -> Setting:
    """Raises ConfigurationError for a name that is not known, with the nearest one that is."""
    known = {setting.full_name: setting for setting in all_settings()}
    if full_name not in known:
        raise ConfigurationError(f"there is no setting {full_name!r}{nearest(full_name, known)}")
    return known[full_name]


def _check_exposure(kafka: Kafka) -> None:
    if not kafka.loopback and not kafka.insecure:
        raise ConfigurationError(
            f"kafka.host = {kafka.host!r}: others could connect, without TLS or a password. "
            f"Keep 127.0.0.1, or set kafka.insecure = true if the network is yours."
        )
    if kafka.host_to_advertise in ("0.0.0.0", "::"):
        raise ConfigurationError(
            f"kafka.host = {kafka.host!r} is every address of this machine; clients need a certain one. "
            f"Set kafka.advertised_host to the name or address by which they reach it."
        )


def _check_gateway(http: Http) -> None:
    if http.enabled and not http.loopback and not http.access_keys and not http.insecure:
        raise ConfigurationError(
            f"http.host = {http.host!r}: others could connect, without a key. Keep 127.0.0.1, set "
            f"http.access_keys, or set http.insecure = true if the network is yours."
        )
