"""Every endpoint of the schema registry, asked by nobody, by a user without rights, and by one who has what
the table says. Rights to a subject are rights to its topic."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

import pytest

from postroad.gateway.schemas.endpoints import ENDPOINTS
from postroad.gateway.schemas.serving import topic_of
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from tests.gateway.security.asking import Outcome, rest
from tests.gateway.security.conftest import ADMIN, STRANGER, WORKER, House, Right

CLUSTER: Final = "kafka-cluster"
SCHEMA: Final = {"schema": '"string"'}
PUBLIC: Final = {"GET /schemas/types", "GET /contexts"}


def topic(operation: Op) -> Right:
    return operation, Type.TOPIC, "n"


def cluster(operation: Op) -> Right:
    return operation, Type.CLUSTER, CLUSTER


class Case(NamedTuple):
    """`{n}-value` is a subject with two versions, the first of which is deleted; `{id}` the second one's."""

    name: str
    right: Right
    body: Any = None
    denial: int = 40301

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("GET /subjects/{n}/versions", topic(Op.DESCRIBE)),
    Case("POST /subjects/{n}/versions", topic(Op.WRITE), SCHEMA),
    Case("POST /subjects/{n}", topic(Op.DESCRIBE), SCHEMA),
    Case("GET /subjects/{n}/versions/latest", topic(Op.READ)),
    Case("GET /subjects/{n}/versions/2/schema", topic(Op.DESCRIBE)),
    Case("GET /subjects/{n}/versions/2/referencedby", topic(Op.DESCRIBE)),
    Case("DELETE /subjects/{n}/versions/2", topic(Op.DELETE)),
    Case("DELETE /subjects/{n}", topic(Op.DELETE)),
    Case("GET /schemas/ids/{id}", topic(Op.READ), denial=40403),
    Case("GET /schemas/ids/{id}/schema", topic(Op.DESCRIBE), denial=40403),
    Case("GET /schemas/ids/{id}/subjects", topic(Op.WRITE), denial=40403),
    Case("GET /schemas/ids/{id}/versions", topic(Op.DESCRIBE), denial=40403),
    Case("POST /compatibility/subjects/{n}/versions", topic(Op.DESCRIBE), SCHEMA),
    Case("POST /compatibility/subjects/{n}/versions/2", topic(Op.DESCRIBE), SCHEMA),
    Case("GET /config", cluster(Op.DESCRIBE_CONFIGS)),
    Case("PUT /config", cluster(Op.ALTER_CONFIGS), {"compatibility": "BACKWARD"}),
    Case("DELETE /config", cluster(Op.ALTER_CONFIGS)),
    Case("GET /config/{n}", topic(Op.DESCRIBE_CONFIGS)),
    Case("PUT /config/{n}", topic(Op.ALTER_CONFIGS), {"compatibility": "FULL"}),
    Case("DELETE /config/{n}", topic(Op.ALTER_CONFIGS)),
    Case("GET /mode", cluster(Op.DESCRIBE_CONFIGS)),
    Case("PUT /mode", cluster(Op.ALTER_CONFIGS), {"mode": "READWRITE"}),
    Case("GET /mode/{n}", topic(Op.DESCRIBE_CONFIGS)),
    Case("PUT /mode/{n}", topic(Op.ALTER_CONFIGS), {"mode": "READWRITE"}),
    Case("DELETE /mode/{n}", topic(Op.ALTER_CONFIGS)),
]


def ask(house: House, user: str | None, method: str, path: str, body: Any = None) -> Outcome:
    return rest(house, user, method, path, body)


def code_of(reply: Outcome) -> int:
    found: int = reply.content["error_code"]
    return found


@pytest.fixture
def subject_id(house: House, name: str) -> int:
    """The id of the version that is left."""
    for version in (1, 2):
        text = json.dumps({"type": "fixed", "name": name.replace("-", "_"), "size": version})
        ask(house, ADMIN, "PUT", f"/config/{name}-value", {"compatibility": "NONE"})
        made = ask(house, ADMIN, "POST", f"/subjects/{name}-value/versions", {"schema": text})
        assert made.status == 200, made
    ask(house, ADMIN, "PUT", f"/mode/{name}-value", {"mode": "READWRITE"})
    ask(house, ADMIN, "DELETE", f"/subjects/{name}-value/versions/1")
    found: int = made.content["id"]
    return found


def test_every_endpoint_is_asked_here() -> None:
    shapes = (
        {re.sub(r"\{\w+\}|latest|\b\d+\b", "*", case.name) for case in CASES} | PUBLIC | {"GET /subjects"}
    )
    for endpoint in ENDPOINTS:
        assert endpoint.rights.is_declared
        assert re.sub(r"\{\w+\}", "*", f"{endpoint.method} {endpoint.path}") in shapes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_is_refused_without_its_right_and_done_with_it(
    house: House, name: str, subject_id: int, case: Case
) -> None:
    method, path = case.name.split(" ")
    if case.name == "POST /subjects/{n}":
        text = json.dumps({"type": "fixed", "name": name.replace("-", "_"), "size": 2})
        case = case._replace(body={"schema": text})
    here = path.replace("{n}", f"{name}-value").replace("{id}", str(subject_id))
    nobody = ask(house, None, method, here, case.body)
    assert (nobody.status, code_of(nobody)) == (401, 401)
    stranger = ask(house, STRANGER, method, here, case.body)
    assert code_of(stranger) == case.denial, stranger
    elsewhere = path.replace("{n}", f"{name}-value-x").replace("{id}", "999999")
    assert code_of(ask(house, STRANGER, method, elsewhere, case.body)) == case.denial
    operation, type_, resource = case.right
    right = operation, type_, name if resource == "n" else resource
    house.allow(WORKER, right)
    done = ask(house, WORKER, method, here, case.body)
    house.disallow(WORKER, right)
    assert done.status == 200, done


def test_subjects_are_listed_for_who_may_describe_their_topics(
    house: House, name: str, subject_id: int
) -> None:
    assert subject_id
    for user in (STRANGER, WORKER):
        assert f"{name}-value" not in ask(house, user, "GET", "/subjects").content
    house.allow(WORKER, (Op.READ, Type.TOPIC, name))
    assert f"{name}-value" in ask(house, WORKER, "GET", "/subjects").content
    house.disallow(WORKER, (Op.READ, Type.TOPIC, name))
    assert f"{name}-value" in ask(house, ADMIN, "GET", "/subjects").content


@pytest.mark.parametrize("path", [path.partition(" ")[2] for path in sorted(PUBLIC)])
def test_what_shows_nothing_is_shown_to_every_user(house: House, path: str) -> None:
    assert ask(house, STRANGER, "GET", path).status == 200
    assert ask(house, None, "GET", path).status == 401


@pytest.mark.parametrize(
    ("subject", "topic_name"),
    [("a-value", "a"), ("a-key", "a"), ("a", "a"), ("-value", "-value"), ("a-value-key", "a-value")],
)
def test_the_topic_of_a_subject(subject: str, topic_name: str) -> None:
    assert topic_of(subject) == topic_name
