"""Postroad and Kafka with TLS, and a Postroad that asks who its clients are and what they may do.

Both sides have certificates of the same kind (P-256); TLS is what librdkafka and the server agree on, which
is version 1.3.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.cache import Missing
from benchmarks.servers import Kafka, Postroad

_USER = "bench"


class PostroadTls(Postroad):
    name = "postroad-tls"
    is_named = True

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        files = _certificates(self.directory)
        settings = {
            "POSTROAD_KAFKA_TLS": "true",
            "POSTROAD_TLS_CERTIFICATE": str(files / "node.pem"),
            "POSTROAD_TLS_KEY": str(files / "node.key"),
        }
        return command, {**environment, **settings}

    def client_environment(self) -> dict[str, str]:
        return _tls_client(self.directory)


class KafkaTls(Kafka):
    name = "kafka-tls"
    is_named = True
    client = "kafka"

    def properties(self, number: int, port: int, controllers: Mapping[int, int]) -> list[str]:
        files = _certificates(self.directory)
        store = files / "keystore.pem"
        store.write_text((files / "node.key").read_text() + (files / "node.pem").read_text())
        lines = [
            line.replace("PLAINTEXT://", "SSL://") for line in super().properties(number, port, controllers)
        ]
        return [
            *(line.replace("map=PLAINTEXT:PLAINTEXT", "map=SSL:SSL") for line in lines),
            "inter.broker.listener.name=SSL",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={store}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={files / 'ca.pem'}",
        ]

    def client_environment(self) -> dict[str, str]:
        return _tls_client(self.directory)


class PostroadRights(Postroad):
    """A node whose client logs in by SCRAM, and is no super user: ACLs allow what it does."""

    name = "postroad-rights"
    is_named = True

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the base class has them
        self._password = secrets.token_urlsafe(24)

    def prepare(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super().prepare()
        return command, {**environment, "POSTROAD_SECURITY_ENABLED": "true"}

    def start(self) -> None:
        super().start()
        file = self.directory / "password"
        file.touch(0o600)
        file.write_text(self._password + "\n")
        self._command("user", "create", _USER, "--new-password-file", str(file))
        self._command("acl", "allow", _USER, "--produce", "*", "--consume", "*")
        for operation in ("create", "delete", "alter", "describe-configs"):
            self._command("acl", "allow", _USER, "--topic", "*", "--operation", operation)

    def client_environment(self) -> dict[str, str]:
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": _USER,
            "sasl.password": self._password,
        }
        return _as_lines(settings)

    def _command(self, *words: str) -> None:
        """As whoever has the master key."""
        key = self.directory / "data" / "master.key"
        source = [sys.executable, "-m", "postroad", "--master-key", str(key), *words]
        done = subprocess.run(
            [*source, "--bootstrap", f"127.0.0.1:{self.port}"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Missing(f"postroad {words[0]} {words[1]}: {done.stderr.strip()}")


def _certificates(directory: Path) -> Path:
    """The directory of a CA and a node's certificate. Raises Missing."""
    files = directory / "certificates"
    made = [sys.executable, "-m", "postroad", "cert", "make", str(files)]
    done = subprocess.run(made, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"certificates can't be made: {done.stderr.strip()}")
    return files


def _tls_client(directory: Path) -> dict[str, str]:
    return _as_lines(
        {"security.protocol": "SSL", "ssl.ca.location": str(directory / "certificates" / "ca.pem")}
    )


def _as_lines(settings: Mapping[str, str]) -> dict[str, str]:
    return {"BENCH_KAFKA": "\n".join(f"{name}={value}" for name, value in settings.items())}


SECURED: tuple[type[Postroad | Kafka], ...] = (PostroadTls, KafkaTls, PostroadRights)
