"""Users with passwords over HTTP: checked by the node, remembered for a minute, ended with the password."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from postroad.cluster.users import change_user
from postroad.gateway.dialects import DIALECTS
from postroad.gateway.security import following
from postroad.gateway.security.credentials import CHECKS_MAX, FRESH_S
from postroad.gateway.security.identities import LINES_A_SECOND
from postroad.security.master_key import GATEWAY_USER, NODE_USER, OPERATOR_USER, machine_password
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.security.sasl import FAILURE_S, SCRAM_SHA_256, SCRAM_SHA_512
from tests.broker.secured import PASSWORD, verifier
from tests.clients.wait import until
from tests.gateway.conftest import gateway_in_thread
from tests.gateway.security.asking import Outcome, basic, rest, send, signed
from tests.gateway.security.conftest import ADMIN, WORKER, House

TOPICS = "/v1/topics"


def ask(house: House, headers: dict[str, str], path: str = TOPICS) -> Outcome:
    status, found, text = send(house.url, "GET", path, None, headers)
    return Outcome(status, found.get("www-authenticate", ""), text)


def set_password(house: House, user: str, password: str, *mechanisms: str) -> None:
    put = {each: verifier(each, password) for each in mechanisms or (SCRAM_SHA_256, SCRAM_SHA_512)}
    house.node.run(house.node.node.topics.decide(partial(change_user, name=user, put=put, deleted=[])))
    house.settle()


def credentials(house: House) -> Any:
    return house.running.gateway.identities._credentials


def test_a_password_lets_its_user_in(house: House) -> None:
    assert ask(house, basic(WORKER)).status == 200


@pytest.mark.parametrize("user", [WORKER, "nobody", "postroad.node", "", "x" * 300, "a\0b", "User:admin"])
def test_a_wrong_password_is_answered_after_a_while_as_an_unknown_user_is(house: House, user: str) -> None:
    began = time.monotonic()
    refused = ask(house, basic(user, "wrong"))
    took_s = time.monotonic() - began
    assert refused.status == 401
    assert "Basic" in refused.code
    assert refused.text == ask(house, basic("somebody", "else")).text
    assert took_s >= FAILURE_S or not 0 < len(user) <= 256


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic",
        "Basic !!!",
        "Basic YQ==",
        "Basic //79/w==",
        "Bearer",
        "Bearer worker:x",
        "Digest a=b",
        "AWS4-X",
    ],
)
def test_what_is_no_password_is_refused(house: House, header: str) -> None:
    assert ask(house, {"Authorization": header}).status == 401
    assert ask(house, {"Authorization": header}, "/metrics").status == 401


def test_a_password_is_no_bearer_token(house: House) -> None:
    """What is in a user's name and password may be asked for by a page only as Basic."""
    assert ask(house, {"Authorization": f"Bearer {WORKER}:{PASSWORD}"}).status == 401


@pytest.mark.parametrize("machine", [NODE_USER, GATEWAY_USER, OPERATOR_USER])
def test_machines_do_not_come_by_http(house: House, machine: str) -> None:
    password = machine_password(house.node.node.security.master_key, machine)
    assert ask(house, basic(machine, password)).status == 401


def test_a_password_is_remembered_as_a_hash_for_a_minute(house: House) -> None:
    house.add_user("often")
    known = credentials(house)
    assert house.running.run(_known(known, "often")) is None
    assert ask(house, basic("often")).status == 200
    session = house.running.run(_known(known, "often"))
    assert session is not None
    assert ask(house, basic("often")).status == 200
    assert house.running.run(_known(known, "often")) is session  # no node was asked again
    assert PASSWORD not in repr(known._passwords._known)
    assert FRESH_S == 60


async def _known(known: Any, user: str) -> Any:
    return known.known_password(user, PASSWORD)


def test_another_password_ends_the_one_before_at_once(house: House) -> None:
    house.add_user("changing")
    assert ask(house, basic("changing")).status == 200
    set_password(house, "changing", "another")
    assert ask(house, basic("changing")).status == 401
    assert ask(house, basic("changing", "another")).status == 200


def test_one_more_access_key_ends_no_password(house: House) -> None:
    house.add_user("steady")
    assert ask(house, basic("steady")).status == 200
    before = house.running.run(_known(credentials(house), "steady"))
    house.add_key("steady")
    house.settle()
    assert house.running.run(_known(credentials(house), "steady")) is before


def test_a_user_who_is_deleted_is_not_let_in(house: House) -> None:
    house.add_user("leaving")
    assert ask(house, basic("leaving")).status == 200
    house.node.delete_user("leaving")
    house.settle()
    assert ask(house, basic("leaving")).status == 401
    house.node.add_user("leaving")  # the same password, but it was gone
    house.settle()
    assert ask(house, basic("leaving")).status == 200


