"""SCRAM and PLAIN as exchanges: RFC 7677's own example, and everything that must not get in."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import SaslAuthenticationFailed
from postroad.security import scram
from postroad.security.master_key import derive, machine_password
from postroad.security.sasl import (
    EARLY_S,
    FAILURE_S,
    PlainClient,
    PlainServer,
    ScramClient,
    ScramServer,
    failure_pause_s,
)
from postroad.security.scram import Verifier, make_verifier
from postroad.security.strangers import Strangers

MECHANISM = "SCRAM-SHA-256"
RFC_SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
MASTER = bytes(range(32))


class Users:
    """Verifiers of these passwords; the fewest iterations, to be quick."""

    def __init__(self, mechanism: str = MECHANISM, **passwords: str) -> None:
        self._mechanism = mechanism
        self._strangers = Strangers()
        self._known = {
            name: make_verifier(mechanism, password, b"salt" + name.encode(), scram.ITERATIONS_MIN)
            for name, password in passwords.items()
        }

    def __call__(self, name: str) -> Verifier:
        found = self._known.get(name)
        if found is not None:
            return found
        return self._strangers.verifier(MASTER, self._mechanism, name)


def log_in(client: ScramClient, server: ScramServer) -> None:
    message: bytes | None = client.begin()
    while message is not None:
        message = client.respond(server.respond(message))


def test_the_example_of_the_rfc_is_spoken_to_the_letter() -> None:
    verifier = make_verifier(MECHANISM, "pencil", RFC_SALT, 4096)
    server = ScramServer(lambda _: verifier, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    client = ScramClient(MECHANISM, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert client.begin() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    first = server.respond(client.begin())
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = client.respond(first)
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    signed = server.respond(final)
    assert signed == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert client.respond(signed) is None
    assert server.user == "user"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_whoever_knows_the_password_is_let_in(mechanism: str) -> None:
    server = ScramServer(Users(mechanism, shop="secret"), "server")
    log_in(ScramClient(mechanism, "shop", "secret", "client"), server)
    assert server.user == "shop"


@pytest.mark.parametrize(("user", "password"), [("shop", "wrong"), ("nobody", "secret"), ("shop", "")])
def test_a_wrong_password_and_an_unknown_user_hear_the_same(user: str, password: str) -> None:
    server = ScramServer(Users(shop="secret"), "server")
    with pytest.raises(SaslAuthenticationFailed, match=r"^The user or the password is wrong\.$"):
        log_in(ScramClient(MECHANISM, user, password, "client"), server)
    assert server.user is None


def test_an_unknown_user_has_the_same_salt_each_time_and_other_users_another() -> None:
    users = Users(shop="secret")
    first = ScramServer(users, "x").respond(b"n,,n=nobody,r=c")
    assert first == ScramServer(users, "x").respond(b"n,,n=nobody,r=c")
    assert first != ScramServer(users, "x").respond(b"n,,n=noone,r=c")
    assert len(scram.read_server_first(first).salt) == scram.SALT_BYTES


def test_a_password_of_nothing_but_zeros_is_not_the_unknown_users() -> None:
    """The stored key of an unknown user is no hash of anything: nothing that a client sends leads there."""
    server = ScramServer(Users(), "server")
    server.respond(b"n,,n=nobody,r=c")
    with pytest.raises(SaslAuthenticationFailed):
        server.respond(b"c=biws,r=cserver,p=" + b"A" * 43 + b"=")


@given(
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=20)
)
def test_commas_and_equal_signs_in_a_name_come_through(name: str) -> None:
    assert scram.decode_name(scram.encode_name(name)) == name
    message = ScramClient(MECHANISM, name, "x", "nonce").begin()
    assert scram.read_client_first(message).user == name


@pytest.mark.parametrize("name", ["a=b", "a=", "=2", "=2c", "=3d"])
def test_an_equal_sign_that_stands_for_nothing_is_refused(name: str) -> None:
    with pytest.raises(SaslAuthenticationFailed):
        scram.read_client_first(f"n,,n={name},r=c".encode())


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"n,,",
        b"n,,n=shop",
        b"n,,r=c,n=shop",
        b"n,,n=shop,r=",
        b"n,,m=x,n=shop,r=c",
        b"n,,n=shop,r=c,m=x",
        b"n,,n=shop,r=c,tokenauth=true",
        b"p=tls-unique,,n=shop,r=c",
        b"n,a=admin,n=shop,r=c",
        b"n,,n=sh\0op,r=c",
        b"n,,n=shop,r=" + b"c" * 2000,
    ],
)
def test_first_messages_that_are_none_are_refused(message: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailed):
        ScramServer(Users(shop="secret"), "server").respond(message)


def test_a_proof_for_another_nonce_is_refused() -> None:
    """A replay: the messages of one exchange are worth nothing in the next."""
    users = Users(shop="secret")
    client = ScramClient(MECHANISM, "shop", "secret", "client")
    final = client.respond(ScramServer(users, "one").respond(client.begin()))
    assert final is not None
    again = ScramServer(users, "two")
    again.respond(client.begin())
    with pytest.raises(SaslAuthenticationFailed, match="nonce"):
        again.respond(final)


def test_an_old_librdkafka_may_say_its_part_of_the_nonce_twice() -> None:
    """Versions before 2.6.1 do, and so does the kcat of Debian; the proof is over what was said."""

    def last(server: ScramServer, begin: str) -> bytes:
        client = ScramClient(MECHANISM, "shop", "secret", "client")
        first = server.respond(client.begin()).decode()
        without_proof = f"c=biws,r={begin}{first.partition(',')[0][2:]}"
        salted = scram.salted_password(MECHANISM, "secret", b"saltshop", scram.ITERATIONS_MIN)
        auth = ",".join(("n=shop,r=client", first, without_proof)).encode()
        proof = scram.client_proof(MECHANISM, salted, auth)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    server = ScramServer(Users(shop="secret"), "server")
    assert server.respond(last(server, "client")).startswith(b"v=")
    assert server.user == "shop"
    for begin in ("other", "clientclient"):
        server = ScramServer(Users(shop="secret"), "server")
        message = last(server, begin)
        with pytest.raises(SaslAuthenticationFailed, match="nonce"):
            server.respond(message)


def test_a_channel_that_was_swapped_is_refused() -> None:
    """A first message with another header than the one that is signed: a downgrade on the way."""
    server = ScramServer(Users(shop="secret"), "server")
    client = ScramClient(MECHANISM, "shop", "secret", "client")
    final = client.respond(server.respond(b"y" + client.begin()[1:]))
    assert final is not None
    with pytest.raises(SaslAuthenticationFailed, match="channel"):
        server.respond(final)


def test_an_exchange_is_over_when_it_is_over() -> None:
    server = ScramServer(Users(shop="secret"), "server")
    client = ScramClient(MECHANISM, "shop", "secret", "client")
    final = client.respond(server.respond(client.begin()))
    assert final is not None
    server.respond(final)
    with pytest.raises(SaslAuthenticationFailed, match="over"):
        server.respond(final)


@pytest.mark.parametrize("iterations", [1, 4095, 16_385, 10**9])
def test_a_client_spends_no_more_than_it_should(iterations: int) -> None:
    client = ScramClient(MECHANISM, "shop", "secret", "client")
    with pytest.raises(SaslAuthenticationFailed, match="iterations"):
        client.respond(f"r=clientserver,s=c2FsdA==,i={iterations}".encode())


@pytest.mark.parametrize("first", [b"r=other,s=c2FsdA==,i=4096", b"r=client,s=c2FsdA==,i=4096"])
def test_a_client_answers_its_own_nonce_only(first: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="nonce"):
        ScramClient(MECHANISM, "shop", "secret", "client").respond(first)


def test_a_server_that_does_not_know_the_password_is_not_trusted() -> None:
    client = ScramClient(MECHANISM, "shop", "secret", "client")
    client.respond(b"r=clientserver,s=c2FsdA==,i=4096")
    with pytest.raises(SaslAuthenticationFailed, match="server"):
        client.respond(b"v=c2lnbmF0dXJl")


def test_plain_hands_back_what_is_to_be_hashed() -> None:
    server = PlainServer(Users(shop="secret"))
    assert server.respond(PlainClient("shop", "secret").begin()).passes()
    assert not server.respond(PlainClient("shop", "wrong").begin()).passes()
    assert not server.respond(PlainClient("nobody", "secret").begin()).passes()


@pytest.mark.parametrize(
    "message", [b"", b"shop\0secret", b"\0\0secret", b"\0shop\0", b"admin\0shop\0secret", b"\xff\0a\0b"]
)
def test_plain_messages_that_are_none_are_refused(message: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailed):
        PlainServer(Users(shop="secret")).respond(message)


def test_secrets_of_machines_differ_by_purpose_and_by_key() -> None:
    assert derive(MASTER, "ab", "c") != derive(MASTER, "a", "bc")
    assert machine_password(MASTER, "postroad.node") != machine_password(MASTER, "postroad.gateway")
    assert machine_password(MASTER, "postroad.node") != machine_password(bytes(32), "postroad.node")


@pytest.mark.parametrize("took_s", [0.0, 0.001, 0.05, 0.0999, 0.12, 0.35])
def test_a_failure_is_told_at_a_multiple_of_one_time(took_s: float) -> None:
    """And so that a timer that is early does not make it less."""
    told_s = took_s + failure_pause_s(took_s)
    periods = (told_s - EARLY_S) / FAILURE_S
    assert periods == pytest.approx(round(periods))
    assert periods >= 1
