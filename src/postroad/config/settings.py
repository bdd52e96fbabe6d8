"""The settings of a node, all sections together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, cast
from urllib.parse import urlsplit

from postroad.cluster import group_config
from postroad.cluster.config_definition import nearest
from postroad.config.declaration import Section, Setting, declarations
from postroad.config.kafka import Kafka
from postroad.config.listeners import CERTIFICATE, DEFAULT_NAME, EVERY_ADDRESS, Listener, is_loopback
from postroad.config.sections import (
    Cluster,
    Console,
    Data,
    Durability,
    Groups,
    Http,
    Limits,
    Logging,
    Node,
    Storage,
    Subscriptions,
    Topics,
)
from postroad.config.security import Security
from postroad.config.tls import Tls
from postroad.errors import ConfigurationError, InvalidConfig

__all__ = [
    "SECTIONS",
    "Cluster",
    "Console",
    "Data",
    "Durability",
    "Groups",
    "Http",
    "Kafka",
    "Limits",
    "Logging",
    "Node",
    "Security",
    "Settings",
    "Storage",
    "Subscriptions",
    "Tls",
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
    tls: Tls = field(default_factory=Tls)
    security: Security = field(default_factory=Security)
    http: Http = field(default_factory=Http)
    console: Console = field(default_factory=Console)
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
        for listener in self.kafka.every_listener:
            is_asked = listener.is_tls and self.security.enabled  # who has no certificate logs in
            _check_exposure(listener, self.kafka.insecure or is_asked)
            _check_certificates(listener, self.tls)
        _check_gateway(self.http, self.tls, self.security)
        _check_tokens(self.security)
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


def _check_exposure(listener: Listener, insecure: bool) -> None:
    where = _setting_of(listener)
    if not is_loopback(listener.host) and not listener.is_safe and not insecure:
        raise ConfigurationError(
            f"{where} = {listener.host!r}: others could connect, without TLS or a password. Keep 127.0.0.1, "
            f"start with --secure, or set kafka.insecure = true if the network is yours."
        )
    if listener.host_to_advertise in EVERY_ADDRESS:
        advertised = "advertised=HOST:PORT" if listener.name != DEFAULT_NAME else "kafka.advertised_host"
        raise ConfigurationError(
            f"{where} = {listener.host!r} is every address of this machine; clients need a certain one. "
            f"Set {advertised} to the name or address by which they reach it."
        )


def _check_certificates(listener: Listener, tls: Tls) -> None:
    where = _setting_of(listener)
    if listener.is_tls and not (tls.certificate and tls.key):
        raise ConfigurationError(f"{where} is to speak TLS: set tls.certificate and tls.key.")
    if listener.authentication == CERTIFICATE and not listener.is_tls:
        raise ConfigurationError(f"{where} can't ask for certificates without TLS.")
    if listener.authentication == CERTIFICATE and not tls.ca:
        raise ConfigurationError(f"{where} demands certificates: set tls.ca to the CAs that sign them.")


def _setting_of(listener: Listener) -> str:
    return "kafka.host" if listener.name == DEFAULT_NAME else f"kafka.listeners: {listener.name}"


def _check_gateway(http: Http, tls: Tls, security: Security) -> None:
    if not http.enabled:
        return
    if http.tls and not (tls.certificate and tls.key):
        raise ConfigurationError("http.tls needs a certificate: set tls.certificate and tls.key.")
    if http.demands_certificates and not (http.tls and tls.ca):
        raise ConfigurationError(
            "http.authentication = 'certificate' needs http.tls, and tls.ca with the CAs that sign them."
        )
    asks = security.enabled or bool(http.access_keys) or http.demands_certificates
    if not http.loopback and not asks and not http.insecure:
        raise ConfigurationError(
            f"http.host = {http.host!r}: others could connect, without a key. Keep 127.0.0.1, set "
            f"http.access_keys, or set http.insecure = true if the network is yours."
        )


def _check_tokens(security: Security) -> None:
    jwks = security.oauth_jwks
    if not jwks:
        return
    if not (security.oauth_issuer and security.oauth_audience and security.oauth_user_claim):
        raise ConfigurationError(
            "security.oauth_jwks also needs security.oauth_issuer and security.oauth_audience: the provider "
            "signs tokens for others, too."
        )
    address = urlsplit(jwks)
    is_near = address.scheme == "http" and is_loopback(address.hostname or "")
    if "://" in jwks and not is_near and address.scheme not in ("https", "file"):
        raise ConfigurationError(
            f"security.oauth_jwks = {jwks!r}: whoever changes it on its way can be anybody. Use https or a "
            f"file."
        )
