"""Where web hooks may go."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.gateway.webhooks import addresses
from postroad.gateway.webhooks.addresses import ForbiddenAddress

PUBLIC = ["1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::1"]
OWN_NETWORK = [
    "127.0.0.1",
    "127.255.255.254",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fd12::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
]
NEVER = [
    "0.0.0.0",
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "168.63.129.16",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd00:ec2::254%1",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd20:ce::254%eth0",
    "fd00:c1::a9fe:a9fe",
    "fd12::1%1",
    "2606:4700::1111%1",
    "2606:4700::5efe:a9fe:a9fe",
    "2606:4700::200:5efe:a9fe:a9fe",
    "127.1",
    "2130706433",
    "0",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "1.1.1.1.",
    "localhost",
    "",
    "2001:db8::1",
    "2001::1",
    "64:ff9b:1::1",
    "::127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "2002:a9fe:a9fe::1",
    "64:ff9b::a9fe:a9fe",
]


def is_allowed(text: str, *, private: bool = False) -> bool:
    try:
        addresses.check(text, private=private)
    except ForbiddenAddress:
        return False
    return True


@pytest.mark.parametrize("text", PUBLIC)
def test_the_public_internet_is_allowed(text: str) -> None:
    assert is_allowed(text)


@pytest.mark.parametrize("text", OWN_NETWORK)
def test_the_own_network_needs_the_setting(text: str) -> None:
    assert not is_allowed(text)
    assert is_allowed(text, private=True)


@pytest.mark.parametrize("text", NEVER)
def test_metadata_link_local_and_special_addresses_are_never_allowed(text: str) -> None:
    assert not is_allowed(text)
    assert not is_allowed(text, private=True)


@given(number=st.integers(0, 2**32 - 1), private=st.booleans())
def test_a_hidden_ipv4_address_is_judged_as_itself(number: int, private: bool) -> None:
    plain = is_allowed(str(ipaddress.IPv4Address(number)), private=private)
    for hidden in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80 | 1):
        assert is_allowed(str(ipaddress.IPv6Address(hidden)), private=private) is plain


@given(number=st.integers(0, 2**32 - 1))
def test_what_python_calls_global_and_what_is_allowed_agree_but_for_what_is_known(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    if is_allowed(str(address)):
        assert address.is_global
