"""Schemas that somebody made to keep a gateway busy: each is answered soon, whatever the answer is."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from postroad.errors import InvalidSchema
from postroad.schemas import schema

# Each of these took minutes or for ever; now a second on a machine that has nothing else to do.
PATIENCE_S = 120
MANY = 60_000
PROTO = 'syntax = "proto3";'


@pytest.fixture(autouse=True)
def _patience() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError(f"it takes more than {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def names(prefix: str, count: int = MANY) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def differences(kind: str, reader: Any, writer: Any) -> list[str]:
    ours, theirs = (each if isinstance(each, str) else json.dumps(each) for each in (reader, writer))
    return schema.differences(schema.parse(kind, ours), schema.parse(kind, theirs))


# --- Avro


def enum(*symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": symbols}


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    made = [{"name": each, "type": type_} for each, type_ in fields]
    return {"type": "record", "name": name, "fields": made}


def test_a_default_that_might_be_of_many_types_is_not_tried_with_all_of_them() -> None:
    value: Any = 1
    for _ in range(40):
        value = {"f": value}
    made = record("R", ("a", record("A", ("f", ["A", record("B", ("f", ["A", "B"]))]))), ("x", "A"))
    made["fields"][1]["default"] = value
    with pytest.raises(InvalidSchema, match="too complex"):
        schema.parse("AVRO", json.dumps(made))


def test_enums_of_many_symbols_are_compared() -> None:
    assert len(differences("AVRO", enum(*names("a")), enum(*names("b")))) == 1
    assert differences("AVRO", enum(*names("a")), enum(*names("a"))) == []


def test_records_of_many_fields_are_compared() -> None:
    ours, theirs = (record("R", *((name, "int") for name in names(each, 9_000))) for each in "ab")
    assert len(differences("AVRO", ours, theirs)) == 9_000


def test_a_long_chain_of_records_is_too_complex_and_no_fault_of_the_gateway() -> None:
    chain = [record("A0"), *(record(f"A{each}", ("p", f"A{each - 1}")) for each in range(1, 1000))]
    found = differences("AVRO", chain, chain)
    assert len(found) == 1
    assert "too complex" in found[0]


def test_unions_of_unions_are_compared_in_so_many_steps() -> None:
    spaces = [f"n{each}.X" for each in range(250)]
    records = [
        record(name, ("u", ["null", *spaces[:each]]), (f"f{each}", "int")) for each, name in enumerate(spaces)
    ]
    found = differences("AVRO", {"type": "map", "values": records}, {"type": "map", "values": records})
    assert "too complex" in found[0]


def test_an_endless_name_is_refused() -> None:
    for made in (record("a" * MANY), record("R", ("a" * MANY, "int"))):
        with pytest.raises(InvalidSchema, match="longer than 1000"):
            schema.parse("AVRO", json.dumps(made))


# --- JSON Schema


@pytest.mark.parametrize("keyword", ["enum", "required"])
def test_long_lists_are_compared(keyword: str) -> None:
    given = {keyword: names("a")}
    assert differences("JSON", given, given) == []
    assert differences("JSON", given, {keyword: names("b")}) != []


def test_values_that_json_knows_apart_are_known_apart() -> None:
    assert differences("JSON", {"enum": [True, "1"]}, {"enum": [1]}) != []
    ours, theirs = (
        {"type": ["number", "object"], "enum": each}
        for each in ([1, {"a": 1, "b": 2}], [1.0, {"b": 2, "a": 1}])
    )
    assert differences("JSON", ours, theirs) == []


def test_many_references_to_an_anchor_are_followed() -> None:
    schema.parse("JSON", json.dumps({"anyOf": [{"$ref": "#z"}] * 40_000, "$defs": {"x": {"$anchor": "z"}}}))


def test_long_ways_by_references_are_followed() -> None:
    steps = {f"a{each}": {"$anchor": f"a{each}", "$ref": f"#a{each + 1}"} for each in range(3000)}
    made = {"anyOf": [{"$ref": "#a0"}] * 3000, "$defs": {**steps, "end": {"$anchor": "a3000"}}}
    assert differences("JSON", made, {"type": "integer"}) == []


def test_wide_alternatives_are_compared_in_so_many_steps() -> None:
    wide = dict.fromkeys(names("k", 50_000), 0) | {"anyOf": [{"type": "string"}] * 15_000}
    found = differences("JSON", {"type": "string"}, wide)
    assert "too complex" in found[0]


@pytest.mark.parametrize("index", ["²", "9" * 5000])
def test_an_index_that_is_none_leads_nowhere(index: str) -> None:
    with pytest.raises(InvalidSchema, match="leads nowhere"):
        schema.parse("JSON", json.dumps({"$ref": f"#/anyOf/{index}", "anyOf": [True]}))


def test_what_a_reference_leads_to_is_checked_wherever_it_stands() -> None:
    with pytest.raises(InvalidSchema, match="properties must be an object"):
        schema.parse("JSON", json.dumps({"$ref": "#/example", "example": {"properties": 5}}))
    with pytest.raises(InvalidSchema, match="leads nowhere"):
        schema.parse("JSON", json.dumps({"$ref": "#/example", "example": {"$ref": "#nowhere"}}))


def test_numbers_that_can_not_be_divided_or_ordered() -> None:
    assert differences("JSON", '{"multipleOf": 1.5}', '{"multipleOf": 1%s}' % ("0" * 400)) != []
    with pytest.raises(InvalidSchema, match="exclusiveMinimum must be a number"):
        schema.parse("JSON", '{"exclusiveMinimum": "a"}')


# --- Protobuf


def oneofs(count: int, first: int = 1) -> str:
    inner = "".join(f"oneof o{each} {{ int32 a{each} = {each + first}; }}" for each in range(count))
    return f"{PROTO} message M {{ {inner} }}"


def test_messages_of_many_oneofs_are_written_and_compared() -> None:
    ours = oneofs(15_000)
    assert differences("PROTOBUF", ours, ours) == []
    assert len(differences("PROTOBUF", ours, oneofs(15_000, 20_001))) == 15_000


def test_many_reserved_numbers_and_names_are_looked_through() -> None:
    fields = "".join(f"int32 a{each} = {each + 1};" for each in range(15_000))
    for reserved in (", ".join(names("", MANY)[20_000:]), ", ".join(f'"{each}"' for each in names("x"))):
        schema.parse("PROTOBUF", f"{PROTO} message M {{ reserved {reserved}; {fields} }}")


@pytest.mark.parametrize("reserved", ["1 to 9, 3", "3, 1 to 9", "5 to 9, 1 to 3, 2 to 7", "4"])
def test_a_reserved_number_is_found_among_others(reserved: str) -> None:
    with pytest.raises(InvalidSchema, match="4 is reserved"):
        schema.parse("PROTOBUF", f"{PROTO} message M {{ reserved {reserved}; int32 a = 4; }}")


@pytest.mark.parametrize("package", [".".join("a" * 200_000), "a" * 400_000])
def test_an_endless_package_is_refused(package: str) -> None:
    inner = "".join(f"message {name} {{}}" for name in names("m", 20_000))
    with pytest.raises(InvalidSchema, match="longer than 1000"):
        schema.parse("PROTOBUF", f"{PROTO} package {package}; {inner}")


def test_numbers_without_end_are_refused() -> None:
    for inner in (f"message M {{ reserved {'1' * 5000}; }}", f"enum E {{ A = 0; B = {1 << 40}; }}"):
        with pytest.raises(InvalidSchema):
            schema.parse("PROTOBUF", f"{PROTO} {inner}")


def test_files_that_import_hundreds_share_what_they_know() -> None:
    """Each of them had a table of the types of all others."""
    files = {
        name: f"{PROTO} {''.join(f'message {name}x{each} {{}}' for each in range(100))}"
        for name in names("f", 900)
    }
    imports = "".join(f'import "{name}";' for name in files)
    known = schema.parse("PROTOBUF", f"{PROTO} {imports * 40} message M {{ f7x3 f = 1; }}", files).tree.known
    assert len(known) == 90_001
