"""Logins by somebody hostile: many guesses at once, logins that wait for a change, peers that never read."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from postroad.broker.connection import Connection
from postroad.broker.login import UNREAD_BYTES_MAX
from postroad.errors import SaslAuthenticationFailed
from postroad.security.sasl import FAILURE_S, PlainClient
from postroad.wire.messages import api_versions, metadata, produce, sasl_authenticate, sasl_handshake
from tests.broker.secured import PASSWORD, Secured, log_in, scram_client, secured_node
from tests.clients.wait import until
from tests.faults.raw import Closed, RawConnection, batch_of, frame, produce_request, request_content

FAILED = SaslAuthenticationFailed.code
EVERYTHING = metadata.MetadataRequest(topics=None)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    home = tmp_path_factory.mktemp("secured")
    with secured_node(home, security_plain_on_loopback="true", security_session_ms="1h") as running:
        running.add_user("shop")
        yield running


def handshake(mechanism: str) -> bytes:
    return frame(request_content(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest(mechanism)))


def message(content: bytes) -> bytes:
    return frame(request_content(sasl_authenticate, 2, sasl_authenticate.SaslAuthenticateRequest(content)))


def failures(node: Secured) -> int:
    return int(node.node.security.audit.events["login failed"])


@contextmanager
def passwords_wait(node: Secured) -> Iterator[threading.Event]:
    """The thread that hashes passwords is busy until the event is set."""
    go_on, checks = threading.Event(), node.node.security._checks
    assert checks is not None
    node.on_loop(lambda: checks._workers.run(go_on.wait, lambda *_: None))
    try:
        yield go_on
    finally:
        go_on.set()


@pytest.mark.parametrize("with_handshakes", [False, True])
def test_one_connection_tries_one_password_at_a_time(node: Secured, with_handshakes: bool) -> None:
    guesses = [PlainClient("shop", f"guess {number}").begin() for number in range(100)]
    guesses.append(PlainClient("shop", PASSWORD).begin())
    between = handshake("PLAIN") if with_handshakes else b""
    before = failures(node)
    with node.connect() as client:
        client.send(handshake("PLAIN") + between.join(map(message, guesses)))
        assert client.is_closed_by_broker()
    until(lambda: failures(node) > before, "the first guess has failed")
    assert failures(node) == before + 1


def test_the_next_guess_is_not_read_while_one_is_checked(node: Secured) -> None:
    before = failures(node)
    with node.connect() as client, passwords_wait(node) as go_on:
        inside = node.inside(client)
        client.send(handshake("PLAIN") + message(PlainClient("shop", "first").begin()))
        until(lambda: inside.login is not None and inside.login._busy, "the first guess waits to be checked")
        client.send(handshake("PLAIN") + message(PlainClient("shop", PASSWORD).begin()))
        until(lambda: inside._stopped, "nothing more is read of it")
        go_on.set()
        assert client.is_closed_by_broker()
    assert failures(node) == before + 1


def begun(client: RawConnection, name: str) -> tuple[Any, bytes]:
    """A login by SCRAM of which only the last message is missing."""
    exchange = scram_client(name)
    client.send(handshake("SCRAM-SHA-256"))
    client.receive()
    request = sasl_authenticate.SaslAuthenticateRequest(exchange.begin())
    proof = exchange.respond(bytes(client.call(sasl_authenticate, 2, request).auth_bytes))
    assert proof is not None
    return exchange, proof


@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_a_login_that_began_before_the_password_went_does_not_end_well(node: Secured, change: str) -> None:
    name = f"{change} in the middle"
    node.add_user(name)
    with node.connect() as client:
        _, proof = begun(client, name)
        node.delete_user(name) if change == "deleted" else node.add_user(name, "another")
        request = sasl_authenticate.SaslAuthenticateRequest(proof)
        assert client.call(sasl_authenticate, 2, request).error_code == FAILED
        with pytest.raises(Closed):
            client.call(metadata, 9, EVERYTHING)


def test_a_password_that_is_changed_while_it_is_checked_is_wrong(node: Secured) -> None:
    node.add_user("unlucky")
    with node.connect() as client:
        client.send(handshake("PLAIN"))
        client.receive()
        with passwords_wait(node):
            request = sasl_authenticate.SaslAuthenticateRequest(PlainClient("unlucky", PASSWORD).begin())
            answer = client.begin(sasl_authenticate, 2, request)
            inside = node.inside(client)
            until(lambda: inside.login is not None and inside.login._busy, "the password waits to be checked")
            node.add_user("unlucky", "another")
        assert answer().error_code == FAILED


def test_when_a_failure_is_told_shows_nothing_of_how_long_the_check_took(node: Secured) -> None:
    """Users differ in iterations: 30 ms more or less would tell who there is."""
    with node.connect() as client:
        client.send(handshake("PLAIN"))
        client.receive()
        with passwords_wait(node) as go_on:
            began = time.monotonic()
            request = sasl_authenticate.SaslAuthenticateRequest(PlainClient("shop", "wrong").begin())
            answer = client.begin(sasl_authenticate, 2, request)
            time.sleep(1.2 * FAILURE_S)
            go_on.set()
            assert answer().error_code == FAILED
            assert time.monotonic() - began >= 2 * FAILURE_S


def test_a_stranger_who_never_reads_is_kept_little_for(node: Secured) -> None:
    request = api_versions.ApiVersionsRequest("a", "1")
    many = frame(request_content(api_versions, 3, request)) * 20_000
    with node.connect(receive_buffer=4096) as client:
        inside = node.inside(client)
        client.send(many)
        until(lambda: inside._paused, "it is not read any more")
        one_answer = 2048
        assert UNREAD_BYTES_MAX < inside._out_bytes <= UNREAD_BYTES_MAX + one_answer
    with node.connect() as client:  # who has logged in has all of the room
        assert log_in(client, scram_client("shop")) == 0
        limits = node.node.settings.limits
        assert node.inside(client).unread_bytes_max == limits.write_buffer_bytes_max


def connections() -> int:
    gc.collect()
    return sum(isinstance(each, Connection) for each in gc.get_objects())


def test_a_connection_that_ended_does_not_wait_for_the_end_of_its_session(node: Secured) -> None:
    before = connections()
    for _ in range(20):
        with node.connect() as client:
            assert log_in(client, scram_client("shop")) == 0
    until(lambda: connections() <= before + 2, "connections that have ended are forgotten")


def test_a_session_ends_in_the_middle_of_a_run_of_produces(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Which takes a short way that asks nobody: the session's end has to close it, whatever comes when."""
    with secured_node(tmp_path_factory.mktemp("runs"), security_session_ms="1s") as short:
        short.create("run")
        with short.connect() as client:
            assert log_in(client, scram_client("admin")) == 0
            request = frame(request_content(produce, 9, produce_request("run", batch_of(b"a"), acks=1)))

            def send_on() -> None:
                deadline = time.monotonic() + 20
                while time.monotonic() < deadline:
                    client.send(request)
                    client.receive()

            taken = _runs(short)
            with pytest.raises(Closed):
                send_on()
            assert _runs(short) > taken, "none took the short way"
        with short.connect() as client:
            assert log_in(client, scram_client("admin")) == 0
            login = short.inside(client).login
            assert login is not None
            short.on_loop(login._end_session)  # as an early timer does
            with pytest.raises(Closed):
                client.call(metadata, 9, EVERYTHING)


def _runs(node: Secured) -> int:
    """Produces that took the short way."""
    return node.node.dispatcher.stats[0].short_way
