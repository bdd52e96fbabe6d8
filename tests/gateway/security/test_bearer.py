"""Users over HTTP with tokens of a provider: whose they are is asked at a node, and for how long."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from postroad.gateway.dialects import DIALECTS
from postroad.gateway.push.stream import EXPIRED, TOKEN_EXPIRED
from postroad.gateway.security.sessions import Session
from postroad.security.master_key import GATEWAY_USER
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.security.sasl import FAILURE_S
from tests.broker.secured import secured_node
from tests.clients.wait import until
from tests.gateway.conftest import gateway_in_thread
from tests.gateway.security.asking import basic, rest, send
from tests.gateway.security.conftest import ADMIN, House
from tests.gateway.security.table import Place
from tests.gateway.security.test_streams import connect, frames_until_closed
from tests.identity_provider import claims, jwks, rsa_key, settings, token, unsigned

KEY = rsa_key("first")
TOPICS = "/v1/topics"


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway whose node believes a provider."""
    home = tmp_path_factory.mktemp("trusting")
    (home / "jwks.json").write_bytes(jwks(KEY))
    with secured_node(home / "data", **settings(home / "jwks.json")) as node:
        key = node.node.security.master_key
        with gateway_in_thread(node.bootstrap, DIALECTS, master_key=key) as running:
            house = House(node, running)
            house.add_user(ADMIN)
            house.settle()
            yield house


def status(house: House, shown: str, method: str = "GET", body: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {shown}", "Content-Type": "application/json"}
    return send(house.url, method, TOPICS, body, headers)[0]


def test_a_token_is_its_user_and_no_more(trusting: House) -> None:
    shown, body = token(KEY, says=claims("jo")), '{"name": "by-token"}'
    assert status(trusting, shown) == 200
    assert status(trusting, shown, "POST", body) == 403
    trusting.allow("jo", (Op.CREATE, Type.TOPIC, "by-token"))
    assert status(trusting, shown, "POST", body) == 201
    assert status(trusting, token(KEY, says=claims("other")), "POST", '{"name": "by-other"}') == 403


def test_sqs_takes_it_as_well(trusting: House) -> None:
    headers = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
    shown = headers | {"Authorization": f"Bearer {token(KEY)}"}
    assert send(trusting.url, "POST", "/", "{}", shown)[0] == 200
    shown = headers | {"Authorization": f"Bearer {unsigned({'alg': 'none'}, claims())}"}
    assert send(trusting.url, "POST", "/", "{}", shown)[0] == 403


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "nonsense",
        "é",
        "a" * 17_000,
        unsigned({"alg": "none"}, claims()),
        token(KEY, says=claims(aud="another")),
        token(KEY, says=claims(exp=1_500_000_000)),
        token(KEY, says=claims(GATEWAY_USER)),
        token(rsa_key("stranger"), kid="first"),
    ],
    ids=["empty", "nonsense", "letters", "long", "none", "audience", "expired", "machine", "stranger"],
)
def test_other_tokens_are_refused(trusting: House, shown: str) -> None:
    headers = {"Authorization": f"Bearer {shown}".encode().decode("latin-1")}
    assert send(trusting.url, "GET", TOPICS, None, headers)[0] == 401
    assert send(trusting.url, "GET", "/metrics", None, headers)[0] == 401


def test_a_refusal_comes_late(trusting: House) -> None:
    began = time.monotonic()
    assert status(trusting, token(KEY, says=claims(aud="another"))) == 401
    assert time.monotonic() - began >= FAILURE_S


def test_a_token_is_good_until_it_ends_however_lately_it_was_asked_for(trusting: House) -> None:
    """30 s are forgiven behind its end: so it has three left."""
    shown = token(KEY, says=claims("brief", exp=time.time() - 27))
    assert status(trusting, shown) == 200
    until(lambda: status(trusting, shown) == 401, "it has ended")


def test_a_stream_without_messages_ends_with_its_token(trusting: House) -> None:
    """Nothing comes, so no right is asked for; nobody tells of the end of a token."""
    place = Place(trusting, "quiet")
    place.make()
    for operation, type_ in ((Op.READ, Type.GROUP), (Op.READ, Type.TOPIC)):
        trusting.allow("watcher", (operation, type_, place.name))
    shown = token(KEY, says=claims("watcher", exp=time.time() - 25))  # 30 s are forgiven
    with connect(place, {"Authorization": f"Bearer {shown}"}) as socket:
        frames = frames_until_closed(socket)
    assert [json.loads(frame)["code"] for frame in frames] == [EXPIRED]
    assert (socket.close_code, socket.close_reason) == (EXPIRED, TOKEN_EXPIRED)


def test_a_session_of_a_token_ends_by_itself() -> None:
    assert not Session("a").has_ended
    assert not Session("a", lasts_s=60).has_ended
    assert Session("a", lasts_s=0).has_ended


def test_where_no_provider_is_believed_nodes_are_not_asked(house: House) -> None:
    """A node of before would end the gateway's connection at such a question."""
    following = house.running.gateway.identities.following
    assert following is not None
    assert not following.takes_tokens
    assert send(house.url, "GET", TOPICS, None, {"Authorization": f"Bearer {token(KEY)}"})[0] == 401
    assert rest(house, ADMIN, "GET", TOPICS).status == 200
    assert send(house.url, "GET", TOPICS, None, basic(ADMIN))[0] == 200
