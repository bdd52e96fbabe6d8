"""Columns as Avro messages, which fastavro reads and our own reader too."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ConfigurationError, InvalidRecord
from postroad.schemas import avro
from postroad.schemas.schema import AVRO
from postroad.spark.avro_of_types import record_of
from postroad.spark.avro_types import arrow_type
from postroad.spark.schema_registry import RegisteredText
from postroad.spark.value_encoding import ValueEncoder
from tests.spark.test_avro_reading import TYPES, read, record


def written(schema: Any, values: Any) -> list[bytes | None]:
    batch = pa.RecordBatch.from_arrays([values, pa.array(range(len(values)))], ["value", "n"])
    (encoded,) = ValueEncoder(RegisteredText(258, AVRO, json.dumps(schema), ()), "").encode([batch])
    assert encoded.schema.names == ["value", "n"]
    found: list[bytes | None] = encoded.column("value").to_pylist()
    assert all(each is None or each[:5] == b"\0\0\0\1\2" for each in found)
    return [None if each is None else each[5:] for each in found]


@pytest.mark.parametrize(("type_", "values"), TYPES, ids=[json.dumps(row[0]) for row in TYPES])
def test_fastavro_and_our_own_reader_read_each_type(type_: Any, values: list[Any]) -> None:
    schema = record(("before", "long"), ("value", type_), ("after", "string"))
    kind = arrow_type(avro.parse(json.dumps(schema)))
    rows = [{"before": -7, "value": value, "after": "z"} for value in values]
    made = written(schema, pa.array([None, *rows, None], kind).slice(1))
    assert made[-1] is None
    messages = [each for each in made if each is not None]
    parsed = fastavro.parse_schema(schema)
    assert [fastavro.schemaless_reader(io.BytesIO(each), parsed) for each in messages] == rows
    assert read(schema, messages) == (rows, {})


KIND = pa.struct(
    [
        pa.field("id", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("list", pa.list_(pa.field("element", pa.struct([pa.field("x", pa.int32())])))),
        pa.field("map", pa.map_(pa.string(), pa.float64())),
        pa.field("price", pa.decimal128(12, 2)),
        pa.field("at", pa.timestamp("us", tz="UTC")),
    ]
)
TEXTS = st.text(max_size=5)
ITEMS = st.lists(st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(-9, 9)}), max_size=4)
NUMBERS = st.none() | st.floats(allow_nan=False)
ENTRIES = st.dictionaries(TEXTS, NUMBERS, max_size=3).map(lambda found: [*found.items()])
ROWS = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "text": st.none() | TEXTS,
        "list": st.none() | ITEMS,
        "map": st.none() | ENTRIES,
        "price": st.none() | st.decimals(-(10**9), 10**9, places=2),
        "at": st.none() | st.datetimes(datetime.datetime(1900, 1, 1), timezones=st.just(datetime.UTC)),
    }
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | ROWS, max_size=15), st.integers(0, 3))
def test_rows_of_any_shape_come_back_as_they_were(rows: list[Any], skip: int) -> None:
    schema = record_of(KIND, "Value")
    made = written(schema, pa.array(rows, KIND).slice(skip))
    there = [row for row in rows[skip:] if row is not None]
    assert [each is None for each in made] == [row is None for row in rows[skip:]]
    found, bad = read(schema, [each for each in made if each is not None])
    assert (found, bad) == (there, {})


def test_unions_of_several_types() -> None:
    schema = record(("u", ["null", "string", "int"]))
    kind = arrow_type(avro.parse(json.dumps(schema)))
    rows = [
        {"u": {"member0": "a", "member1": None}},
        {"u": None},
        {"u": {"member0": None, "member1": 5}},
    ]
    messages = [each for each in written(schema, pa.array(rows, kind)) if each is not None]
    parsed = fastavro.parse_schema(schema)
    found: list[Any] = [fastavro.schemaless_reader(io.BytesIO(each), parsed) for each in messages]
    assert [each["u"] for each in found] == ["a", None, 5]
    neither = pa.array([{"u": {"member0": None, "member1": None}}], kind)
    with pytest.raises(InvalidRecord, match="none of the types"):
        written(schema, neither)


WRONG: list[tuple[Any, Any]] = [
    ("long", None),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
    ({"type": "fixed", "name": "F", "size": 2}, b"abc"),
    (
        {"type": "fixed", "name": "D", "size": 1, "logicalType": "decimal", "precision": 9},
        decimal.Decimal(128),
    ),
]


@pytest.mark.parametrize(("type_", "value"), WRONG, ids=str)
def test_what_the_schema_does_not_allow_is_an_error(type_: Any, value: Any) -> None:
    schema = record(("value", type_))
    kind = arrow_type(avro.parse(json.dumps(schema)))
    with pytest.raises(InvalidRecord):
        written(schema, pa.array([{"value": value}], kind))


def test_types_without_an_avro_schema_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="rename it"):
        record_of(pa.struct([pa.field("a b", pa.int64())]), "Value")
    with pytest.raises(ConfigurationError, match="keys"):
        record_of(pa.struct([pa.field("a", pa.map_(pa.int32(), pa.int32()))]), "Value")
    with pytest.raises(ConfigurationError, match="no Avro type"):
        record_of(pa.struct([pa.field("a", pa.duration("us"))]), "Value")
