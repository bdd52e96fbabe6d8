"""Certificates in files: when they end, what is wrong with them, and new ones while a server runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from time import time

import pytest

from postroad.errors import ConfigurationError
from postroad.system.certificates import (
    DAY_S,
    ClientFiles,
    ServerFiles,
    client_context,
    expiry_s,
    server_context,
)
from postroad.system.server_certificates import ServerCertificates
from tests.certificates import Authority, Pair


@pytest.mark.parametrize("days", [-1, 1, 10, 20_000])  # the last is beyond 2049: written in another way
def test_the_end_is_what_openssl_says(authority: Authority, days: int) -> None:
    pair = authority.issue(f"ends-{days}", days=days)
    said = subprocess.run(
        ["openssl", "x509", "-in", str(pair.certificate), "-noout", "-enddate", "-dateopt", "iso_8601"],
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    assert abs(expiry_s(pair.certificate) - (time() + days * DAY_S)) < 120, said


def test_what_is_wrong_names_the_file(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    other = authority.issue("not-its-key")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    missing = tmp_path / "missing.pem"
    cases = [
        (ServerFiles(missing, pair.key), "missing.pem"),
        (ServerFiles(garbage, pair.key), "garbage.pem"),
        (ServerFiles(pair.certificate, other.key), "they don't belong together"),
        (ServerFiles(pair.certificate, pair.key, client_ca=missing), "missing.pem"),
        (ServerFiles(*authority.issue("over", days=-1)), "has expired"),
    ]
    for files, text in cases:
        with pytest.raises(ConfigurationError, match=text):
            server_context(files, time())
    with pytest.raises(ConfigurationError, match=r"garbage\.pem"):
        client_context(ClientFiles(ca=garbage))
    with pytest.raises(ConfigurationError, match=r"garbage\.pem"):
        expiry_s(garbage)


def test_a_key_with_a_password_is_refused_without_asking_for_it(pair: Pair, tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    subprocess.run(
        ["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", str(pair.key), "-out", str(locked)],
        check=True,
        capture_output=True,
    )
    with pytest.raises(ConfigurationError, match="has a password"):
        server_context(ServerFiles(pair.certificate, locked), time())


def copy(source: Pair, target: Pair, at_s: float) -> None:
    for given, own in zip(source, target, strict=True):
        own.write_bytes(given.read_bytes())
        os.utime(own, (at_s, at_s))


def test_new_files_are_used_and_wrong_ones_are_not(authority: Authority, tmp_path: Path) -> None:
    own = Pair(tmp_path / "own.pem", tmp_path / "own.key")
    copy(authority.issue("first", days=5), own, 1000)
    certificates = ServerCertificates(ServerFiles(*own), time())
    first = certificates.context
    assert not certificates.reload(time())
    assert certificates.context is first
    copy(authority.issue("over-again", days=-1), own, 2000)
    assert not certificates.reload(time())
    assert "has expired" in certificates.failure
    assert certificates.context is first
    own.certificate.unlink()
    assert not certificates.reload(time())
    assert certificates.context is first
    copy(authority.issue("second", days=20), own, 3000)
    assert certificates.reload(time())
    assert certificates.context is not first
    assert 19 < certificates.days_left(time()) < 20.1
    assert not certificates.failure
