"""Users who come with a provider's token (OAUTHBEARER), and providers whose keys change or can't be had."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from postroad.broker import token_keys
from postroad.config import load
from postroad.errors import ConfigurationError, SaslAuthenticationFailed, UnsupportedSaslMechanism
from postroad.security.master_key import NODE_USER
from postroad.wire.messages import metadata, sasl_authenticate, sasl_handshake
from tests.broker.secured import Secured, log_in, scram_client, secured_node
from tests.clients.wait import until
from tests.faults.raw import Closed, RawConnection
from tests.identity_provider import (
    AUDIENCE,
    ISSUER,
    Published,
    claims,
    jwks,
    published,
    rsa_key,
    settings,
    token,
    unsigned,
)

FAILED = SaslAuthenticationFailed.code
KEY, NEXT_KEY = rsa_key("first"), rsa_key("second")
EVERYTHING = metadata.MetadataRequest(topics=None)


class Bearer:
    """As a client of Kafka says it."""

    mechanism = "OAUTHBEARER"

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def begin(self) -> bytes:
        return f"n,,\1auth=Bearer {self._shown}\1\1".encode()

    def respond(self, message: bytes) -> None:
        assert message == b""


class Place(NamedTuple):
    node: Secured
    file: Path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("tokens")
    file = home / "jwks.json"
    file.write_bytes(jwks(KEY))
    with secured_node(home / "data", security_plain_on_loopback="true", **settings(file)) as node:
        node.add_user("shop")
        yield Place(node, file)


def says(client: RawConnection, shown: str) -> Any:
    """The answer to a login by this token, on a connection that may have logged in before."""
    client.call(sasl_handshake, 1, sasl_handshake.SaslHandshakeRequest("OAUTHBEARER"))
    request = sasl_authenticate.SaslAuthenticateRequest(Bearer(shown).begin())
    return client.call(sasl_authenticate, 2, request)


def test_a_token_is_its_users_login(place: Place) -> None:
    with place.node.connect() as client:
        answer = says(client, token(KEY, says=claims("jo@example.com")))
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 630_000
        assert str(place.node.inside(client).principal) == "User:jo@example.com"
        assert client.call(metadata, 9, EVERYTHING).brokers


@pytest.mark.parametrize(
    "shown",
    [
        unsigned({"alg": "none"}, claims()),
        unsigned({"alg": "none", "kid": "first"}, claims(), b"x"),
        token(KEY, says=claims(aud="another")),
        token(KEY, says=claims(iss="https://evil.example")),
        token(KEY, says=claims(exp=1_500_000_000)),
        token(KEY, says=claims(NODE_USER)),
        token(rsa_key("stranger"), kid="first"),
        token(KEY)[:-10] + "AAAAAAAAAA",
        "nonsense",
    ],
    ids=[
        "none",
        "none-signed",
        "audience",
        "issuer",
        "expired",
        "machine",
        "stranger",
        "flipped",
        "nonsense",
    ],
)
def test_other_tokens_are_refused_late_and_nothing_follows(place: Place, shown: str) -> None:
    with place.node.connect() as client:
        began = time.monotonic()
        assert says(client, shown).error_code == FAILED
        assert time.monotonic() - began >= 0.1
        with pytest.raises(Closed):
            client.call(metadata, 9, EVERYTHING)


def test_a_session_ends_with_its_token(place: Place) -> None:
    """30 s are forgiven behind its end: so it has three left."""
    with place.node.connect() as client:
        short = token(KEY, says=claims("brief", exp=time.time() - 27))
        answer = says(client, short)
        assert answer.error_code == 0
        assert 0 < answer.session_lifetime_ms <= 3000
        time.sleep(answer.session_lifetime_ms / 1000 + 0.05)
        with pytest.raises(Closed):
            client.call(metadata, 9, EVERYTHING)


def test_a_session_goes_on_by_another_token_of_the_same_user_only(place: Place) -> None:
    with place.node.connect() as client:
        assert says(client, token(KEY, says=claims("brief", exp=time.time() - 10))).error_code == 0
        assert says(client, token(KEY, says=claims("brief"))).session_lifetime_ms > 60_000
        login = place.node.inside(client).login
        assert login is not None
        assert not login._has_ended
        assert client.call(metadata, 9, EVERYTHING).brokers
        assert says(client, token(KEY, says=claims("admin"))).error_code == FAILED
        with pytest.raises(Closed):
            client.call(metadata, 9, EVERYTHING)


def test_another_password_ends_no_session_that_began_with_a_token(place: Place) -> None:
    with place.node.connect() as client, place.node.connect() as other:
        assert says(client, token(KEY)).error_code == 0
        assert log_in(other, scram_client("shop")) == 0
        place.node.add_user("shop")  # another salt: another password
        place.node.add_user("shop", "another")
        assert other.is_closed_by_broker(5)
        assert client.call(metadata, 9, EVERYTHING).brokers
        place.node.add_user("shop")


def test_a_new_key_of_the_provider_is_found_when_it_is_shown(place: Place) -> None:
    with place.node.connect() as client:
        assert says(client, token(NEXT_KEY)).error_code == FAILED
    place.file.write_bytes(jwks(KEY, NEXT_KEY))
    keys = place.node.node.security._token_keys
    assert keys is not None
    keys._renewed_at = None  # as ten seconds later
    with place.node.connect() as client:
        assert says(client, token(NEXT_KEY)).error_code == 0
    place.file.write_text("{broken")
    keys._renewed_at = None
    with place.node.connect() as client:
        assert says(client, token(rsa_key("third"))).error_code == FAILED
        assert keys._failure
    with place.node.connect() as client:  # what was there before is still believed
        assert says(client, token(NEXT_KEY)).error_code == 0


def test_tokens_are_not_offered_without_tls_or_a_provider(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_bytes(jwks(KEY))
    with (
        secured_node(tmp_path / "a", **settings(tmp_path / "jwks.json")) as strict,
        strict.connect() as client,
    ):
        assert log_in(client, Bearer(token(KEY))) == UnsupportedSaslMechanism.code


@pytest.fixture
def provider() -> Iterator[Published]:
    with published(KEY) as shown:
        yield shown


def test_keys_come_from_a_url_and_strangers_make_nobody_ask_again(
    provider: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_keys, "AGAIN_S", 3600.0)  # however long the test takes
    more = {"security_plain_on_loopback": "true", **settings(provider.url)}
    with secured_node(tmp_path, **more) as node:
        with node.connect() as client:
            assert says(client, token(KEY)).error_code == 0
        assert provider.asked == 1
        for _ in range(3):
            with node.connect() as client:
                assert says(client, token(NEXT_KEY)).error_code == FAILED
        assert provider.asked == 1
        keys = node.node.security._token_keys
        assert keys is not None
        provider.text = jwks(NEXT_KEY)
        keys._renewed_at = None  # as ten seconds later
        with node.connect() as client:
            assert says(client, token(NEXT_KEY)).error_code == 0
        assert provider.asked == 2


@pytest.mark.parametrize(
    ("status", "text"), [(500, b""), (302, jwks(KEY)), (200, b"x" * (1 << 20) + b"x"), (200, b"{}")]
)
def test_a_provider_that_answers_badly_lets_nobody_in(
    provider: Published, tmp_path: Path, status: int, text: bytes
) -> None:
    provider.status, provider.text = status, text
    more = {"security_plain_on_loopback": "true", **settings(provider.url)}
    with secured_node(tmp_path, **more) as node:
        with node.connect() as client:
            assert says(client, token(KEY)).error_code == FAILED
        keys = node.node.security._token_keys
        assert keys is not None
        until(lambda: keys._failure, "it was asked")
        assert set(provider.paths) == {"/jwks.json"}  # no redirect is followed
        with node.connect() as client:  # others come in as ever
            assert log_in(client, scram_client("admin")) == 0


# --- settings


def loaded(**given: str) -> Any:
    return load(environment={}, flags={f"security.{name}": value for name, value in given.items()})


def test_a_provider_without_audience_or_issuer_is_refused() -> None:
    for given in ({}, {"oauth_issuer": ISSUER}, {"oauth_audience": AUDIENCE}):
        with pytest.raises(ConfigurationError, match=r"oauth_issuer and security\.oauth_audience"):
            loaded(oauth_jwks="/jwks.json", **given)


@pytest.mark.parametrize("url", ["http://login.example.com/jwks", "ftp://127.0.0.1/x", "HTTP://10.0.0.1/x"])
def test_keys_that_could_be_changed_on_their_way_are_refused(url: str) -> None:
    both = {"oauth_issuer": ISSUER, "oauth_audience": AUDIENCE}
    with pytest.raises(ConfigurationError, match="https or a file"):
        loaded(oauth_jwks=url, **both)
    assert loaded(oauth_jwks="https://login.example.com/jwks", **both)


def test_a_file_that_is_missing_or_wrong_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("{}")
    for name in ("missing.json", "wrong.json"):
        with (
            pytest.raises(ConfigurationError, match=name),
            secured_node(tmp_path / "a", **settings(tmp_path / name)),
        ):
            pass


def test_the_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jwks.json").write_bytes(jwks(KEY))
    monkeypatch.setitem(sys.modules, "joserfc", None)
    monkeypatch.delitem(sys.modules, "postroad.security.tokens", raising=False)
    monkeypatch.delattr("postroad.security.tokens", raising=False)
    with (
        pytest.raises(ConfigurationError, match=r"pip install 'postroad\[oauth\]'"),
        secured_node(tmp_path / "a", **settings(tmp_path / "jwks.json")),
    ):
        pass
