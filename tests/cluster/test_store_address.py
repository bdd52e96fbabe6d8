"""Addresses of coordination stores."""

from __future__ import annotations

import pytest

from postroad.cluster.store_address import EtcdAddress, SocketAddress, StoreAddress, parse


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("etcd://localhost", EtcdAddress(("localhost:2379",), "/postroad/")),
        ("etcd://localhost/", EtcdAddress(("localhost:2379",), "/postroad/")),
        ("etcd://a:1,b.example:65535/x", EtcdAddress(("a:1", "b.example:65535"), "/x/")),
        ("etcd://a:1, b:2/x/y.z-1/", EtcdAddress(("a:1", "b:2"), "/x/y.z-1/")),
        ("etcd://[::1]:2380,[fe80::1]/x", EtcdAddress(("[::1]:2380", "[fe80::1]:2379"), "/x/")),
        ("unix:///run/postroad/store.sock", SocketAddress("/run/postroad/store.sock")),
    ],
)
def test_an_address_is_read(text: str, address: StoreAddress) -> None:
    assert parse(text) == address


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "an address such as etcd://"),
        ("localhost:2379", "an address such as etcd://"),
        ("http://localhost:2379", "an address such as etcd://"),
        ("etcds://localhost:2379", "an address such as etcd://"),
        ("etcd://", "hosts and ports"),
        ("etcd://a,,b", "hosts and ports"),
        ("etcd://user:password@a:2379", "user names are not supported"),
        ("etcd://a:70000", "hosts and ports"),
        ("etcd://a:b", "hosts and ports"),
        ("etcd://a:1,a:1", "each named once"),
        ("etcd://" + ",".join(f"host{number}" for number in range(17)), "at most 16"),
        ("etcd://a/x//y", "a path of letters"),
        ("etcd://a/x?y=1", "a path of letters"),
        ("unix://relative", "an absolute path"),
        ("unix:///" + "x" * 107, "at most 107 bytes"),
    ],
)
def test_an_address_that_can_not_be_read_says_what_would_be_right(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse(text)
