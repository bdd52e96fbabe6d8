"""`postroad serve --secure`: what has to be there before a secured node starts, and its settings.

What no file, variable or option names is filled in: `security.enabled`, TLS on both ports, and a certificate
from a CA of its own in DATA/tls. The rest of the first start is in `broker/secure_start.py`.
"""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from postroad.cli.authority import NODE, Authority
from postroad.cli.session import Failed
from postroad.cli.settings import load_settings
from postroad.client.profile import Profile, read_profile
from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.broker.secure_start import SecureStart
    from postroad.config import Loaded, Settings

TLS_DIRECTORY: Final = "tls"
DAYS: Final = 365
RENEW_DAYS: Final = 30  # a certificate that ends sooner is made anew at a start
PASSWORD_BYTES: Final = 24  # of chance, in the password of admin
TEST_NETS: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))  # nothing is sent there

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")


def load(
    file: Path | None, overrides: Sequence[str], insecure: bool, flags: Mapping[str, str]
) -> tuple[Loaded, SecureStart]:
    """The settings of a secured node, whose certificates are there; and what is left to do once it serves."""
    from postroad.broker.secure_start import PROFILE, SecureStart
    from postroad.config.settings import declared
    from postroad.config.sources import SECURE

    found = Profile()

    def fill(given: Mapping[str, Any]) -> dict[str, object]:
        nonlocal found
        data = Path(given.get("data.dir", declared("data.dir").default)).absolute()
        found = _read_profile(data / PROFILE) or Profile(password=secrets.token_urlsafe(PASSWORD_BYTES))
        return _filled(given, data / TLS_DIRECTORY)

    loaded = load_settings(file, overrides, insecure, flags, fill)
    settings = loaded.settings
    _check(settings)
    ca = str(Path(settings.tls.ca).absolute()) if settings.tls.ca else ""
    if loaded.origins["tls.certificate"] == SECURE:
        with _data_directory(settings):
            _ensure_certificate(settings, is_first=not found.user)
        ca = f"{TLS_DIRECTORY}/ca.pem"
    return loaded, SecureStart(settings, ca, found.password, is_new=not found.user)


def _read_profile(path: Path) -> Profile | None:
    """The profile of an earlier start; None: no start has been completed."""
    from postroad.broker.secure_start import ADMIN

    if not path.exists():
        return None
    advice = f"Mend it; or delete {path}, and the next start gives user {ADMIN} another password."
    try:
        found = read_profile(path)
    except ConfigurationError as error:
        raise Failed(f"{error} {advice}") from None
    if found.user != ADMIN or not found.password:
        raise Failed(f"{path} does not have user {ADMIN!r} and a password. {advice}")
    return found


def _filled(given: Mapping[str, Any], directory: Path) -> dict[str, object]:
    filled: dict[str, object] = {
        "security.enabled": True,
        "kafka.tls": True,
        "http.tls": True,
    }
    if not any(given.get(f"tls.{name}") for name in ("certificate", "key", "ca")):
        filled["tls.certificate"] = str(directory / f"{NODE}.pem")
        filled["tls.key"] = str(directory / f"{NODE}.key")
        filled["tls.ca"] = str(directory / "ca.pem")
    if given.get("kafka.host") in ("0.0.0.0", "::"):
        filled["kafka.advertised_host"] = _own_name()
    return filled


def _check(settings: Settings) -> None:
    from postroad.broker.secure_start import ADMIN

    off = [
        name
        for name, is_on in (
            ("security.enabled", settings.security.enabled),
            ("kafka.tls", settings.kafka.tls),
            ("http.tls", settings.http.tls or not settings.http.enabled),
        )
        if not is_on
    ]
    if off:
        raise Failed(f"--secure: {off[0]} is set to false. Leave it out.")
    if settings.cluster.store:
        raise Failed(
            "--secure makes the secrets of nodes on one machine. With cluster.store leave it out, and give "
            "each node the master key and a certificate by settings: see docs/security.md."
        )
    if f"User:{ADMIN}" not in settings.security.super_user_names:
        raise Failed(f"--secure makes user {ADMIN!r}: add User:{ADMIN} to security.super_users.")


@contextmanager
def _data_directory(settings: Settings) -> Iterator[None]:
    """Nobody else uses it meanwhile."""
    from postroad.broker.data_directory import take_lock
    from postroad.log.disk import OsDisk

    disk, path = OsDisk(), settings.data.dir
    try:
        disk.make_directory(str(path))
        lock = take_lock(disk, path)
    except OSError as error:
        raise Failed(
            f"the data directory {path} can't be used: {error.strerror}. Choose another with --data DIR."
        ) from None
    except ConfigurationError as error:
        raise Failed(str(error)) from None
    try:
        yield
    finally:
        lock.close()


def _ensure_certificate(settings: Settings, *, is_first: bool) -> None:
    """There is a certificate that names where clients connect, and lasts a while, from a CA that stays."""
    try:
        authority = Authority(settings.data.dir.absolute() / TLS_DIRECTORY)
        if is_first:
            authority.forget_unused()
        needed = _advertised(settings)
        if _serves(settings, authority, needed):
            return
        if authority.ca.exists() and not authority.has_key:
            raise ConfigurationError(
                f"a new certificate is needed, for {', '.join(needed)}, but "
                f"{authority.ca.with_suffix('.key')} is not there to sign it: put it back for this start."
            )
        authority.ensure()
        authority.issue_node([*needed, *_own_names()], DAYS)
    except (OSError, ConfigurationError) as error:
        raise Failed(f"--secure: {error}") from None


def _serves(settings: Settings, authority: Authority, needed: Sequence[str]) -> bool:
    """The certificate can be used as it is."""
    from postroad.system.certificates import DAY_S, ServerFiles, expiry_s, server_context

    tls, now_s = settings.tls, time.time()
    files = ServerFiles(Path(tls.certificate), Path(tls.key), Path(tls.ca))
    try:
        server_context(files, now_s)
        lasts = expiry_s(files.certificate) - now_s > RENEW_DAYS * DAY_S
    except ConfigurationError:
        return False
    return lasts and set(needed) <= authority.names_certified()


def _advertised(settings: Settings) -> list[str]:
    """The hosts that clients are told; ConfigurationError for one that no certificate can name."""
    hosts = [listener.host_to_advertise for listener in settings.kafka.every_listener]
    if settings.http.enabled:
        hosts += [settings.http.host, urlsplit(settings.http.url).hostname or ""]
    found = [host for host in dict.fromkeys(hosts) if host not in ("", "0.0.0.0", "::")]
    for host in found:
        if not _HOST.fullmatch(host):
            raise ConfigurationError(f"{host[:60]!r} can't be the name of a host in a certificate")
    return found


def _own_name() -> str:
    """What other machines most likely know this one by."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return next(iter(_outward_addresses()), "localhost")
    return name


def _own_names() -> list[str]:
    return [name for name in (socket.gethostname(), *_outward_addresses()) if _HOST.fullmatch(name)]


def _outward_addresses() -> list[str]:
    """The addresses by which this machine reaches others."""
    found = []
    for family, far in TEST_NETS:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((far, 9))
                found.append(str(sock.getsockname()[0]))
        except OSError:  # it reaches nobody by this protocol
            continue
    return found
