"""The registry's REST API: paths, codes and bodies as Confluent's clients know them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postroad.schemas.schema import BYTES_MAX
from tests.gateway.conftest import RunningGateway
from tests.gateway.schemas.conftest import REGISTRY_JSON, Asker


def order(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, *fields]}


NOTE = {"name": "note", "type": ["null", "string"], "default": None}
TOTAL = {"name": "total", "type": "double"}  # without a default: nobody reads older messages with it


def test_a_schema_is_registered_once_and_found_by_id_version_and_text(ask: Asker, name: str) -> None:
    first = ask.register(f"{name}-value", order())
    assert (first.status, first.media) == (200, REGISTRY_JSON)
    assert ask.register(f"{name}-value", json.dumps(order(), indent=2)).body == first.body
    second = ask.register(f"{name}-value", order(NOTE))
    assert second.body["id"] > first.body["id"]
    found = ask("GET", f"/schemas/ids/{first.body['id']}").body
    assert json.loads(found["schema"]) == order()
    assert "schemaType" not in found  # AVRO
    assert ask("GET", f"/subjects/{name}-value/versions").body == [1, 2]
    latest = ask("GET", f"/subjects/{name}-value/versions/latest").body
    assert (latest["subject"], latest["version"], latest["id"]) == (f"{name}-value", 2, second.body["id"])
    assert ask("GET", f"/subjects/{name}-value/versions/1/schema").body == order()
    assert ask("GET", f"/schemas/ids/{first.body['id']}/schema").body == order()
    looked_up = ask("POST", f"/subjects/{name}-value", {"schema": json.dumps(order(NOTE))}).body
    assert (looked_up["version"], looked_up["id"]) == (2, second.body["id"])
    elsewhere = ask.register(f"{name}-other", order())
    assert elsewhere.body["id"] == first.body["id"]
    assert ask("GET", f"/schemas/ids/{first.body['id']}/subjects").body == [f"{name}-other", f"{name}-value"]
    assert ask("GET", f"/schemas/ids/{first.body['id']}/versions").body == [
        {"subject": f"{name}-other", "version": 1},
        {"subject": f"{name}-value", "version": 1},
    ]
    assert {f"{name}-other", f"{name}-value"} <= {*ask("GET", "/subjects").body}
    assert ask("GET", f"/subjects?subjectPrefix={name}-o").body == [f"{name}-other"]
    assert ask("GET", "/schemas/types").body == ["JSON", "PROTOBUF", "AVRO"]


def test_errors_have_the_codes_that_clients_look_at(ask: Asker, name: str) -> None:
    ask.register(name, order())
    told = {
        "no subject": ask("GET", f"/subjects/{name}-x/versions"),
        "no version": ask("GET", f"/subjects/{name}/versions/7"),
        "no id": ask("GET", "/schemas/ids/2000000000"),
        "no number": ask("GET", "/schemas/ids/x"),
        "wrong version": ask("GET", f"/subjects/{name}/versions/0"),
        "not registered": ask("POST", f"/subjects/{name}", {"schema": '"string"'}),
        "no schema": ask.register(name, "{"),
        "no kind": ask.register(name, "x", "XML"),
        "incompatible": ask.register(name, order(TOTAL)),
        "not deleted first": ask("DELETE", f"/subjects/{name}?permanent=true"),
        "version not deleted first": ask("DELETE", f"/subjects/{name}/versions/1?permanent=true"),
        "no level": ask("GET", f"/config/{name}"),
        "wrong level": ask("PUT", f"/config/{name}", {"compatibility": "SOMEHOW"}),
        "no mode": ask("GET", f"/mode/{name}"),
        "wrong mode": ask("PUT", f"/mode/{name}", {"mode": "IMPORT"}),
        "import": ask.register(name, order(), id=7),
        "rules": ask.register(name, order(), ruleSet={"domainRules": []}),
        "nowhere": ask("GET", "/subjects/a/b/c"),
        "no method": ask("PUT", "/subjects"),
    }
    assert {why: reply.code for why, reply in told.items()} == {
        "no subject": 40401, "no version": 40402, "no id": 40403, "no number": 40403, "wrong version": 42202,
        "not registered": 40403, "no schema": 42201, "no kind": 42201, "incompatible": 409,
        "not deleted first": 40405, "version not deleted first": 40407, "no level": 40408,
        "wrong level": 42203, "no mode": 40409, "wrong mode": 42204, "import": 42205, "rules": 42201,
        "nowhere": 404, "no method": 405,
    }  # fmt: skip
    assert all(str(reply.code).startswith(str(reply.status)) for reply in told.values())
    assert all(reply.body["message"] and reply.media == REGISTRY_JSON for reply in told.values())


def test_deleted_is_hidden_and_then_gone(ask: Asker, name: str) -> None:
    own = {"name": name.replace("-", "_"), "type": "int"}  # which no other test has
    id_ = ask.register(name, order(own)).body["id"]
    ask.register(name, order(own, NOTE))
    assert ask("DELETE", f"/subjects/{name}/versions/1").body == 1
    assert ask("DELETE", f"/subjects/{name}/versions/1").code == 40406
    assert ask("GET", f"/subjects/{name}/versions").body == [2]
    assert ask("GET", f"/subjects/{name}/versions?deleted=true").body == [1, 2]
    assert ask("GET", f"/subjects/{name}/versions/1").code == 40402
    assert ask("GET", f"/subjects/{name}/versions/1?deleted=true").body["id"] == id_
    assert ask("GET", f"/schemas/ids/{id_}").status == 200
    assert ask("DELETE", f"/subjects/{name}").body == [2]
    assert ask("DELETE", f"/subjects/{name}").code == 40404
    assert name not in ask("GET", "/subjects").body
    assert ask("GET", f"/subjects?deletedOnly=true&subjectPrefix={name}").body == [name]
    assert ask("DELETE", f"/subjects/{name}?permanent=true").body == [1, 2]
    assert ask("GET", f"/schemas/ids/{id_}").code == 40403
    assert ask("DELETE", f"/subjects/{name}").code == 40401


def test_levels_say_what_may_follow(ask: Asker, name: str) -> None:
    path = f"/compatibility/subjects/{name}/versions"
    ask.register(name, order())
    refused = ask("POST", f"{path}/latest?verbose=true", {"schema": json.dumps(order(TOTAL))}).body
    assert refused["is_compatible"] is False
    assert "total" in refused["messages"][0]
    assert ask("POST", f"{path}/1", {"schema": json.dumps(order(NOTE))}).body["is_compatible"]
    assert ask("PUT", f"/config/{name}", {"compatibility": "forward"}).body == {"compatibility": "FORWARD"}
    assert ask("GET", f"/config/{name}").body == {"compatibilityLevel": "FORWARD"}
    assert ask.register(name, order(TOTAL)).status == 200
    assert ask.register(name, order()).status == 200  # it is there already
    ask("PUT", f"/config/{name}", {"compatibility": "FULL_TRANSITIVE"})
    assert ask("POST", path, {"schema": json.dumps(order(TOTAL, NOTE))}).body["is_compatible"] is False
    assert ask("POST", f"{path}/latest", {"schema": json.dumps(order(TOTAL, NOTE))}).body["is_compatible"]
    ask("PUT", f"/config/{name}", {"compatibility": "NONE"})
    assert ask.register(name, '"string"').status == 200
    assert ask("DELETE", f"/config/{name}").body == {"compatibilityLevel": "NONE"}
    assert ask("GET", f"/config/{name}?defaultToGlobal=true").body == ask("GET", "/config").body
    try:
        ask("PUT", "/config", {"compatibility": "NONE"})
        assert ask.register(name, '"int"').status == 200
    finally:
        assert ask("DELETE", "/config").body == {"compatibilityLevel": "BACKWARD"}


def test_nothing_is_registered_in_a_subject_that_is_read_only(ask: Asker, name: str) -> None:
    assert ask("PUT", f"/mode/{name}", {"mode": "READONLY"}).body == {"mode": "READONLY"}
    assert ask.register(name, order()).code == 42205
    assert ask("GET", f"/mode/{name}").body == {"mode": "READONLY"}
    assert ask("DELETE", f"/mode/{name}").body == {"mode": "READONLY"}
    assert ask.register(name, order()).status == 200
    assert ask("GET", "/mode").body == {"mode": "READWRITE"}


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF"])
def test_references_are_resolved_and_protect_what_they_lead_to(ask: Asker, name: str, kind: str) -> None:
    texts = {
        "AVRO": (
            json.dumps({"type": "enum", "name": "Colour", "symbols": ["RED"]}),
            json.dumps({"type": "record", "name": "W", "fields": [{"name": "c", "type": "Colour"}]}),
        ),
        "JSON": ('{"enum": ["red"]}', '{"properties": {"c": {"$ref": "Colour"}}}'),
        "PROTOBUF": (
            'syntax="proto3"; enum C { NONE = 0; }',
            'syntax="proto3"; import "Colour"; message W { C c = 1; }',
        ),
    }  # fmt: skip
    colour, wall = texts[kind]
    assert ask.register(f"{name}-wall", wall, kind).code == 42201
    assert ask.register(f"{name}-colour", colour, kind).status == 200
    reference = {"name": "Colour", "subject": f"{name}-colour", "version": 1}
    registered = ask.register(f"{name}-wall", wall, kind, references=[reference])
    assert registered.status == 200, registered.body
    found = ask("GET", f"/schemas/ids/{registered.body['id']}").body
    assert found["references"] == [reference]
    assert ask("GET", f"/subjects/{name}-colour/versions/1/referencedby").body == [registered.body["id"]]
    assert ask("DELETE", f"/subjects/{name}-colour").code == 42206
    missing = {**reference, "version": 2}
    assert ask.register(f"{name}-wall", wall, kind, references=[missing]).code == 42201


HOSTILE = {
    "no json": b"{",
    "not utf-8": b'{"schema": "\xff"}',
    "a surrogate": b'{"schema": "\\ud800"}',
    "no object": b"[]",
    "no schema": b"{}",
    "another type": b'{"schema": 7}',
    "deep": b'{"schema": ' + b"[" * 100_000,
    "deep within the schema": json.dumps({"schema": "[" * 100_000}).encode(),
    "too large": json.dumps({"schema": '"' + "x" * BYTES_MAX + '"'}).encode(),
    "a reference to nothing": json.dumps({"schemaType": "JSON", "schema": '{"$ref": "#/$defs/a"}'}).encode(),
    "a reference to no subject": json.dumps(
        {"schema": '"int"', "references": [{"name": "a", "subject": "self", "version": 1}]}
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("why", HOSTILE)
def test_hostile_bodies_are_refused_with_a_code(ask: Asker, name: str, why: str) -> None:
    for path in (f"/subjects/{name}/versions", f"/compatibility/subjects/{name}/versions"):
        reply = ask("POST", path, HOSTILE[why])
        assert (reply.status, reply.code) == (422, 42201), reply
        assert len(reply.body["message"]) < 1000
    assert name not in ask("GET", "/subjects").body


def test_media_types_and_odd_names(ask: Asker, name: str) -> None:
    assert ask("POST", f"/subjects/{name}", b"a=b", {"Content-Type": "text/html"}).code == 415
    assert ask("POST", f"/subjects/{name}", b"x" * 100, {"Content-Length": "99999999999"}).status == 413
    assert ask("GET", "/subjects", headers={"Accept": "application/json"}).media == "application/json"
    odd = f"{name}/with a ü%"
    assert ask.register(odd, order()).status == 200
    assert odd in ask("GET", "/subjects").body
    assert ask.register("%01", order()).status == 200  # as a name: it was quoted
    assert ask("POST", "/subjects/%01/versions", {"schema": '"int"'}).code == 42201
    assert ask("POST", "/subjects/" + "n" * 2000 + "/versions", {"schema": '"int"'}).code == 42201


def test_the_topic_is_kept_from_clients(gateway: RunningGateway, ask: Asker, name: str) -> None:
    """It can be read; nobody deletes, widens or configures it."""
    assert ask.register(name, order()).status == 200
    details = ask("GET", "/v1/topics/__schemas").body
    assert details["internal"]
    assert details["configs"]["cleanup.policy"] == "compact"
    json_ = {"Content-Type": "application/json"}
    for method, body in (
        ("DELETE", None),
        ("PATCH", {"partitions": 2}),
        ("PATCH", {"configs": {"retention.ms": "1"}}),
    ):
        assert ask(method, "/v1/topics/__schemas", body, json_ if body else None).status == 422
    assert ask("GET", f"/subjects/{name}/versions").body == [1]
    made = ask("POST", "/v1/topics", {"name": "__schemas", "partitions": 3}, json_)
    assert made.status in (409, 422)
