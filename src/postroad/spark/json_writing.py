"""Arrow → JSON: structs are objects, lists arrays, maps objects whose keys are texts.

Times are as RFC 3339 has them, dates ISO 8601, decimals numbers with all their digits, bytes base64. A shape
says where a null is left out, written, or refused. Without one everything is written: a null as such, and
numbers that JSON does not have (NaN, infinities) as texts, which is how Spark does it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import InvalidRecord

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


class Shape(NamedTuple):
    """What a schema says of a value. `fields` are an object's, `items` those of an array or a map."""

    takes_null: bool = True
    is_required: bool = False
    fields: Mapping[str, Shape] = MappingProxyType({})
    items: Shape | None = None


ANY: Final = Shape()
_NO_NUMBERS: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}


def texts(values: Any, shape: Shape | None = None) -> list[bytes]:
    """Each value as JSON. Raises InvalidRecord."""
    return [_ENCODER.encode(each) for each in plain(values, shape)]


def plain(values: Any, shape: Shape | None = None) -> list[Any]:
    """What msgspec writes as that. Raises InvalidRecord for what JSON or the shape does not have."""
    kind = values.type
    if pa.types.is_struct(kind):
        return _objects(values, shape)
    if pa.types.is_map(kind):
        return _maps(values, shape and (shape.items or ANY))
    if pa.types.is_list(kind):
        return _arrays(values, shape and (shape.items or ANY))
    if pa.types.is_timestamp(kind):
        values = pc.replace_substring(values.cast(pa.string()), " ", "T")
    if pa.types.is_date(kind):
        values = values.cast(pa.string())
    found: list[Any] = values.to_pylist()
    if pa.types.is_floating(kind) and not all(each is None or math.isfinite(each) for each in found):
        if shape is not None:
            raise InvalidRecord("A value is NaN or infinite, which JSON does not have.")
        return [
            each if each is None or math.isfinite(each) else _NO_NUMBERS.get(each, "NaN") for each in found
        ]
    return found


def _number(each: float | None) -> float | str | None:
    return each if each is None or math.isfinite(each) else _NO_NUMBERS.get(each, "NaN")


def _objects(values: Any, shape: Shape | None) -> list[Any]:
    columns = [
        (field.name, None if shape is None else shape.fields.get(field.name, ANY), number)
        for number, field in enumerate(values.type)
    ]
    found: list[Any] = [{} if is_valid else None for is_valid in values.is_valid().to_pylist()]
    for name, inner, number in columns:
        for row, cell in zip(found, plain(values.field(number), inner), strict=True):
            if row is None:
                continue
            if cell is not None or inner is None or inner.takes_null:
                row[name] = cell
            elif inner.is_required:
                raise InvalidRecord(f"Field {name} is null, and the schema requires it.")
    return found


def _maps(values: Any, items: Shape | None) -> list[Any]:
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = values.keys.slice(first, last - first).cast(pa.string()).to_pylist()
    cells = _elements(values.items.slice(first, last - first), items)
    return [
        None if span is None else dict(zip(keys[span], cells[span], strict=True)) for span in _spans(values)
    ]


def _arrays(values: Any, items: Shape | None) -> list[Any]:
    first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
    cells = _elements(values.values.slice(first, last - first), items)
    return [None if span is None else cells[span] for span in _spans(values)]


def _elements(values: Any, shape: Shape | None) -> list[Any]:
    if values.null_count and shape is not None and not shape.takes_null:
        raise InvalidRecord("An element is null, and the schema does not allow it.")
    return plain(values, shape)


def _spans(values: Any) -> list[slice | None]:
    offsets = values.offsets.to_pylist()
    valid = values.is_valid().to_pylist()
    return [
        slice(begin - offsets[0], end - offsets[0]) if is_valid else None
        for begin, end, is_valid in zip(offsets, offsets[1:], valid, strict=False)
    ]
