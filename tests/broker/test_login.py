"""Who may do anything at all: nobody before login, and nobody with a wrong password."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest

from postroad.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from postroad.security import scram
from postroad.security.master_key import NODE_USER, OPERATOR_USER, machine_password
from postroad.security.sasl import PlainClient, ScramClient
from postroad.wire.messages import alter_user_scram_credentials as alter
from postroad.wire.messages import api_versions, metadata, sasl_authenticate, sasl_handshake
from tests.broker.secured import PASSWORD, Secured, log_in, scram_client, secured_node
from tests.faults.raw import Closed

FAILED = SaslAuthenticationFailed.code


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("secured"), security_plain_on_loopback="true") as running:
        running.add_user("shop")
        yield running


def metadata_of_all() -> metadata.MetadataRequest:
    return metadata.MetadataRequest(topics=None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in_by_scram(node: Secured, mechanism: str) -> None:
    with node.connect() as client:
        assert log_in(client, ScramClient(mechanism, "shop", PASSWORD, "nonce")) == 0
        assert client.call(metadata, 9, metadata_of_all()).brokers
        assert str(node.inside(client).principal) == "User:shop"


def test_a_user_logs_in_by_plain_where_that_is_offered(node: Secured) -> None:
    with node.connect() as client:
        assert log_in(client, PlainClient("shop", PASSWORD)) == 0
        assert client.call(metadata, 9, metadata_of_all()).brokers


def test_without_a_login_only_versions_are_told(node: Secured) -> None:
    with node.connect() as client:
        assert client.call(api_versions, 3, api_versions.ApiVersionsRequest("a", "1")).error_code == 0
        with pytest.raises(Closed):
            client.call(metadata, 9, metadata_of_all())


@pytest.mark.parametrize("name", ["shop", "nobody", "postroad.node"])
@pytest.mark.parametrize("plain", [False, True])
def test_a_wrong_password_is_answered_late_and_nothing_follows(node: Secured, name: str, plain: bool) -> None:
    with node.connect() as client:
        began = time.monotonic()
        assert log_in(client, PlainClient(name, "wrong") if plain else scram_client(name, "wrong")) == FAILED
        assert time.monotonic() - began >= 0.1
        with pytest.raises(Closed):
            client.call(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest("SCRAM-SHA-256"))


def test_a_login_in_the_middle_is_no_login(node: Secured) -> None:
    """Between the messages of an exchange nobody is logged in, and nothing but 17, 18 and 36 is read."""
    with node.connect() as client:
        client.call(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest("SCRAM-SHA-256"))
        first = sasl_authenticate.SaslAuthenticateRequest(scram_client("shop").begin())
        assert client.call(sasl_authenticate, 2, first).error_code == 0
        with pytest.raises(Closed):
            client.call(metadata, 9, metadata_of_all())


def test_messages_of_a_login_that_has_not_begun_are_refused(node: Secured) -> None:
    with node.connect() as client:
        request = sasl_authenticate.SaslAuthenticateRequest(b"n,,n=shop,r=x")
        assert client.call(sasl_authenticate, 2, request).error_code == IllegalSaslState.code
        with pytest.raises(Closed):
            client.call(metadata, 9, metadata_of_all())


def test_unknown_mechanisms_are_told_what_there_is(node: Secured) -> None:
    with node.connect() as client:
        answer = client.call(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest("GSSAPI"))
        assert answer.error_code == UnsupportedSaslMechanism.code
        assert answer.mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"]


def test_the_first_handshake_version_closes_the_connection(node: Secured) -> None:
    with node.connect() as client, pytest.raises(Closed):
        client.call(sasl_handshake, 0, sasl_handshake.SaslHandshakeRequest("PLAIN"))


def test_large_frames_before_login_are_not_read(node: Secured) -> None:
    with node.connect() as client:
        client.send(struct.pack(">i", 65 * 1024))
        assert client.is_closed_by_broker(5)


def test_plain_is_not_offered_without_tls(tmp_path: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    with secured_node(tmp_path_factory.mktemp("strict")) as strict, strict.connect() as client:
        assert log_in(client, PlainClient("admin", PASSWORD)) == UnsupportedSaslMechanism.code


def test_who_does_not_log_in_is_shown_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("short")
    with secured_node(home, security_login_ms="300ms") as short:
        idle, busy = short.connect(), short.connect()
        assert log_in(busy, scram_client("admin")) == 0
        assert idle.is_closed_by_broker(10)
        assert busy.call(metadata, 9, metadata_of_all()).brokers


def test_a_session_ends_unless_the_same_user_logs_in_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"security_session_ms": "700ms"}
    with secured_node(tmp_path_factory.mktemp("sessions"), **settings) as node:
        node.add_user("shop")
        with node.connect() as client, node.connect() as silent, node.connect() as other:
            for each in (client, silent, other):
                assert log_in(each, scram_client("admin")) == 0
            deadline = time.monotonic() + 1.5
            while time.monotonic() < deadline:  # longer than one session
                assert log_in(client, scram_client("admin")) == 0
                assert client.call(metadata, 9, metadata_of_all()).brokers
            with pytest.raises(Closed):
                silent.call(metadata, 9, metadata_of_all())
            assert log_in(other, scram_client("shop")) == FAILED
            with pytest.raises(Closed):
                other.call(metadata, 9, metadata_of_all())


def test_a_deleted_users_connections_end(node: Secured) -> None:
    node.add_user("leaver")
    with node.connect() as client, node.connect() as other:
        assert log_in(client, scram_client("leaver")) == 0
        assert log_in(other, scram_client("shop")) == 0
        node.delete_user("leaver")
        assert client.is_closed_by_broker(5)
        assert other.call(metadata, 9, metadata_of_all()).brokers
        with node.connect() as again:
            assert log_in(again, scram_client("leaver")) == FAILED


def test_a_changed_password_ends_the_old_ones_connections(node: Secured) -> None:
    node.add_user("changer")
    with node.connect() as client:
        assert log_in(client, scram_client("changer")) == 0
        node.add_user("changer", "another")
        assert client.is_closed_by_broker(5)
    with node.connect() as again:
        assert log_in(again, scram_client("changer", "another")) == 0


def test_who_changes_his_own_password_hears_that_it_is_done(node: Secured) -> None:
    salted = scram.salted_password("SCRAM-SHA-256", "mine", b"salt", scram.ITERATIONS_MIN)
    change = alter.ScramCredentialUpsertion("admin", 1, scram.ITERATIONS_MIN, b"salt", salted)
    request = alter.AlterUserScramCredentialsRequest(upsertions=[change])
    try:
        with node.connect() as client, node.connect() as other:
            for each in (client, other):
                assert log_in(each, scram_client("admin")) == 0
            assert client.call(alter, 0, request).results[0].error_code == 0
            assert client.is_closed_by_broker(5)
            assert other.is_closed_by_broker(5)
        with node.connect() as again:
            assert log_in(again, scram_client("admin", "mine")) == 0
    finally:
        node.add_user("admin")


def test_machines_log_in_by_the_master_key(node: Secured) -> None:
    key = node.node.security.master_key
    for name, principal in ((NODE_USER, "Node:postroad.node"), (OPERATOR_USER, "Operator:postroad.operator")):
        with node.connect() as client:
            assert log_in(client, scram_client(name, machine_password(key, name))) == 0
            assert str(node.inside(client).principal) == principal


def test_where_nobody_is_asked_a_login_is_told_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.broker.harness import running_node

    with running_node(tmp_path_factory.mktemp("open")) as node, node.connect() as client:
        answer = client.call(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest("PLAIN"))
        assert answer.error_code == IllegalSaslState.code
