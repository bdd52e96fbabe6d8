"""Certificates for tests, made by the openssl command: a CA, and what it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final, NamedTuple

LOCAL: Final = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"
P_256: Final = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")


class Pair(NamedTuple):
    certificate: Path
    key: Path


class Authority:
    """A CA in a directory of its own."""

    def __init__(self, directory: Path, name: str = "Test CA") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca = directory / "ca.pem"
        self._key = directory / "ca.key"
        _openssl(
            *(
                "req",
                "-x509",
                "-newkey",
                *P_256,
                "-nodes",
                "-days",
                "30",
            ),
            *("-subj", f"/CN={name}", "-keyout", self._key, "-out", self.ca),
        )

    def issue(
        self,
        name: str,
        subject: str = "/CN=localhost",
        extensions: str = LOCAL,
        days: int = 10,
        algorithm: tuple[str, ...] = P_256,
    ) -> Pair:
        """A certificate and its key, in `name`.pem and `name`.key; with negative days it has expired."""
        pair = Pair(self.directory / f"{name}.pem", self.directory / f"{name}.key")
        request, extended = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        extended.write_text(extensions + "\n")
        _openssl(
            *("req", "-new", "-newkey", *algorithm, "-nodes", "-subj", subject),
            *("-keyout", pair.key, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-CAcreateserial"),
            *("-extfile", extended, "-days", str(days), "-out", pair.certificate),
        )
        return pair


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
