"""Peers that misuse TLS: handshakes that don't end, half-closed connections, floods; others are unharmed."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest

from postroad.broker import handshakes
from postroad.wire.messages import api_versions
from tests.broker.harness import Running, running_node
from tests.certificates import Authority
from tests.clients.wait import until
from tests.faults.raw import header

PATIENCE_S = 0.5
AT_ONCE = 5
ASK = header(api_versions.KEY, 0, 7, flexible=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def secured(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    monkeypatch.setattr(handshakes, "HANDSHAKE_S", PATIENCE_S)
    monkeypatch.setattr(handshakes, "HANDSHAKES_MAX", AT_ONCE)
    pair = authority.issue("node")
    settings: dict[str, Any] = {"kafka_tls": True, "tls_certificate": pair.certificate, "tls_key": pair.key}
    with running_node(tmp_path_factory.mktemp("data"), **settings) as running:
        yield running


def connect(running: Running) -> socket.socket:
    return socket.create_connection(("127.0.0.1", running.node.port), timeout=10)


def shaken(running: Running, authority: Authority) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(authority.ca))
    return context.wrap_socket(connect(running), server_hostname="localhost")


def answers(client: ssl.SSLSocket) -> bool:
    client.sendall(len(ASK).to_bytes(4, "big") + ASK)
    return int.from_bytes(client.recv(65536)[4:8], "big") == 7


def is_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def under_way(running: Running) -> int:
    found = running.node.handshakes
    assert found is not None
    return found.count


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_a_handshake_that_does_not_end_is_given_up(
    secured: Running, authority: Authority, first: bytes
) -> None:
    with connect(secured) as slow, shaken(secured, authority) as honest:
        slow.sendall(first)
        began = time.monotonic()
        assert is_ended(slow)
        assert time.monotonic() - began < 8
        assert answers(honest)
    until(
        lambda: secured.node.handshakes is not None and secured.node.handshakes.count == 0, "all have ended"
    )


def test_a_handshake_that_drips_is_given_up_as_well(secured: Running) -> None:
    with connect(secured) as slow:
        began = time.monotonic()
        for byte in b"\x16\x03\x01\x02\x00" + bytes(200):
            if not drips(slow, byte):
                break
        assert time.monotonic() - began < 8


def drips(slow: socket.socket, byte: int) -> bool:
    """Send a byte and wait a moment; False once the node has hung up."""
    slow.settimeout(0.05)
    try:
        slow.sendall(bytes([byte]))
        return slow.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_a_flood_of_handshakes_makes_room_for_honest_ones(secured: Running, authority: Authority) -> None:
    flood = [connect(secured) for _ in range(4 * AT_ONCE)]
    with shaken(secured, authority) as honest:
        assert answers(honest)
    assert under_way(secured) <= AT_ONCE
    for each in flood:
        each.close()


def test_who_closes_its_half_is_answered_and_let_go(secured: Running, authority: Authority) -> None:
    client = shaken(secured, authority)
    assert answers(client)
    client.unwrap()  # says good-bye, and waits for the other one's
    client.close()
    until(lambda: not secured.on_loop(lambda: list(secured.node.listener.connections)), "it is let go")


def test_who_is_cut_off_is_let_go(secured: Running, authority: Authority) -> None:
    client = shaken(secured, authority)
    assert answers(client)
    client.sendall(b"\0\0\1\0half of a request")
    socket.socket(fileno=client.detach()).close()  # without a good-bye
    until(lambda: not secured.on_loop(lambda: list(secured.node.listener.connections)), "it is let go")


def test_a_stop_does_not_wait_for_handshakes(secured: Running) -> None:
    with connect(secured) as slow:
        until(
            lambda: secured.node.handshakes is not None and secured.node.handshakes.count == 1, "it is here"
        )
        secured.stop()
        assert is_ended(slow)
