"""A node as `postroad serve --secure` starts it, and commands and clients that log in to it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from postroad.cli import main
from postroad.testing.process import Node, Setting


class SecureNode(Node):
    def __init__(self, home: Path, config: Mapping[str, Setting] | None = None) -> None:
        super().__init__(home, {"http.enabled": True, **(config or {})})

    def _command(self, command: list[str]) -> list[str]:
        return [*command, "--secure"]

    @property
    def profile(self) -> Path:
        return self.data_dir / "admin.profile"

    @property
    def ca(self) -> Path:
        return self.data_dir / "tls" / "ca.pem"

    @property
    def admin(self) -> dict[str, str]:
        """What the profile says."""
        return tomllib.loads(self.profile.read_text())

    def call(self, *arguments: str, code: int = 0) -> Result:
        """The command, as the admin."""
        done = CliRunner().invoke(main, ["--profile", str(self.profile), *arguments])
        assert done.exit_code == code, f"{arguments}: {done.output}\n{done.exception!r}"
        return done

    def client(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
        """Settings of librdkafka."""
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }


@contextmanager
def secure_node(home: Path, config: Mapping[str, Setting] | None = None) -> Iterator[SecureNode]:
    """One that serves for as long as the block runs."""
    running = SecureNode(home, config)
    try:
        running.start()
        yield running
        running.stop()
    finally:
        running.kill()
        running.release_ports()
