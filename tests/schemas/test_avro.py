"""Avro schemas: what is one, which are the same, and which can read which. fastavro says so too."""

from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest

from postroad.errors import InvalidSchema
from postroad.schemas import avro
from postroad.schemas.avro_compatibility import differences


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
TREE = record(field("left", ["null", "Tree"], default=None), field("value", "int"), name="Tree")

GOOD = [
    "string",
    {"type": "string"},
    ["null", "int"],
    record(),
    record(field("id", "long"), field("colour", COLOUR), field("again", "Colour")),
    TREE,
    {"type": "array", "items": {"type": "map", "values": "bytes"}},
    {"type": "fixed", "name": "shop.Id", "size": 16},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    record(field("at", {"type": "long", "logicalType": "timestamp-millis"}, default=0)),
]
BAD = [
    "Order",
    {"type": "record", "name": "Order"},
    {"type": "record", "fields": []},
    {"type": "array"},
    {"type": "enum", "name": "E"},
    {"type": "enum", "name": "E", "symbols": ["A", "A"]},
    {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
    {"type": "fixed", "name": "F"},
    {"type": "fixed", "name": "F", "size": -1},
    ["null", "null"],
    ["null", ["int"]],
    record(field("a", "int"), field("a", "int")),
    record(field("a-b", "int")),
    record(field("a", "int", default="x")),
    record(field("a", ["null", "int"], default="x")),
    record(field("c", COLOUR), field("d", COLOUR)),
    {"type": "bytes", "logicalType": "decimal", "precision": 1, "scale": 2},
    {"name": "x"},
    7,
    None,
]


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_schemas_that_avro_knows_are_read_and_their_canonical_form_is_one(given: Any) -> None:
    fastavro.parse_schema(given)
    form = avro.canonical(avro.parse(json.dumps(given)))
    fastavro.parse_schema(json.loads(form))
    assert avro.canonical(avro.parse(form)) == form


@pytest.mark.parametrize("given", BAD, ids=str)
def test_what_is_no_schema_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSchema):
        avro.parse(json.dumps(given))


@pytest.mark.parametrize("text", ["{", "", '{"type": "record"', "[" * 100_000, '"\ud800"', "no schema"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        avro.parse(text)


def test_a_schema_that_nests_too_deeply_is_refused() -> None:
    given: Any = "int"
    for _ in range(100):
        given = {"type": "array", "items": given}
    with pytest.raises(InvalidSchema, match="deeper"):
        avro.parse(json.dumps(given))


def test_writing_a_schema_in_another_way_makes_no_other_schema() -> None:
    one = '{"type":"record","namespace":"shop","name":"Order","fields":[{"name":"id","type":"long"}]}'
    other = """{ "fields": [ {"type": {"type": "long"}, "name": "id"} ],
                 "name": "shop.Order", "type": "record" }"""
    assert avro.canonical(avro.parse(one)) == avro.canonical(avro.parse(other))
    changed = one.replace('"type":"long"', '"type":"long","default":1')
    assert avro.canonical(avro.parse(one)) != avro.canonical(avro.parse(changed))


def test_a_referenced_type_is_known_by_its_name() -> None:
    found = avro.parse(json.dumps(record(field("c", "Colour"))), [json.dumps(COLOUR)])
    assert isinstance(found, avro.RecordType)
    assert isinstance(found.fields[0].type, avro.EnumType)
    with pytest.raises(InvalidSchema, match="Colour"):
        avro.parse(json.dumps(record(field("c", "Colour"))))


READABLE = [
    ("a field with a default is added", record(field("a", "int", default=1)), record()),
    ("a field is removed", record(), record(field("a", "int"))),
    ("int becomes long", record(field("a", "long")), record(field("a", "int"))),
    ("string becomes bytes", "bytes", "string"),
    ("a type becomes one of a union", ["null", "int"], "int"),
    ("a union is narrowed to what was written", "long", ["int", "long"]),
    ("a field is found by its alias", record(field("b", "int", aliases=["a"])), record(field("a", "int"))),
    ("a symbol is added", {**COLOUR, "symbols": ["RED", "BLUE", "GREEN"]}, COLOUR),
    ("a symbol is removed, with a default", {**COLOUR, "symbols": ["RED"], "default": "RED"}, COLOUR),
    ("a recursive type", TREE, TREE),
    ("the namespace is another one", {**record(), "namespace": "b"}, {**record(), "namespace": "a"}),
    ("arrays of what can be read", {"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
]
UNREADABLE = [
    ("a field without a default is added", record(field("a", "int")), record()),
    ("long becomes int", record(field("a", "int")), record(field("a", "long"))),
    ("another type", "int", "string"),
    ("a union loses a type", ["null", "int"], ["null", "int", "string"]),
    ("null is not allowed any more", "int", ["null", "int"]),
    ("a symbol is removed", {**COLOUR, "symbols": ["RED"]}, COLOUR),
    ("another name", record(name="Bill"), record()),
    ("another size", {"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}),
    ("maps of something else", {"type": "map", "values": "int"}, {"type": "map", "values": "string"}),
    ("deep within", record(field("t", ["null", TREE])), record(field("t", ["null", record(name="Leaf")]))),
]


@pytest.mark.parametrize(("why", "reader", "writer"), READABLE, ids=[row[0] for row in READABLE])
def test_a_reader_reads_what_avro_lets_it_read(why: str, reader: Any, writer: Any) -> None:
    assert differences(avro.parse(json.dumps(reader)), avro.parse(json.dumps(writer))) == []


@pytest.mark.parametrize(("why", "reader", "writer"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_a_reader_that_cannot_read_is_told_why(why: str, reader: Any, writer: Any) -> None:
    assert differences(avro.parse(json.dumps(reader)), avro.parse(json.dumps(writer)))


def test_types_that_name_each_other_over_and_over_are_compared_in_time() -> None:
    """Each level names the one below it three times: 3^20 ways, and 20 types."""

    def nested(extra: str) -> str:
        made = record(field("end", "int"), name=f"T0{extra}")
        for level in range(1, 20):
            below = f"T{level - 1}{extra}"
            fields = [field("a", ["null", made]), field("b", ["null", below]), field("c", below)]
            made = record(*fields, name=f"T{level}{extra}")
        return json.dumps(made)

    found = avro.parse(nested(""))
    assert differences(found, avro.parse(nested(""))) == []
    assert differences(found, avro.parse(nested("x")))
