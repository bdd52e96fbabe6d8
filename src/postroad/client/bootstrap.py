"""Where a cluster is found, and how it is connected to, in one text.

    localhost:9092,localhost:9093
    tls://kafka.example.com:9093,other.example.com:9093?ca=ca.pem&certificate=shop.pem&key=shop.key&verify=ca

Behind `?`: `profile`, a file with the user who logs in (`client/profile.py`), also without TLS; `ca`, the
file of CAs that are believed (else those of the profile, or of the system); `certificate` and `key`, what is
shown where the node asks for it; `verify=ca` where certificates don't name the host. `%3F` and `%26` stand
for ? and & in names of files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from postroad.client.metadata import Address, parse_bootstrap
from postroad.client.runtime import Runtime
from postroad.errors import ConfigurationError
from postroad.system.stream import Connect

if TYPE_CHECKING:
    from postroad.client.login import Credentials

TLS: Final = "tls://"
OPTIONS: Final = ("ca", "certificate", "key", "verify")  # of TLS
PROFILE: Final = "profile"
VERIFY: Final = ("host", "ca")


class Bootstrap(NamedTuple):
    addresses: list[Address]
    tls: dict[str, str] | None  # the options; None: without TLS
    credentials: Credentials | None = None  # with which it is logged in


def read(text: str) -> Bootstrap:
    """ConfigurationError says what is wrong with it, or with the profile that it names."""
    is_tls = text.startswith(TLS)
    addresses, _, given = text.removeprefix(TLS).partition("?")
    options = _read_options(given, (*OPTIONS, PROFILE) if is_tls else (PROFILE,))
    credentials = None
    if PROFILE in options:
        from postroad.client.profile import read_profile  # most clients do without

        profile = read_profile(Path(options.pop(PROFILE)))
        credentials = profile.credentials
        if is_tls and profile.ca:
            options.setdefault("ca", profile.ca)
    if is_tls:
        _check_tls(options)
    return Bootstrap(parse_bootstrap(addresses), options if is_tls else None, credentials)


def addresses_of(text: str) -> list[Address]:
    """The addresses alone; whoever has read the rest before need not have its files any more."""
    return parse_bootstrap(text.removeprefix(TLS).partition("?")[0])


def _read_options(given: str, known: tuple[str, ...]) -> dict[str, str]:
    options: dict[str, str] = {}
    for option in filter(None, given.split("&")):
        name, _, value = option.partition("=")
        if name not in known or not value or name in options:
            raise ConfigurationError(f"bootstrap: {option!r} is none of {', '.join(known)} with a value")
        options[name] = unquote(value)
    return options


def _check_tls(options: dict[str, str]) -> None:
    if options.get("verify", VERIFY[0]) not in VERIFY:
        raise ConfigurationError(f"bootstrap: verify is one of {', '.join(VERIFY)}")
    if "key" in options and "certificate" not in options:
        raise ConfigurationError("bootstrap: a key is of no use without its certificate")


def connector(bootstrap: Bootstrap, runtime: Runtime) -> Connect:
    """How to connect to the nodes."""
    if bootstrap.tls is None:
        return runtime.connect
    # Imported when it is asked for: most commands do without.
    from postroad.system.certificates import ClientFiles
    from postroad.system.tls_connect import TlsConnector

    given = bootstrap.tls
    ca, certificate, key = (Path(given[name]) if name in given else None for name in OPTIONS[:3])
    files = ClientFiles(ca, certificate, key, verify_hostname=given.get("verify") != "ca")
    return TlsConnector(runtime.connect, files).connect
