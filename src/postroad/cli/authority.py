"""A small CA in a directory, by the openssl command: `ca.pem`, `ca.key`, and what it signs.

A key is made before its certificate, and both take the place of older ones only when both are there, on the
disk. Keys are 0600. Who has `ca.key` can be anybody: it is needed for nothing but new certificates, so keep
it elsewhere.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from postroad.errors import ConfigurationError

CA_DAYS: Final = 3650
CURVE: Final = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
NODE: Final = "node"
WORK: Final = "new-"  # what directories begin with in which something is being made
OPENSSL_S: Final = 30.0
UMASK: Final = 0o077


class Authority:
    def __init__(self, directory: Path) -> None:
        """The directory is made if it is missing."""
        if shutil.which("openssl") is None:
            raise ConfigurationError("the command openssl is missing (Debian: apt-get install openssl)")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self.ca, self._key = directory / "ca.pem", directory / "ca.key"

    @property
    def has_key(self) -> bool:
        """It can sign: its key has not been taken elsewhere."""
        return self._key.exists()

    def forget_unused(self) -> None:
        """Throw away what a run that was killed has left: a key without a certificate has signed nothing."""
        for left in self.directory.glob(f"{WORK}*"):
            shutil.rmtree(left, ignore_errors=True)
        if not self.ca.exists():
            self._key.unlink(missing_ok=True)

    def names_certified(self) -> frozenset[str]:
        """For which hosts node.pem is, if it is one of this CA; none otherwise."""
        certificate = self.directory / f"{NODE}.pem"
        try:
            _openssl("verify", "-CAfile", self.ca, certificate)
            said = _openssl("x509", "-in", certificate, "-noout", "-ext", "subjectAltName")
        except ConfigurationError:
            return frozenset()
        return frozenset(_name_of(part) for part in said.replace("\n", ",").split(",") if ":" in part)

    def ensure(self) -> bool:
        """There is a CA afterwards; True if it is new. ConfigurationError for one without its key."""
        if self.ca.exists() and self.has_key:
            return False
        if self.ca.exists() or self._key.exists():
            there, missing = (self.ca, self._key) if self.ca.exists() else (self._key, self.ca)
            raise ConfigurationError(f"there is {there}, but no {missing}: choose another directory")
        with self._work() as made:
            key, certificate = Path(made, "ca.key"), Path(made, "ca.pem")
            _openssl(
                *("req", "-x509", "-newkey", *CURVE, "-nodes", "-days", str(CA_DAYS)),
                *("-subj", "/CN=Postroad CA", "-keyout", key, "-out", certificate),
            )
            _move(key, self._key)
            _move(certificate, self.ca)
        return True

    def issue_node(self, hosts: Sequence[str], days: int) -> Path:
        """A certificate for nodes and gateways at these hosts, beside the names of this machine itself."""
        names = ",".join(_alternative(host) for host in dict.fromkeys([*LOCAL, *hosts]))
        return self._issue(
            NODE, "postroad", [f"subjectAltName={names}", "extendedKeyUsage=serverAuth,clientAuth"], days
        )

    def issue_user(self, user: str, days: int) -> Path:
        """A certificate that a client shows; its subject is CN=user."""
        return self._issue(user, user, ["extendedKeyUsage=clientAuth"], days)

    def _issue(self, name: str, subject: str, extensions: Sequence[str], days: int) -> Path:
        with self._work() as made:
            key, certificate, request = Path(made, "key"), Path(made, "certificate"), Path(made, "request")
            extended = Path(made, "extensions")
            extended.write_text("\n".join(["basicConstraints=CA:FALSE", *extensions]) + "\n")
            _openssl(
                "req",
                "-new",
                "-newkey",
                *CURVE,
                "-nodes",
                "-subj",
                f"/CN={subject}",
                "-keyout",
                key,
                "-out",
                request,
            )
            _openssl(
                *("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key),
                *("-set_serial", f"0x{os.urandom(16).hex()}", "-extfile", extended),
                *("-days", str(days), "-out", certificate),
            )
            _move(key, self.directory / f"{name}.key")
            return _move(certificate, self.directory / f"{name}.pem")

    def _work(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix=WORK, dir=self.directory)


def _move(made: Path, target: Path) -> Path:
    """The file is there under its name, whole and durably."""
    _sync(made)
    made.replace(target)
    _sync(target.parent)
    return target


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name_of(alternative: str) -> str:
    """`DNS:localhost` and `IP Address:0:0:0:0:0:0:0:1` as hosts are written."""
    kind, _, name = alternative.strip().partition(":")
    return str(ipaddress.ip_address(name)) if kind.startswith("IP") else name


def _alternative(host: str) -> str:
    try:
        return f"IP:{ipaddress.ip_address(host)}"
    except ValueError:
        return f"DNS:{host}"


def _openssl(*arguments: str | Path) -> str:
    command = ["openssl", *map(str, arguments)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, timeout=OPENSSL_S, umask=UMASK)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or b""
        raise ConfigurationError(
            f"openssl failed: {said.decode(errors='replace').strip() or error}"
        ) from None
    return done.stdout.decode(errors="replace")
