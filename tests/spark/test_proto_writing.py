"""Protobuf messages written a column at a time are those that Google's library writes."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ConfigurationError, InvalidRecord
from postroad.schemas.schema import PROTOBUF, parse
from postroad.spark.proto_of_types import file_of, renumbered
from postroad.spark.proto_reading import MessageReader
from postroad.spark.proto_types import message_type
from postroad.spark.proto_writing import write
from tests.spark.test_proto_reading import ALL, READER, TEXT, classes, read

FILE = parse(PROTOBUF, TEXT).tree
KIND = message_type(FILE, "shop.All")
NUMBERS = {
    **dict.fromkeys("abi", st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys("dej", st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys("cg", st.integers(0, 2**32 - 1)),
    **dict.fromkeys("fh", st.integers(0, 2**64 - 1)),
}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
PARTS = st.fixed_dictionaries(
    {}, optional={"n": NUMBERS["a"], "m": st.lists(NUMBERS["a"], max_size=3)}
)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        **NUMBERS,
        "k": st.floats(allow_nan=False),
        "l": st.floats(width=32, allow_nan=False),
        "m": st.booleans(),
        "n": TEXTS,
        "o": st.binary(max_size=5),
        "p": st.sampled_from([0, 2, 7, -1]),
        "q": st.lists(NUMBERS["a"], max_size=3),
        "r": st.lists(TEXTS, max_size=3),
        "s": st.dictionaries(TEXTS, PARTS, max_size=1),
        "t": PARTS,
        "v": NUMBERS["a"],
        "x": NUMBERS["a"],
        "y": st.datetimes(datetime.datetime(1900, 1, 1), timezones=st.just(datetime.UTC)),
        "z": st.lists(PARTS, max_size=3),
        "zz": st.dictionaries(NUMBERS["a"], st.floats(allow_nan=False), max_size=1),
    },
)


def written(values: Any, file: Any = FILE, name: str = "shop.All") -> list[bytes]:
    found = write(file, name, values)
    ends = found.lengths.cumsum().tolist()
    data = found.data.tobytes()
    return [data[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def of(message: str, *fields: str) -> tuple[Any, str]:
    return parse(PROTOBUF, f'syntax = "{message}"; message M {{ {" ".join(fields)} }}').tree, "M"


@settings(max_examples=100, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=8), st.integers(0, 3))
def test_bytes_are_those_of_googles_library(messages: list[dict[str, Any]], skip: int) -> None:
    made = [ALL(**each).SerializeToString(deterministic=True) for each in messages]
    rows, bad = read(made, READER)
    assert bad == {}
    assert written(pa.array(rows, KIND).slice(skip)) == made[skip:]


def test_maps_of_several_entries_and_both_members_of_a_oneof() -> None:
    row = {each.name: None for each in KIND} | {"zz": [(1, 0.5), (-1, 0.0)], "q": None, "w": "x"}
    (data,) = written(pa.array([row], KIND))
    assert ALL.FromString(data) == ALL(zz={1: 0.5, -1: 0.0}, w="x")
    with pytest.raises(InvalidRecord, match="oneof u"):
        written(pa.array([row | {"v": 1}], KIND))


def test_proto2_writes_what_is_given_and_wants_what_is_required() -> None:
    file, name = of("proto2", "required int32 a = 1;", "optional int32 b = 2;", "repeated int32 c = 3;")
    kind = message_type(file, name)
    made = pa.array([{"a": 0, "b": None, "c": [1, 2]}], kind)
    assert written(made, file, name) == [b"\x08\x00\x18\x01\x18\x02"]
    with pytest.raises(InvalidRecord, match="Field a is null"):
        written(pa.array([{"a": None, "b": 1, "c": []}], kind), file, name)


WRONG: list[tuple[str, Any]] = [
    ("uint32 a = 1;", -1),
    ("fixed32 a = 1;", 2**32),
    ("uint64 a = 1;", decimal.Decimal(-1)),
    ("fixed64 a = 1;", decimal.Decimal(2**64)),
    ("repeated int32 a = 1;", [1, None]),
    ("map<string, int32> a = 1;", [("x", None)]),
    ("E a = 1; enum E { A = 0; }", "B"),
    ("E a = 1; enum E { A = 0; }", "99999999999"),
]


@pytest.mark.parametrize(("field", "value"), WRONG, ids=str)
def test_what_protobuf_does_not_have_is_an_error(field: str, value: Any) -> None:
    file, name = of("proto3", field)
    with pytest.raises(InvalidRecord):
        written(pa.array([{"a": value}], message_type(file, name)), file, name)


ROW = pa.struct(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("prices", pa.map_(pa.string(), pa.struct([("net", pa.float64())]))),
        ("Lines", pa.list_(pa.field("element", pa.struct([("n", pa.int32()), ("raw", pa.binary())])))),
        ("one", pa.struct([("ok", pa.bool_())])),
    ]
)


def test_schema_of_a_column_is_read_by_googles_library_and_ours() -> None:
    text = file_of(ROW, "Value")
    file = parse(PROTOBUF, text).tree
    at = datetime.datetime(2024, 5, 1, 0, 0, 0, 5, tzinfo=datetime.UTC)
    row = {
        "id": 0, "small": None, "at": at, "tags": ["a"],
        "prices": [("x", {"net": 0.5})], "Lines": [{"n": None, "raw": b"\xff"}], "one": {"ok": False},
    }  # fmt: skip
    data = written(pa.array([row], ROW).cast(message_type(file, "Value")), file, "Value")
    (message,) = [classes(text, "Value").FromString(each) for each in data]
    assert (message.id, message.HasField("id"), message.HasField("small")) == (0, True, False)
    assert (message.at.ToDatetime().microsecond, [*message.tags], message.prices["x"].net) == (5, ["a"], 0.5)
    assert read(data, MessageReader(file, "Value")) == ([row], {})


def test_types_without_a_protobuf_schema_are_refused() -> None:
    for kind, why in (
        (pa.date32(), "no Protobuf type"),
        (pa.list_(pa.list_(pa.int32())), "no Protobuf type"),
        (pa.map_(pa.date32(), pa.int32()), "no Protobuf type"),
        (pa.map_(pa.binary(), pa.int32()), "keys"),
    ):
        with pytest.raises(ConfigurationError, match=why):
            file_of(pa.struct([("a", kind)]), "Value")
    with pytest.raises(ConfigurationError, match="rename it"):
        file_of(pa.struct([("a b", pa.int32())]), "Value")


def test_column_that_takes_another_ones_number_is_found() -> None:
    def file(*names: str) -> Any:
        inner = pa.struct([(name, pa.string()) for name in names])
        return parse(PROTOBUF, file_of(pa.struct([("o", inner)]), "Value")).tree

    assert renumbered(file("a", "b"), file("a", "b", "c")) == ""
    assert renumbered(file("a", "b"), file("a")) == ""
    assert renumbered(file("a", "b"), file("a", "c", "b")) == "Value.O.c"
    assert renumbered(file("a", "b"), file("b")) == "Value.O.b"
