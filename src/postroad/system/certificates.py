"""Certificates and keys from files, and the contexts of TLS that are made of them.

Files are PEM: a certificate with the chain behind it, its key without a password, the CAs that others are
checked against. TLS 1.2 is the lowest version; ciphers are OpenSSL's choice. There is no compression, no
renegotiation, and no early data.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from postroad.errors import ConfigurationError
from postroad.system.certificate_times import valid_until

LOWEST: Final = ssl.TLSVersion.TLSv1_2
DAY_S: Final = 86_400.0


@dataclass(frozen=True)
class ServerFiles:
    """What a listener shows, and whom it asks for a certificate: nobody without `client_ca`."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_required: bool = False

    def changed_at(self) -> dict[Path, float]:
        """When each file was last written; those that can't be looked at are missing."""
        return _changed_at(self.certificate, self.key, self.client_ca)


@dataclass(frozen=True)
class ClientFiles:
    """Whom a client trusts (without `ca` whom the system does), and what it shows where it is asked."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    verify_hostname: bool = True

    def changed_at(self) -> dict[Path, float]:
        """When each file was last written; those that can't be looked at are missing."""
        return _changed_at(self.ca, self.certificate, self.key)


def server_context(files: ServerFiles, now_s: float) -> ssl.SSLContext:
    """ConfigurationError says which file is wrong; an expired certificate is."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = LOWEST
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    # Tickets are bytes that a client who only sends never reads, and Kafka's clients stay connected.
    context.num_tickets = 0
    _load_own(context, files.certificate, files.key)
    if expiry_s(files.certificate) <= now_s:
        raise ConfigurationError(f"the certificate {files.certificate} has expired")
    if files.client_ca is not None:
        with _blaming(files.client_ca):
            context.load_verify_locations(files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED if files.client_required else ssl.CERT_OPTIONAL
    return context


def client_context(files: ClientFiles) -> ssl.SSLContext:
    """ConfigurationError says which file is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = LOWEST
    context.check_hostname = files.verify_hostname
    if files.ca is None:
        context.load_default_certs()
    else:
        with _blaming(files.ca):
            context.load_verify_locations(files.ca)
    if files.certificate is not None:
        _load_own(context, files.certificate, files.key or files.certificate)
    return context


def expiry_s(certificate: Path) -> float:
    """Until when the certificate is valid, in seconds since 1970; ConfigurationError if it can't be read."""
    try:
        return valid_until(ssl.PEM_cert_to_DER_cert(_first(certificate.read_text())))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the certificate {certificate} can't be read: {_reason(error)}") from None


def date_text(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _load_own(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    for path in (certificate, key):
        with _blaming(path):
            path.read_bytes()
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        text = "they don't belong together" if "KEY_VALUES_MISMATCH" in str(error) else _reason(error)
        raise ConfigurationError(f"the certificate {certificate} and the key {key}: {text}") from None


def _no_password() -> str:
    """Without this OpenSSL asks on the terminal, and waits."""
    raise ValueError("the key has a password, which a server can't type")


@contextmanager
def _blaming(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return "it is no PEM file of the right kind"
    return getattr(error, "strerror", None) or str(error)


def _changed_at(*paths: Path | None) -> dict[Path, float]:
    found = {}
    for path in paths:
        if path is not None:
            with suppress(OSError):
                found[path] = path.stat().st_mtime
    return found


def _first(text: str) -> str:
    """The first certificate of a chain: the own one."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = text.find(begin)
    stop = text.find(end, start)
    if start < 0 or stop < 0:
        raise ValueError("there is no PEM certificate in it")
    return text[start : stop + len(end)] + "\n"
