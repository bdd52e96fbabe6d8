"""Protobuf schemas, as texts and as descriptors: Google's own library reads what is written here."""

from __future__ import annotations

import base64

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2, timestamp_pb2, wrappers_pb2

from postroad.errors import InvalidSchema
from postroad.schemas import schema
from postroad.schemas.protobuf_compatibility import differences
from postroad.schemas.schema import PROTOBUF, parse

ORDER = """
syntax = "proto3";  // a comment
package shop.orders;
import "google/protobuf/timestamp.proto";
option java_package = "com.shop";

/* An order. */
message Order {
  reserved 5, 10 to 12, 1000 to max;
  reserved "old";
  int64 id = 1 [deprecated = true, (my.option) = { a: 1, b: [2] }];
  optional string note = 2;
  repeated Line lines = 3;
  map<string, Colour> colours = 4;
  google.protobuf.Timestamp at = 6;
  oneof paid_by { Card card = 7; string voucher = 8; }
  message Line { string article = 1; double price = 2; Kind kind = 3; enum Kind { UNKNOWN = 0; BOOK = -1; } }
  message Card { bytes number = 1; };
}
enum Colour { option allow_alias = true; NONE = 0; RED = 1; CRIMSON = 1 [deprecated = true]; }
service Orders { rpc Get (Order) returns (stream Order) { option (x) = "}"; } }
"""
PROTO2 = """
message Old { required int32 a = 1; optional string b = 2 [default = "x;y"]; extensions 100 to 200;
  repeated sint64 c = 3 [packed = true]; }
extend Old { optional int32 more = 100; }
"""


def test_googles_library_reads_what_is_written_here() -> None:
    found = parse(PROTOBUF, ORDER)
    data = base64.b64decode(schema.serialized(found, "order.proto"))
    file = descriptor_pb2.FileDescriptorProto.FromString(data)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    order = pool.FindMessageTypeByName("shop.orders.Order")
    assert [each.name for each in order.fields] == [
        "id", "note", "lines", "colours", "at", "card", "voucher",
    ]  # fmt: skip
    assert order.fields_by_name["note"].has_presence
    assert [each.name for each in order.oneofs_by_name["paid_by"].fields] == ["card", "voucher"]
    assert order.fields_by_name["colours"].message_type.GetOptions().map_entry
    assert order.fields_by_name["at"].message_type.full_name == "google.protobuf.Timestamp"


@pytest.mark.parametrize("text", [ORDER, PROTO2], ids=["proto3", "proto2"])
def test_a_text_and_its_descriptor_are_the_same_schema(text: str) -> None:
    found = parse(PROTOBUF, text)
    again = parse(PROTOBUF, schema.serialized(found, "x.proto"))
    assert again.canonical == found.canonical
    assert parse(PROTOBUF, found.canonical).canonical == found.canonical
    assert ";" in again.text  # it is kept as a text


@pytest.mark.parametrize("module", [timestamp_pb2, struct_pb2, wrappers_pb2], ids=lambda each: each.__name__)
def test_googles_own_descriptors_are_read(module: object) -> None:
    file = module.DESCRIPTOR  # type: ignore[attr-defined]
    renamed = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    found = parse(PROTOBUF, base64.b64encode(file.serialized_pb).decode())
    data = base64.b64decode(schema.serialized(found, file.name))
    written = descriptor_pb2.FileDescriptorProto.FromString(data)
    for message in [*renamed.message_type, *written.message_type]:
        for each in [*message.field, *(field for nested in message.nested_type for field in nested.field)]:
            each.ClearField("json_name")  # which is left out here
    assert [each.SerializeToString() for each in written.message_type] == [
        each.SerializeToString() for each in renamed.message_type
    ]


BAD = [
    "message A { int32 a = 0; }", "message A { int32 a = 19000; }", "message A { int32 a = 1; int32 b = 1; }",
    "message A { B b = 1; }", "message A {", "message A { reserved 1; int32 a = 1; }", "enum E { }",
    'syntax = "proto3"; enum E { A = 1; }', "enum E { A = 0; B = 0; }", 'import "b.proto"; message A { }',
    'syntax = "proto4";', "message A { map<double, int32> m = 1; }", "message A { int32 a = 1 }", "}", "%;",
    "message A {} message A {}", "message A { group G = 1 { } }", "x" * 64, "AAAA", "=" * 9, "message;" * 9,
    "message A { " * 100 + "}" * 100, "message A { int32 a = 9999999999; }",
]  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(PROTOBUF, text)


def test_an_imported_file_is_one_of_the_references() -> None:
    colour = 'syntax = "proto3"; package paint; enum Colour { NONE = 0; }'
    text = 'syntax = "proto3"; import "colour.proto"; message Wall { paint.Colour colour = 1; }'
    found = parse(PROTOBUF, text, {"colour.proto": colour})
    assert found.tree.messages[0].fields[0].type == "paint.Colour"
    with pytest.raises(InvalidSchema, match=r"colour\.proto"):
        parse(PROTOBUF, text)


def message(*fields: str, more: str = "") -> str:
    return f'syntax = "proto3"; message A {{ {" ".join(fields)} }} message B {{ }} message C {{ }} {more}'


FITS = [
    ("a field is added", message("int32 a = 1;", "int32 b = 2;"), message("int32 a = 1;")),
    ("a field is removed", message(), message("int32 a = 1;")),
    ("a field is called anew", message("int32 b = 1;"), message("int32 a = 1;")),
    ("a type of the same group", message("int64 a = 1;"), message("int32 a = 1;")),
    ("string becomes bytes", message("bytes a = 1;"), message("string a = 1;")),
    ("one field moves into a new oneof", message("oneof o { int32 a = 1; }"), message("int32 a = 1;")),
    ("a message is added", message(more="message D {}"), message()),
]
BREAKS = [
    ("another type", message("string a = 1;"), message("int32 a = 1;")),
    ("a signed type", message("sint32 a = 1;"), message("int32 a = 1;")),
    ("a message is removed", message(), message(more="message D {}")),
    ("another message", message("C a = 1;"), message("B a = 1;")),
    ("a scalar becomes a list", message("repeated int32 a = 1;"), message("int32 a = 1;")),
    (
        "two fields move into a oneof",
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("int32 a = 1;", "int32 b = 2;"),
    ),
    (
        "a oneof loses a field",
        message("oneof o { int32 a = 1; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
    ),
    ("a map becomes something else", message("int32 a = 1;"), message("map<string, int32> a = 1;")),
    ("a required field is added", "message A { required int32 a = 1; }", "message A { }"),
]


@pytest.mark.parametrize(("why", "reader", "writer"), FITS, ids=[row[0] for row in FITS])
def test_what_the_wire_allows_is_compatible(why: str, reader: str, writer: str) -> None:
    assert differences(parse(PROTOBUF, reader).tree, parse(PROTOBUF, writer).tree) == []


@pytest.mark.parametrize(("why", "reader", "writer"), BREAKS, ids=[row[0] for row in BREAKS])
def test_what_the_wire_does_not_allow_is_not(why: str, reader: str, writer: str) -> None:
    assert differences(parse(PROTOBUF, reader).tree, parse(PROTOBUF, writer).tree)
