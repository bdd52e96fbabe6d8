"""Where Kafka clients connect: the listener of `kafka.host` and `kafka.port`, and those of `kafka.listeners`.

kafka.listeners := listener { "," listener }
listener        := name "=" ("plain" | "tls") "://" host ":" port [ "?" option { "&" option } ]
option          := "advertised=" host ":" port | "authentication=" ("none" | "certificate")

external=tls://0.0.0.0:9093?advertised=kafka.example.com:9093&authentication=certificate
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple

DEFAULT_NAME: Final = "default"  # of the listener of kafka.host and kafka.port
NONE: Final = "none"
CERTIFICATE: Final = "certificate"
AUTHENTICATIONS: Final = (NONE, CERTIFICATE)
EVERY_ADDRESS: Final = ("0.0.0.0", "::")
PORT_MAX: Final = 65535

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_ADDRESS: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253}):([0-9]{1,5})")
_FORM: Final = (
    "NAME=plain://HOST:PORT or NAME=tls://HOST:PORT, with ?advertised=HOST:PORT where clients need it"
)


class Listener(NamedTuple):
    """An address that the node listens on, and what holds for who comes by it."""

    name: str
    host: str
    port: int  # 0: any free one
    is_tls: bool = False
    advertised_host: str = ""  # empty: host
    advertised_port: int = 0  # 0: the one that is listened on
    authentication: str = NONE

    @property
    def host_to_advertise(self) -> str:
        return self.advertised_host or self.host

    @property
    def is_safe(self) -> bool:
        """Nobody can listen on the way, and whoever comes has to show who he is."""
        return self.is_tls and self.authentication != NONE


def is_loopback(host: str) -> bool:
    """Only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse(text: str) -> tuple[Listener, ...]:
    """ValueError with what would be right."""
    listeners = tuple(_parse_one(part.strip()) for part in text.split(",") if part.strip())
    names = [DEFAULT_NAME, *(listener.name for listener in listeners)]
    if len(set(names)) < len(names):
        raise ValueError(f"listeners with different names, none of them called {DEFAULT_NAME!r}")
    return listeners


def _parse_one(text: str) -> Listener:
    name, equals, url = text.partition("=")
    scheme, separator, rest = url.partition("://")
    address, _, options = rest.partition("?")
    if not equals or not separator or scheme not in ("plain", "tls") or not _NAME.fullmatch(name):
        raise ValueError(f"a list of {_FORM}")
    host, port = _parse_address(address, lowest=0)
    listener = Listener(name, host, port, scheme == "tls")
    for option in options.split("&") if options else ():
        listener = _with_option(listener, *option.partition("=")[::2])
    return listener


def _with_option(listener: Listener, name: str, value: str) -> Listener:
    if name == "advertised":
        host, port = _parse_address(value, lowest=1)
        return listener._replace(advertised_host=host, advertised_port=port)
    if name == "authentication" and value in AUTHENTICATIONS:
        return listener._replace(authentication=value)
    words = "|".join(AUTHENTICATIONS)
    raise ValueError(f"a list of listeners with the options advertised=HOST:PORT and authentication={words}")


def _parse_address(text: str, lowest: int) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
    if found is None or not lowest <= int(found[2]) <= PORT_MAX:
        raise ValueError(f"a list of {_FORM}; {text!r} is no HOST:PORT")
    return found[1].strip("[]"), int(found[2])
