"""JSON Schemas: what is one, which are the same, and which allow less than an earlier one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from postroad.errors import InvalidSchema
from postroad.schemas import json_schema
from postroad.schemas.json_compatibility import differences

CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
OPEN = {"type": "object", "properties": {"a": {"type": "integer"}}}
TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "value": {"$ref": "#/$defs/v"}},
        "$defs": {"v": {"type": "number"}}}  # fmt: skip


def with_property(schema: dict[str, Any], name: str, value: Any, **more: Any) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], name: value}, **more}


def parsed(given: Any, **references: Any) -> json_schema.JsonSchema:
    return json_schema.parse(json.dumps(given), {name: json.dumps(each) for name, each in references.items()})


@pytest.mark.parametrize("given", [True, {}, CLOSED, OPEN, TREE, {"enum": [1, "a"]}], ids=str)
def test_schemas_are_read(given: Any) -> None:
    jsonschema.validators.Draft202012Validator.check_schema(given)
    assert json.loads(json_schema.canonical(parsed(given))) == given


BAD = [
    7, [], None, {"type": "text"}, {"type": 1}, {"properties": []}, {"properties": {"a": 1}},
    {"required": "a"}, {"required": [1]}, {"minLength": -1}, {"maximum": "1"}, {"allOf": {}}, {"pattern": 1},
    {"$ref": "#/nowhere"}, {"$ref": "other.json"}, {"items": 1}, {"enum": 1},
]  # fmt: skip


@pytest.mark.parametrize("given", BAD, ids=str)
def test_what_is_no_schema_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSchema):
        parsed(given)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"not": ' * 100 + "{}" + "}" * 100])
def test_broken_and_deep_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        json_schema.parse(text)


def test_the_order_of_members_makes_no_other_schema() -> None:
    assert json_schema.canonical(json_schema.parse('{"type": "object", "title": "t"}')) == (
        json_schema.canonical(json_schema.parse('{ "title":"t","type":"object" }'))
    )


FITS = [
    ("the same", OPEN, OPEN),
    ("everything is valid", True, OPEN),
    ("integer becomes number", {"type": "number"}, {"type": "integer"}),
    ("a type is added", {"type": ["string", "null"]}, {"type": "string"}),
    ("a value is added", {"enum": ["a", "b"]}, {"enum": ["a"]}),
    ("a property is added to a closed model", with_property(CLOSED, "b", {"type": "string"}), CLOSED),
    ("a property of any type is added to an open model", with_property(OPEN, "b", {}), OPEN),
    ("a property is removed from an open model", OPEN, with_property(OPEN, "b", {"type": "string"})),
    ("a bound is lowered", {"minimum": 1}, {"minimum": 2}),
    ("one is not required any more", OPEN, {**OPEN, "required": ["a"]}),
    ("one of several", {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}),
    ("one more alternative", {"oneOf": [{"type": "string"}, {"enum": [1]}]}, {"oneOf": [{"enum": [1]}]}),
    ("a schema in parts", {"type": "string"}, {"allOf": [{"type": "string"}, {"minLength": 1}]}),
    ("a recursive schema", TREE, TREE),
    ("a closed model is opened", OPEN, CLOSED),
    ("items of more types", {"items": {"type": "number"}}, {"items": {"type": "integer"}}),
]  # fmt: skip
BREAKS = [
    ("nothing is valid", False, OPEN),
    ("number becomes integer", {"type": "integer"}, {"type": "number"}),
    ("a type is taken away", {"type": "string"}, {"type": ["string", "null"]}),
    ("a value is taken away", {"enum": ["a"]}, {"enum": ["a", "b"]}),
    ("a property is added to an open model", with_property(OPEN, "b", {"type": "string"}), OPEN),
    ("a property is removed from a closed model", CLOSED, with_property(CLOSED, "b", {"type": "string"})),
    ("a property has another type", with_property(OPEN, "a", {"type": "string"}), OPEN),
    ("one becomes required", {**OPEN, "required": ["a"]}, OPEN),
    ("a bound is raised", {"minimum": 2}, {"minimum": 1}),
    ("a bound is added", {"type": "string", "maxLength": 3}, {"type": "string"}),
    ("a pattern is added", {"pattern": "a"}, {}),
    ("an alternative is taken away", {"oneOf": [{"type": "null"}]}, {"oneOf": [{"type": "string"}]}),
    ("an open model is closed", CLOSED, OPEN),
    ("items of another type", {"items": {"type": "string"}}, {"items": {"type": "integer"}}),
    ("something that is not understood", {"not": {"type": "string"}}, {}),
    ("deep in a recursion", TREE, {**TREE, "$defs": {"v": {"type": "string"}}}),
]


@pytest.mark.parametrize(("why", "reader", "writer"), FITS, ids=[row[0] for row in FITS])
def test_a_schema_that_allows_more_is_compatible(why: str, reader: Any, writer: Any) -> None:
    assert differences(parsed(reader), parsed(writer)) == []


@pytest.mark.parametrize(("why", "reader", "writer"), BREAKS, ids=[row[0] for row in BREAKS])
def test_a_schema_that_allows_less_is_not_and_says_why(why: str, reader: Any, writer: Any) -> None:
    assert differences(parsed(reader), parsed(writer))


def test_references_are_followed_into_other_documents() -> None:
    colour = {"$id": "colour.json", "enum": ["red"]}
    reader = parsed({"properties": {"c": {"$ref": "colour.json"}}}, **{"colour.json": colour})
    writer = parsed({"properties": {"c": {"enum": ["red", "blue"]}}})
    assert any("enum" in reason for reason in differences(reader, writer))
    assert differences(writer, reader) == []


def test_circles_end() -> None:
    for circle in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}):
        found = parsed(circle)
        differences(found, found)
        differences(parsed(OPEN), found)
        differences(found, parsed(OPEN))