def test_a_user_with_the_longer_mechanism_alone_is_let_in(house: House) -> None:
    set_password(house, "longer", PASSWORD, SCRAM_SHA_512)
    assert ask(house, basic("longer")).status == 200
    assert ask(house, basic("longer", "wrong")).status == 401


def test_names_and_passwords_may_have_any_letters(house: House) -> None:
    set_password(house, "jürgen, =müller", "pass:wörd=,")
    assert ask(house, basic("jürgen, =müller", "pass:wörd=,")).status == 200


def test_a_flood_of_wrong_passwords_is_bounded_and_hurts_no_others(house: House) -> None:
    house.add_user("calm")
    assert ask(house, basic("calm")).status == 200
    with ThreadPoolExecutor(CHECKS_MAX) as pool:
        wrong = [pool.submit(ask, house, basic("calm", f"guess {number}")) for number in range(CHECKS_MAX)]
        assert ask(house, basic("calm")).status == 200  # remembered
        statuses = {each.result().status for each in wrong}
    assert statuses <= {401, 503}
    assert not credentials(house)._checks
    assert ask(house, basic(WORKER)).status == 200


def test_logins_are_noted_and_a_flood_of_them_is_counted(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="postroad.audit")

    def noted() -> list[Any]:
        ask(house, basic(WORKER, "wrong\nagain"))
        lines = [json.loads(record.message) for record in caplog.records if record.name == "postroad.audit"]
        return [line for line in lines if line.get("principal") == f"User:{WORKER}"]

    first = until(noted, "a second begins in which few logins have failed")[0]  # other tests fail many
    assert first == {
        "event": "login failed", "peer": "127.0.0.1", "principal": f"User:{WORKER}", "mechanism": "Basic"
    }  # fmt: skip
    assert "wrong" not in caplog.text
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: ask(house, basic("somebody", str(number))), range(60)))
    many = [record for record in caplog.records if "somebody" in record.message]
    seconds = {int(record.created) for record in many}
    assert len(many) <= LINES_A_SECOND * (len(seconds) + 1)


def test_who_has_no_news_of_the_rules_lets_nobody_in(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(house, basic(WORKER)).status == 200
    with monkeypatch.context() as patched:
        patched.setattr(following, "STALE_S", -1.0)
        stale = ask(house, basic(WORKER))
        assert stale.status == 503
        key_id = house.keys[ADMIN]
        headers = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
        headers = signed(house.url, headers, "{}", key_id, house.secret(key_id))
        assert send(house.url, "POST", "/", "{}", headers)[0] == 503
    assert ask(house, basic(WORKER)).status == 200


@pytest.fixture(scope="module")
def with_keys(house: House) -> Iterator[str]:
    """The URL of a gateway that has access keys in its settings, too."""
    key = house.node.node.security.master_key
    keys = f"boss:secret:admin,{WORKER}:other"
    with gateway_in_thread(house.node.bootstrap, DIALECTS, master_key=key, access_keys=keys) as running:
        yield running.url


def test_an_admins_key_of_the_settings_may_do_everything(with_keys: str, name: str) -> None:
    for shown in ({"Authorization": "Bearer boss:secret"}, basic("boss", "secret")):
        assert send(with_keys, "GET", "/metrics", None, shown)[0] == 200
        status, _, text = send(with_keys, "GET", f"{TOPICS}?limit=1", None, shown)
        assert status == 200, text
    body = f'{{"QueueName": "{name}"}}'
    headers = {"X-Amz-Target": "AmazonSQS.CreateQueue", "Content-Type": "application/x-amz-json-1.0"}
    assert send(with_keys, "POST", "/", body, signed(with_keys, headers, body, "boss", "secret"))[0] == 200


def test_another_key_of_the_settings_is_the_user_called_so(house: House, with_keys: str, name: str) -> None:
    shown = {"Authorization": f"Bearer {WORKER}:other"}
    right = (Op.CREATE, Type.TOPIC, name)
    body, typed = f'{{"name": "{name}"}}', {"Content-Type": "application/json"}
    assert send(with_keys, "POST", TOPICS, body, shown | typed)[0] == 403
    house.allow(WORKER, right)

    def is_made() -> bool:
        return send(with_keys, "POST", TOPICS, body, shown | typed)[0] in (201, 409)

    until(is_made, "the other gateway has heard of it, too")
    house.disallow(WORKER, right)
    assert rest(house, ADMIN, "GET", f"{TOPICS}/{name}").status == 200
