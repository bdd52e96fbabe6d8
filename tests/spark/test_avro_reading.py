"""Avro messages that fastavro writes, read a column at a time; and bytes that nobody has written."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ConfigurationError
from postroad.schemas import avro
from postroad.spark import avro_reading
from postroad.spark.avro_reading import Unreadable
from postroad.spark.avro_types import arrow_type
from postroad.spark.lanes import Lanes, Messages

UTC = datetime.UTC


def record(*fields: Any, name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(writer: Any, messages: list[bytes], wanted: Any = None) -> tuple[list[Any], dict[int, str]]:
    node = avro_reading.reader(
        avro.parse(json.dumps(writer)), avro.parse(json.dumps(writer if wanted is None else wanted))
    )
    found = Messages(pa.array(messages, pa.binary()))
    lanes = Lanes(found, found.offsets[:-1].copy(), found.offsets[1:].copy(), np.arange(len(messages)))
    values = node(lanes)
    values.validate(full=True)
    assert values.type == arrow_type(avro.parse(json.dumps(writer if wanted is None else wanted)))
    assert (lanes.at <= lanes.end).all()
    return values.to_pylist(), found.bad


AT = datetime.datetime(2026, 3, 1, 12, 30, 15, 123000, tzinfo=UTC)
TYPES = [
    ("int", [0, -1, 2**31 - 1, -(2**31)]),
    ("long", [0, 63, 64, -64, -65, 2**63 - 1, -(2**63)]),
    ("boolean", [True, False]),
    ("double", [0.5, -1e300]),
    ("float", [0.5]),
    ("string", ["", "ü", "x" * 1000]),
    ("bytes", [b"", b"\xff\x00"]),
    ({"type": "fixed", "name": "F", "size": 20}, [bytes(range(20))]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A", "B"]),
    ({"type": "array", "items": "string"}, [[], ["a"], ["b", "", "c"] * 50]),
    ({"type": "array", "items": {"type": "array", "items": "int"}}, [[], [[1], [], [2, 3]], [[]]]),
    (["null", "string"], [None, "a"]),
    (["int", "null"], [None, 5]),
    (["int", "long"], [5, 2**40]),
    ("null", [None]),
    ({"type": "int", "logicalType": "date"}, [datetime.date(2026, 3, 1), datetime.date(1900, 1, 1)]),
    ({"type": "long", "logicalType": "timestamp-millis"}, [AT]),
    ({"type": "long", "logicalType": "timestamp-micros"}, [AT.replace(microsecond=1)]),
    ({"type": "long", "logicalType": "local-timestamp-millis"}, [AT.replace(tzinfo=None)]),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4},
        [decimal.Decimal(n).scaleb(-4) for n in (0, 1, -1, 128, -128, -129, 10**37, -(10**37))],
    ),
    (
        {"type": "fixed", "name": "D", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2},
        [decimal.Decimal("-1.25"), decimal.Decimal("9999999.99")],
    ),
]


@pytest.mark.parametrize(("type_", "values"), TYPES, ids=[json.dumps(row[0]) for row in TYPES])
def test_each_type_is_read_as_it_was_written(type_: Any, values: list[Any]) -> None:
    schema = record(("before", "long"), ("value", type_), ("after", "string"))
    rows = [{"before": -7, "value": value, "after": "z"} for value in values]
    assert read(schema, [written(schema, row) for row in rows]) == (rows, {})


def test_maps_unions_and_records_within_records() -> None:
    point = record(("x", "int"), ("tags", {"type": "map", "values": "long"}), name="Point")
    schema = record(("point", ["null", point]), ("any", ["null", "string", "int"]))
    rows = [
        {"point": None, "any": "a"},
        {"point": {"x": 1, "tags": {"a": 1, "b": 2}}, "any": 5},
        {"point": {"x": 2, "tags": {}}, "any": None},
    ]
    assert read(schema, [written(schema, row) for row in rows]) == (
        [
            {"point": None, "any": {"member0": "a", "member1": None}},
            {"point": {"x": 1, "tags": [("a", 1), ("b", 2)]}, "any": {"member0": None, "member1": 5}},
            {"point": {"x": 2, "tags": []}, "any": None},
        ],
        {},
    )


def test_an_older_message_is_read_by_a_newer_schema() -> None:
    old = record(
        ("gone", "string"), ("id", "int"), ("name", "string"), ("list", {"type": "array", "items": "int"})
    )
    new = {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "title", "aliases": ["name"], "type": ["null", "string"]},
            {"name": "id", "type": "long"},
            {"name": "list", "type": {"type": "array", "items": "double"}},
            {"name": "paid", "type": "boolean", "default": True},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 1000},
            {"name": "more", "type": record(("a", "int"), name="More"), "default": {"a": 3}},
            {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
             "default": "\u00ff"},
        ],
    }  # fmt: skip
    rows = [{"gone": "x" * n, "id": n, "name": f"n{n}", "list": [n] * n} for n in range(5)]
    found, bad = read(old, [written(old, row) for row in rows], new)
    assert bad == {}
    assert found[3] == {
        "title": "n3", "id": 3, "list": [3.0] * 3, "paid": True,
        "at": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "more": {"a": 3},
        "price": decimal.Decimal("-0.1"),
    }  # fmt: skip


def test_a_symbol_that_the_reader_does_not_have_is_its_default() -> None:
    old = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    new = {"type": "enum", "name": "E", "symbols": ["C", "A"], "default": "C"}
    assert read(old, [written(old, "A"), written(old, "B")], new) == (["A", "C"], {})


def test_schemas_that_do_not_fit_and_types_that_no_column_can_be_are_refused() -> None:
    with pytest.raises(Unreadable, match="long"):
        read("long", [], "int")
    tree = {"type": "record", "name": "T", "fields": [{"name": "t", "type": ["null", "T"]}]}
    with pytest.raises(ConfigurationError, match="contains itself"):
        arrow_type(avro.parse(json.dumps(tree)))
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 39}
    with pytest.raises(ConfigurationError, match="39"):
        arrow_type(avro.parse(json.dumps(wide)))


SMALL = record(("id", "long"), ("name", ["null", "string"]), ("list", {"type": "array", "items": "string"}))
GOOD = written(SMALL, {"id": 7, "name": "ü", "list": ["a", "b"]})
WRONG = {
    "nothing": b"",
    "cut short": GOOD[:-3],
    "no such branch": b"\x0e\x09",
    "a length below zero": b"\x0e\x02\x01",
    "longer than all": b"\x0e\x02\xfe\xff\xff\xff\x0f",
    "more elements than bytes": b"\x0e\x00\xfe\xff\xff\xff\x0f",
    "a number without end": b"\xff" * 40,
    "no UTF-8": b"\x0e\x02\x04\xff\xfe\x00",
    "the lowest number of elements": b"\x0e\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
}


@pytest.mark.parametrize("why", WRONG)
def test_a_bad_message_is_named_and_spoils_no_other(why: str) -> None:
    found, bad = read(SMALL, [GOOD, WRONG[why], GOOD])
    assert found[0] == found[2] == {"id": 7, "name": "ü", "list": ["a", "b"]}
    assert [*bad] == [1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_no_bytes_are_read_beyond_their_message(messages: list[bytes]) -> None:
    schema = record(
        ("a", ["null", "int", {"type": "array", "items": {"type": "map", "values": "bytes"}}]),
        ("b", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("c", {"type": "enum", "name": "E", "symbols": ["A"]}),
        ("d", {"type": "long", "logicalType": "timestamp-millis"}),
    )
    found, bad = read(schema, [*messages, *messages])
    for row, message in enumerate(messages):
        assert (row in bad) == (row + len(messages) in bad)
        assert row in bad or found[row] == found[row + len(messages)]
        if row not in bad:  # fastavro comes to the same
            theirs: Any = fastavro.schemaless_reader(io.BytesIO(message), fastavro.parse_schema(schema))
            assert theirs["c"] == found[row]["c"]


def test_many_rows_at_once_are_what_each_is_alone() -> None:
    random_ = random.Random(4)
    schema = record(
        ("id", "long"), ("text", ["null", "string"]), ("n", {"type": "array", "items": ["int", "string"]})
    )
    rows = [
        {
            "id": random_.randint(-(2**62), 2**62),
            "text": random_.choice([None, "ä" * random_.randint(0, 300)]),
            "n": [random_.choice([number, str(number)]) for number in range(random_.randint(0, 20))],
        }
        for _ in range(500)
    ]
    messages = [written(schema, row) for row in rows]
    together, bad = read(schema, messages)
    assert bad == {}
    assert together == [read(schema, [message])[0][0] for message in messages]
