"""Values of settings about security: principals and SASL mechanisms."""

from __future__ import annotations

from typing import Final

from postroad.cluster.config_definition import ConfigType
from postroad.config.values import ValueKind, text

OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", OAUTHBEARER)


def principals() -> ValueKind:
    """Principals with commas between; semicolons, as Kafka has them, will do."""
    line = text()

    def read(given: object) -> str:
        names = [name.strip() for name in line.read(given).replace(";", ",").split(",") if name.strip()]
        if not all(name.startswith("User:") and len(name) > len("User:") for name in names):
            raise ValueError("User:name for each, with commas between")
        return ",".join(names)

    return ValueKind(read, ConfigType.STRING)


def mechanisms() -> ValueKind:
    line = text()

    def read(given: object) -> str:
        names = [name.strip() for name in line.read(given).split(",") if name.strip()]
        if not names or not set(names) <= set(MECHANISMS):
            raise ValueError(f"some of {', '.join(MECHANISMS)}, with commas between")
        return ",".join(names)

    return ValueKind(read, ConfigType.STRING)
