"""Columns as JSON documents that a schema allows."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from postroad.errors import ConfigurationError, InvalidRecord
from postroad.schemas import json_schema
from postroad.spark.json_of_types import document_of
from postroad.spark.json_schema_types import arrow_type_of, shape_of
from postroad.spark.json_writing import texts

KIND = pa.struct(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("prices", pa.map_(pa.string(), pa.float64())),
        ("inner", pa.struct([("ok", pa.bool_())])),
    ]
)


def documents(schema: Any, *rows: Any) -> list[Any]:
    parsed = json_schema.parse(json.dumps(schema))
    values = pa.array(rows, arrow_type_of(parsed))
    return [json.loads(each) for each in texts(values, shape_of(parsed))]


def test_schema_of_a_column_has_its_types_and_takes_its_rows() -> None:
    schema = document_of(KIND, "Value")
    assert arrow_type_of(json_schema.parse(json.dumps(schema))) == KIND
    row = {
        "id": 1, "at": datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC),
        "day": datetime.date(2024, 5, 1), "tags": ["a", None], "prices": [("x", 0.5), ("y", None)],
        "inner": {"ok": None},
    }  # fmt: skip
    assert documents(schema, row, dict.fromkeys(row)) == [
        {
            "id": 1, "at": "2024-05-01T12:00:00.000000Z", "day": "2024-05-01", "tags": ["a", None],
            "prices": {"x": 0.5, "y": None}, "inner": {},
        },
        {},
    ]  # fmt: skip


def test_null_is_written_left_out_or_refused_as_the_schema_says() -> None:
    text, null = {"type": "string"}, {"type": "null"}
    properties = {
        "a": text, "b": {"oneOf": [null, text]}, "c": {"type": ["string", "null"]},
        "d": {"$ref": "#/definitions/D"}, "e": {"enum": ["x"]}, "f": {"type": "array", "items": text},
    }  # fmt: skip
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "definitions": {"D": {"anyOf": [text, null]}},
    }  # fmt: skip
    nothing = dict.fromkeys("abcdef")
    assert documents(schema, nothing) == [{"b": None, "c": None, "d": None}]
    with pytest.raises(InvalidRecord, match="Field a is null"):
        documents(schema | {"required": ["a", "b"]}, nothing)
    with pytest.raises(InvalidRecord, match="An element is null"):
        documents(schema, nothing | {"f": ["x", None]})


def test_numbers_that_json_does_not_have_are_refused_where_there_is_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number"}}}
    with pytest.raises(InvalidRecord, match="NaN"):
        documents(schema, {"a": float("nan")})


def test_without_a_schema_everything_is_written() -> None:
    values = pa.array([[0.5, float("nan"), float("-inf"), None], None], pa.list_(pa.float64()))
    assert texts(values) == [b'[0.5,"NaN","-Infinity",null]', b"null"]
    price = pa.array([decimal.Decimal("12345678901234567890.10")], pa.decimal128(30, 2))
    assert texts(price) == [b"12345678901234567890.10"]
    maps = pa.array([[(1, b"\xff")], []], pa.map_(pa.int32(), pa.binary()))
    assert texts(maps.slice(1)) == [b"{}"]
    assert texts(maps) == [b'{"1":"/w=="}', b"{}"]
    far = pa.array([2**62, -(2**62)], pa.int64()).view(pa.timestamp("us", tz="UTC"))
    assert [text[-2:-1] for text in texts(far)] == [b"Z", b"Z"], "no datetime of Python has such times"


def test_types_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="base64"):
        document_of(pa.struct([("a", pa.binary())]), "Value")
    with pytest.raises(ConfigurationError, match="keys"):
        document_of(pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), "Value")
