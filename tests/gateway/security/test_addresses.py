"""From where a request comes, as the rules have it."""

from __future__ import annotations

import socket
from asyncio import Protocol, Transport, get_running_loop
from contextlib import closing

import pytest

from postroad.gateway.security.identities import host_of


class Accepted(Protocol):
    def __init__(self, hosts: list[str]) -> None:
        self._hosts = hosts

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        self._hosts.append(host_of(transport))
        transport.close()


def listening() -> socket.socket:
    """For both IPv4 and IPv6, as `http.host = "::"` is."""
    try:
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        pytest.skip("this machine has no IPv6")


async def test_an_address_is_the_same_whichever_socket_it_comes_by() -> None:
    hosts: list[str] = []
    with closing(listening()) as sock:
        server = await get_running_loop().create_server(lambda: Accepted(hosts), sock=sock)
        async with server:
            port = sock.getsockname()[1]
            for host in ("127.0.0.1", "::1"):
                transport, _ = await get_running_loop().create_connection(Protocol, host, port)
                transport.close()
            while len(hosts) < 2:
                await _turn()
    assert sorted(hosts) == ["127.0.0.1", "::1"]


async def _turn() -> None:
    from asyncio import sleep

    await sleep(0.01)


def test_without_a_connection_nobody_knows() -> None:
    assert host_of(None) == "unknown"
