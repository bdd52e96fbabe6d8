"""Avro's types as Arrow has them, and so Spark: the same as Spark's own `from_avro`.

int, long, float, double, boolean, bytes, string      as they are; fixed: binary; enum: string record,
array, map                                    struct, array, map with string keys null and one other type
that type, which may be null int and long; float and double                        bigint; double other
unions                                          struct<member0, member1, …>, one of which is not null
date, timestamp-millis, -micros, local-timestamp-…    date, timestamp, timestamp_ntz decimal
decimal, up to 38 digits uuid (string), time-…, duration                       what they are made of
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from postroad.errors import ConfigurationError
from postroad.schemas.avro import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
)

PRECISION_MAX: Final = 38

_PLAIN: Final = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_UTC: Final = pa.timestamp("us", tz="UTC")
_LOGICAL: Final = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): _UTC,
    ("long", "timestamp-micros"): _UTC,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def arrow_type(type_: AvroType, within: tuple[str, ...] = ()) -> Any:
    """ConfigurationError for what no column can be."""
    if isinstance(type_, NamedType) and type_.full_name in within:
        raise ConfigurationError(f"The Avro type {type_.full_name} contains itself, which no column can.")
    if isinstance(type_, RecordType):
        inner = (*within, type_.full_name)
        return pa.struct([pa.field(each.name, arrow_type(each.type, inner)) for each in type_.fields])
    if isinstance(type_, ArrayType):
        return pa.list_(pa.field("element", arrow_type(type_.items, within)))
    if isinstance(type_, MapType):
        return pa.map_(pa.string(), arrow_type(type_.values, within))
    if isinstance(type_, UnionType):
        return _union(type_, within)
    if type_.logical == "decimal" and type_.kind in ("bytes", "fixed"):
        return _decimal(type_)
    if isinstance(type_, EnumType):
        return pa.string()
    if isinstance(type_, FixedType):
        return pa.binary()
    return _LOGICAL.get((type_.kind, type_.logical), _PLAIN[type_.kind])


def branches(type_: UnionType) -> list[AvroType]:
    """Those that are not null."""
    return [each for each in type_.branches if each.kind != "null"]


def widened(type_: UnionType) -> str:
    """`long` or `double` where one number stands for all branches; else ""."""
    kinds = sorted(each.kind for each in branches(type_) if not each.logical)
    if len(kinds) != len(branches(type_)):
        return ""
    return {"int long": "long", "double float": "double"}.get(" ".join(kinds), "")


def _union(type_: UnionType, within: tuple[str, ...]) -> Any:
    others = branches(type_)
    if len(others) == 1:
        return arrow_type(others[0], within)
    if not others:
        return pa.null()
    if wide := widened(type_):
        return _PLAIN[wide]
    return pa.struct(
        [pa.field(f"member{number}", arrow_type(each, within)) for number, each in enumerate(others)]
    )


def _decimal(type_: AvroType) -> Any:
    precision, scale = type_.extra["precision"], type_.extra.get("scale", 0)
    if precision > PRECISION_MAX:
        raise ConfigurationError(f"A decimal of {precision} digits has more than {PRECISION_MAX}.")
    return pa.decimal128(precision, scale)
