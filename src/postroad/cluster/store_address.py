"""Where a coordination store is, as the setting `cluster.store` says it.

    etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/postroad/production
    etcd+tls://etcd.example.com:2379/postroad?ca=ca.pem&certificate=node.pem&key=node.key
    unix:///run/postroad/store.sock

Members of etcd are tried in this order, so the nearest one comes first. The path is what all keys begin
with: clusters that share an etcd have different ones. Behind `?` may stand whom a node believes (else
the CAs of the system) and what it shows; %3F and %26 stand for ? and & in names of files.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

EXAMPLE: Final = "etcd://10.0.0.1:2379,10.0.0.2:2379/postroad"
ETCD_PORT: Final = 2379
DEFAULT_PATH: Final = "/postroad"
ENDPOINTS_MAX: Final = 16  # etcd itself is slow from 9 members on
SOCKET_PATH_BYTES_MAX: Final = 107  # Linux: sun_path holds 108 with its last NUL

_ENDPOINT: Final = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_ESCAPED: Final = re.compile(r"%([2-7][0-9A-Fa-f])")
_PATH: Final = re.compile(r"(/[\w.-]+)+", re.ASCII)


class TlsFiles(NamedTuple):
    """PEM files of a connection with TLS; empty: none is given."""

    ca: str = ""
    certificate: str = ""
    key: str = ""


class EtcdAddress(NamedTuple):
    """Members of one etcd, each as host:port, and what keys begin with there, with its last slash."""

    endpoints: tuple[str, ...]
    prefix: str
    tls: TlsFiles | None = None  # None: without TLS


class SocketAddress(NamedTuple):
    """A Unix socket at which another process serves its store."""

    path: str


StoreAddress: TypeAlias = EtcdAddress | SocketAddress


def parse(text: str) -> StoreAddress:
    """Read an address. Raises ValueError, which says what would be right."""
    scheme, _, rest = text.partition("://")
    if scheme == "etcd":
        return _etcd(rest)
    if scheme == "etcd+tls":
        rest, _, options = rest.partition("?")
        return _etcd(rest)._replace(tls=_tls_files(options))
    if scheme == "unix":
        return _socket(rest)
    raise ValueError(f"an address such as {EXAMPLE} or unix:///path/to/socket")


def _etcd(rest: str) -> EtcdAddress:
    hosts, slash, path = rest.partition("/")
    found = [_ENDPOINT.fullmatch(host.strip()) for host in hosts.split(",")]
    endpoints = tuple(f"{one['host']}:{one['port'] or ETCD_PORT}" for one in found if one)
    if len(endpoints) < len(found) or any(int(one["port"] or ETCD_PORT) > 65535 for one in found if one):
        raise ValueError(f"etcd:// with hosts and ports, such as {EXAMPLE}; user names are not supported")
    if not len(set(endpoints)) == len(endpoints) <= ENDPOINTS_MAX:
        raise ValueError(f"etcd:// with at most {ENDPOINTS_MAX} members, each named once")
    path = (slash + path).rstrip("/") or DEFAULT_PATH
    if not _PATH.fullmatch(path):
        raise ValueError(f"etcd:// with a path of letters, digits, '.', '_' and '-', such as {EXAMPLE}")
    return EtcdAddress(endpoints, f"{path}/")


def _tls_files(text: str) -> TlsFiles:
    given = dict(option.partition("=")[::2] for option in text.split("&") if option)
    if not given.keys() <= set(TlsFiles._fields) or not all(given.values()):
        raise ValueError(f"etcd+tls:// with {', '.join(TlsFiles._fields)} behind the ?, each with a file")
    if "key" in given and "certificate" not in given:
        raise ValueError("etcd+tls:// with the certificate that the key belongs to")
    return TlsFiles(**{name: _ESCAPED.sub(_unescape, file) for name, file in given.items()})


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def _socket(path: str) -> SocketAddress:
    if not path.startswith("/") or "\0" in path or len(path.encode()) > SOCKET_PATH_BYTES_MAX:
        raise ValueError(
            f"unix:// with an absolute path of at most {SOCKET_PATH_BYTES_MAX} bytes, as unix:///run/postroad.sock"
        )
    return SocketAddress(path)
