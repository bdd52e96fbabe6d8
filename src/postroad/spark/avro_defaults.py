"""The default of a field, from its schema's JSON to a Python value that Arrow takes."""

from __future__ import annotations

import decimal
from typing import Any

from postroad.schemas import avro
from postroad.schemas.avro import ArrayType, AvroType, MapType, RecordType, UnionType
from postroad.spark import avro_types


def default_value(default: Any, type_: AvroType) -> Any:
    if isinstance(type_, UnionType):
        return _of_union(default, type_)
    if isinstance(type_, RecordType):
        return {
            field.name: default_value(default.get(field.name, field.default), field.type)
            for field in type_.fields
        }
    if isinstance(type_, ArrayType):
        return [default_value(each, type_.items) for each in default]
    if isinstance(type_, MapType):
        return [(name, default_value(each, type_.values)) for name, each in default.items()]
    if type_.kind in ("bytes", "fixed"):
        data = default.encode("latin-1", "replace")  # each character is a byte
        if type_.logical != "decimal":
            return data
        return decimal.Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-type_.extra.get("scale", 0))
    if type_.kind in ("float", "double"):
        return float(default)
    if type_.logical.endswith("timestamp-millis"):
        return default * 1000
    return default


def _of_union(default: Any, type_: UnionType) -> Any:
    """The first branch that it fits."""
    branch = next(each for each in type_.branches if avro.fits(default, each))
    value = default_value(default, branch)
    others = avro_types.branches(type_)
    if branch.kind == "null" or len(others) == 1 or avro_types.widened(type_):
        return value
    return {f"member{others.index(branch)}": value}
