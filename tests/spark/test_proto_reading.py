"""Protobuf messages that Google's library writes, read a column at a time; and bytes that nobody wrote."""

from __future__ import annotations

import base64
import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ConfigurationError
from postroad.schemas import schema
from postroad.schemas.schema import PROTOBUF, parse
from postroad.spark.lanes import Lanes, Messages
from postroad.spark.proto_reading import MessageReader
from postroad.spark.proto_types import message_type

TEXT = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto";
message All {
  int32 a = 1; sint32 b = 2; uint32 c = 3; int64 d = 4; sint64 e = 5; uint64 f = 6;
  fixed32 g = 7; fixed64 h = 8; sfixed32 i = 9; sfixed64 j = 10; double k = 11; float l = 12;
  bool m = 13; string n = 14; bytes o = 15; Kind p = 16;
  repeated int32 q = 17; repeated string r = 18; map<string, Part> s = 19; Part t = 20;
  oneof u { int32 v = 21; string w = 22; } optional int32 x = 23; google.protobuf.Timestamp y = 24;
  repeated Part z = 25; map<int32, double> zz = 26;
  message Part { int32 n = 1; repeated sint64 m = 2 [packed = false]; }
  enum Kind { NONE = 0; BOOK = 2; }
}
"""
EMPTY: dict[str, Any] = {
    **dict.fromkeys("abcdegij", 0), "f": decimal.Decimal(0), "h": decimal.Decimal(0), "k": 0.0, "l": 0.0,
    "m": False, "n": "", "o": b"", "p": "NONE", "q": [], "r": [], "s": [], "t": None, "v": None, "w": None,
    "x": None, "y": None, "z": [], "zz": [],
}  # fmt: skip


def classes(text: str, name: str) -> Any:
    """Google's class of the message."""
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    data = base64.b64decode(schema.serialized(parse(PROTOBUF, text), "all.proto"))
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(data))
    return GetMessageClass(pool.FindMessageTypeByName(name))


ALL = classes(TEXT, "shop.All")
READER = MessageReader(parse(PROTOBUF, TEXT).tree, "shop.All")


def read(messages: list[bytes], reader: MessageReader = READER) -> tuple[list[Any], dict[int, str]]:
    found = Messages(pa.array(messages, pa.binary()))
    lanes = Lanes(found, found.offsets[:-1].copy(), found.offsets[1:].copy(), np.arange(len(messages)))
    values = reader(lanes)
    values.validate(full=True)
    assert values.type == reader.kind
    assert (lanes.at == lanes.end).all()
    return values.to_pylist(), found.bad


def test_what_is_not_there_is_its_default_or_null() -> None:
    assert read([ALL().SerializeToString()] * 2) == ([EMPTY, EMPTY], {})


def test_every_type_is_read_as_it_was_written() -> None:
    low = ALL(
        a=-1, b=-5, c=2**32 - 1, d=-(2**63), e=-(2**63), f=2**64 - 1, g=2**32 - 1, h=2**64 - 1, i=-1, j=-1,
        k=0.5, l=0.5, m=True, n="ü", o=b"\xff", p=2, q=[1, -1, 300], r=["a", ""], v=0, x=0, zz={1: 0.5},
    )  # fmt: skip
    low.s["one"].n = 1
    low.s["two"].m.extend([1, -1])
    low.t.n = 7
    low.y.FromDatetime(datetime.datetime(2026, 3, 1, 12, 0, 0, 5))
    low.z.add(n=1)
    low.z.add(m=[2])
    other = ALL(w="x", p=9, q=[5])
    (first, empty, second), bad = read([low.SerializeToString(), b"", other.SerializeToString()])
    assert bad == {}
    assert empty == EMPTY
    assert second == {**EMPTY, "w": "x", "p": "9", "q": [5]}
    maps = {"s": sorted(first.pop("s"), key=str), "zz": first.pop("zz")}
    assert maps == {"s": [("one", {"n": 1, "m": []}), ("two", {"n": 0, "m": [1, -1]})], "zz": [(1, 0.5)]}
    assert first == {
        "a": -1, "b": -5, "c": 2**32 - 1, "d": -(2**63), "e": -(2**63), "f": decimal.Decimal(2**64 - 1),
        "g": 2**32 - 1, "h": decimal.Decimal(2**64 - 1), "i": -1, "j": -1, "k": 0.5, "l": 0.5, "m": True,
        "n": "ü", "o": b"\xff", "p": "BOOK", "q": [1, -1, 300], "r": ["a", ""],
        "t": {"n": 7, "m": []}, "v": 0, "w": None,
        "x": 0, "y": datetime.datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=datetime.UTC),
        "z": [{"n": 1, "m": []}, {"n": 0, "m": [2]}],
    }  # fmt: skip


def test_the_last_of_a_field_counts_and_unknown_fields_are_passed_over() -> None:
    newer = classes(
        TEXT.replace("int32 a = 1;", "int32 a = 1; string new = 100; Part more = 101;"), "shop.All"
    )
    message = newer(a=2, new="x" * 200, q=[1]).SerializeToString()
    (row,), bad = read([ALL(a=1, q=[7]).SerializeToString() + message])
    assert (row["a"], row["q"], bad) == (2, [7, 1], {})
    twice = b"\x9a\x01\x05\x0a\x01a\x12\x00" * 2 + b"\x9a\x01\x07\x0a\x01a\x12\x02\x08\x05"
    (row,), bad = read([twice])  # of a map's keys as well
    assert (row["s"], bad) == ([("a", {"n": 5, "m": []})], {})


WRONG = {
    "cut short": b"\x08",
    "a text that is cut short": b"\x72\x05ab",
    "no UTF-8": b"\x72\x01\xff",
    "a number without end": b"\x08" + b"\xff" * 30,
    "field 0": b"\x00\x01",
    "a group": b"\xf3\x06\x00",
    "a length of 2^63": b"\x72" + b"\xff" * 9 + b"\x01",
    "a message that is cut short": b"\xa2\x01\x01\x08",
    "a list that is cut short": b"\x8a\x01\x01\x80",
    "a timestamp beyond all time": timestamp_pb2.Timestamp(seconds=2**62).SerializeToString(),
}
WRONG["a timestamp beyond all time"] = b"\xc2\x01\x0a" + WRONG["a timestamp beyond all time"]


@pytest.mark.parametrize("why", WRONG)
def test_a_bad_message_is_named_and_spoils_no_other(why: str) -> None:
    good = ALL(a=5, n="ü").SerializeToString()
    found, bad = read([good, WRONG[why], good])
    assert found[0] == found[2] == {**EMPTY, "a": 5, "n": "ü"}
    assert [*bad] == [1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20))
def test_no_bytes_are_read_beyond_their_message(messages: list[bytes]) -> None:
    found, bad = read([*messages, *messages])
    for row, message in enumerate(messages):
        assert (row in bad) == (row + len(messages) in bad)
        assert row in bad or found[row] == found[row + len(messages)]
        if row not in bad:  # Google's library takes it as well
            assert repr(ALL.FromString(message).a) == repr(found[row]["a"])


def test_a_message_that_contains_itself_is_no_column() -> None:
    file = parse(PROTOBUF, 'syntax = "proto3"; message T { repeated T t = 1; }').tree
    with pytest.raises(ConfigurationError, match="contains itself"):
        message_type(file, "T")
