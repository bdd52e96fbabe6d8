"""Where web hooks may go: not to this machine, not to its neighbours, not to what only they can reach.

Whoever registers a web hook makes the gateway send requests, from inside the network it runs in. So every
address that a name resolves to must be one of the public internet, also where an IPv4 address is hidden in an
IPv6 one. Addresses are judged as numbers, never as texts: a text that does not write an address in the one
usual way (`127.1`, `0x7f.1`, `2130706433`, a zone behind `%`) is refused.

With the setting `http.webhooks_private` private and loopback addresses are allowed as well; the metadata
services of clouds, link-local and multicast addresses never are.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

Address = IPv4Address | IPv6Address

# Written out, for Python's own notion of `is_global` changes between its versions.
_PRIVATE: Final = [
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a provider's translation
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
]
_METADATA: Final = [
    ipaddress.ip_network(text)
    for text in (
        "169.254.169.254/32",
        "169.254.170.2/32",
        "100.100.100.200/32",
        "192.0.0.192/32",
        "168.63.129.16/32",
        "fd00:ec2::/32",  # AWS: ::254 and, for pods, ::23
        "fd20:ce::/32",  # Google Cloud: ::254
        "fd00:c1::/32",  # Oracle: ::a9fe:a9fe
        "fd00:42::42/128",  # Scaleway
    )
]
_SPECIAL_V4: Final = [
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",  # link-local
        "192.0.0.0/24",
        "192.0.2.0/24",  # examples, as 198.51.100.0/24 and 203.0.113.0/24
        "192.88.99.0/24",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]
_GLOBAL_V6: Final = IPv6Network("2000::/3")  # all that is given out; the rest is special or not yet used
_SPECIAL_V6: Final = [IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_NAT64: Final = IPv6Network("64:ff9b::/96")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_6TO4: Final = IPv6Network("2002::/16")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # then the last 32 bits are an IPv4 address


class ForbiddenAddress(OSError):
    """The gateway does not connect there."""


def check(text: str, *, private: bool) -> None:
    """Raises ForbiddenAddress, which names no address: whoever asks need not learn what a name resolves to.

    `private`: also within the own network.
    """
    address = parse(text)
    if address is None or not _is_allowed(address, private):
        raise ForbiddenAddress("Web hooks go to addresses of the public internet only.")


def parse(text: str) -> Address | None:
    """None: it is no address, or written in a way that others may read differently."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return None if isinstance(address, IPv6Address) and address.scope_id is not None else address


def is_numeric(host: str) -> bool:
    """Whether somebody may take it for an IPv4 address, in any way to write one: a name never ends with a
    number."""
    last = host.rstrip(".").rpartition(".")[2].lower()
    return last.isdigit() or (last.startswith("0x") and all(c in "0123456789abcdef" for c in last[2:]))


def _is_allowed(address: Address, private: bool) -> bool:
    if any(address in network for network in _METADATA):
        return False
    if any(address in network for network in _PRIVATE):
        return private
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    hidden = _hidden_v4(address)
    if hidden is not None:
        return _is_allowed(hidden, private)
    return address in _GLOBAL_V6 and not any(address in network for network in _SPECIAL_V6)


def _hidden_v4(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets for this one end up at."""
    number = int(address)
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _6TO4:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    if (number >> 32) & 0xFFFFFFFF in _ISATAP and address in _GLOBAL_V6:
        return IPv4Address(number & 0xFFFFFFFF)
    return None
