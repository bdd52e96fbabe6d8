"""Protobuf's types as Arrow has them, and so Spark.

    int32, sint32, sfixed32; int64 …      int; bigint
    uint32, fixed32; uint64, fixed64      bigint; decimal(20, 0): Spark has no unsigned numbers
    double, float, bool, string, bytes    as they are
    enum                                  string: the value's name, or its number where it has none
    message                               struct; google.protobuf.Timestamp: timestamp
    repeated, map                         array, map

A field that is not there is null where the schema can tell it from one that is (optional, messages, members
of a oneof, all of proto2), and otherwise what proto3 says it is: 0, false, an empty text, the enum's first
value.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError
from postroad.schemas.protobuf import ProtoEnum, ProtoField, ProtoFile, ProtoMessage

TIMESTAMP: Final = "google.protobuf.Timestamp"
TIMESTAMP_TYPE: Final = pa.timestamp("us", tz="UTC")

SCALARS: Final = {
    "int32": pa.int32(),
    "sint32": pa.int32(),
    "sfixed32": pa.int32(),
    "int64": pa.int64(),
    "sint64": pa.int64(),
    "sfixed64": pa.int64(),
    "uint32": pa.int64(),
    "fixed32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "fixed64": pa.decimal128(20, 0),
    "double": pa.float64(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}


def message_type(file: ProtoFile, full_name: str, within: tuple[str, ...] = ()) -> Any:
    """ConfigurationError for what no column can be."""
    if full_name in within:
        raise ConfigurationError(f"The Protobuf message {full_name} contains itself, which no column can.")
    message = file.known[full_name]
    assert isinstance(message, ProtoMessage)
    inner = (*within, full_name)
    return pa.struct([pa.field(each.name, field_type(file, each, inner)) for each in message.fields])


def field_type(file: ProtoFile, field: ProtoField, within: tuple[str, ...]) -> Any:
    """With the list or the map that it may be."""
    value = value_type(file, field.type, within)
    if field.is_map:
        return pa.map_(value_type(file, field.key, within), value)
    return pa.list_(pa.field("element", value)) if field.is_repeated else value


def value_type(file: ProtoFile, name: str, within: tuple[str, ...]) -> Any:
    if name in SCALARS:
        return SCALARS[name]
    if isinstance(file.known[name], ProtoEnum):
        return pa.string()
    return TIMESTAMP_TYPE if name == TIMESTAMP else message_type(file, name, within)


def has_presence(file: ProtoFile, field: ProtoField) -> bool:
    """Whether a reader can tell that a field was not written."""
    is_message = isinstance(file.known.get(field.type), ProtoMessage)
    return file.syntax == "proto2" or bool(field.oneof) or field.label == "optional" or is_message
