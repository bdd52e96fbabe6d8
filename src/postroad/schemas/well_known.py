"""The files that every Protobuf schema may import without registering them: Google's own types."""

from __future__ import annotations

from typing import Final

_HEAD: Final = 'syntax = "proto3"; package google.protobuf; '
_WRAPPED: Final = {
    "DoubleValue": "double", "FloatValue": "float", "Int64Value": "int64", "UInt64Value": "uint64",
    "Int32Value": "int32", "UInt32Value": "uint32", "BoolValue": "bool", "StringValue": "string",
    "BytesValue": "bytes",
}  # fmt: skip

FILES: Final = {
    "google/protobuf/timestamp.proto": _HEAD + "message Timestamp { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/duration.proto": _HEAD + "message Duration { int64 seconds = 1; int32 nanos = 2; }",
    "google/protobuf/any.proto": _HEAD + "message Any { string type_url = 1; bytes value = 2; }",
    "google/protobuf/empty.proto": _HEAD + "message Empty {}",
    "google/protobuf/field_mask.proto": _HEAD + "message FieldMask { repeated string paths = 1; }",
    "google/protobuf/source_context.proto": _HEAD + "message SourceContext { string file_name = 1; }",
    "google/protobuf/struct.proto": _HEAD
    + "message Struct { map<string, Value> fields = 1; } "
    + "message Value { oneof kind { NullValue null_value = 1; double number_value = 2; "
    + "string string_value = 3; bool bool_value = 4; Struct struct_value = 5; ListValue list_value = 6; } } "
    + "enum NullValue { NULL_VALUE = 0; } message ListValue { repeated Value values = 1; }",
    "google/protobuf/wrappers.proto": _HEAD
    + " ".join(f"message {name} {{ {type_} value = 1; }}" for name, type_ in _WRAPPED.items()),
    # Imported for options, which say nothing about messages.
    "google/protobuf/descriptor.proto": 'syntax = "proto2"; package google.protobuf; '
    + "message FileOptions { extensions 1000 to max; } message MessageOptions { extensions 1000 to max; } "
    + "message FieldOptions { extensions 1000 to max; } message EnumOptions { extensions 1000 to max; }",
}
