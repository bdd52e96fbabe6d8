"""The columns of an archive: a record as the broker keeps it, its date, and JSON columns if asked for.

    topic, partition, offset, timestamp, timestampType, key, value, headers   as the source has them
    date   the timestamp's day, UTC; with `topic` it is what the table is partitioned by
    bad    only with columns of values: why the value has none (null: it is fine)
    …      columns of values: boolean, bigint, double or string where they are JSON; those that have a
           schema know binary, date, timestamp and decimal, too

Every column may be null. An archive may hold no other types, so that each of the formats, and each
reader of theirs, agrees about what a column is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

import pyarrow as pa

from postroad.spark import columns

Kind = str
"""The type of a value's column, in Spark's words."""

EPOCH: Final = date(1970, 1, 1)
DAY_US: Final = 86_400_000_000
# Of dates that no library can name: a producer's wrong clock must not stop an archive.
DAY_MIN: Final = (date(1, 1, 1) - EPOCH).days
DAY_MAX: Final = (date(9999, 12, 31) - EPOCH).days
DATE: Final = "date"
BAD: Final = "bad"
PARTITIONED_BY: Final = (columns.TOPIC, DATE)

KINDS: Final[dict[Kind, Any]] = {
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
}
"""Of JSON."""
_TYPES: Final[dict[Kind, Any]] = {
    **KINDS,
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_KIND_OF: Final = {kind: name for name, kind in _TYPES.items()}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")

_RECORD: Final = (
    columns.TOPIC,
    columns.PARTITION,
    columns.OFFSET,
    columns.TIMESTAMP,
    columns.TIMESTAMP_TYPE,
    columns.KEY,
    columns.VALUE,
    columns.HEADERS,
)
RECORD: Final = pa.schema([*((name, columns.TYPES[name]) for name in _RECORD), (DATE, pa.date32())])
DDL: Final = {**columns.DDL, DATE: "date"}
RESERVED: Final = frozenset(name.lower() for name in (*RECORD.names, BAD))


def with_json(kinds: Mapping[str, Kind]) -> Any:
    """The schema of an archive with these columns of values (and `bad`, if it is among them)."""
    return pa.schema([*RECORD, *(pa.field(name, arrow_of(kind)) for name, kind in kinds.items())])


def json_kinds(schema: Any) -> dict[str, Kind]:
    """The columns beyond those of every archive, in their order."""
    return {field.name: kind_of(field.type) for field in schema if field.name not in RECORD.names}


def arrow_of(kind: Kind) -> Any:
    """Arrow's type of a kind."""
    decimal = decimal_of(kind)
    return pa.decimal128(*decimal) if decimal else _TYPES[kind]


def kind_of(arrow: Any) -> Kind:
    """The kind of a column that has this type of Arrow's. KeyError if it is none."""
    if pa.types.is_decimal128(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    return _KIND_OF[plain(arrow)]


def decimal_of(kind: Kind) -> tuple[int, int] | None:
    """Precision and scale; None if it is no decimal."""
    found = _DECIMAL.fullmatch(kind)
    return (int(found[1]), int(found[2])) if found else None


def without_partitions(schema: Any) -> Any:
    """What is in a file where its directory's name says the rest."""
    return pa.schema([field for field in schema if field.name not in PARTITIONED_BY])


def ddl(schema: Any) -> str:
    """As Spark reads it."""
    return ", ".join(f"`{field.name}` {DDL.get(field.name) or kind_of(field.type)}" for field in schema)


def misfit(schema: Any) -> str | None:
    """What is wrong with it as an archive's schema; None if it is one."""
    found = {field.name: plain(field.type) for field in schema}
    for field in RECORD:
        if field.name not in found:
            return f"it has no column {field.name}"
        if not _same(found[field.name], field.type):
            return f"its column {field.name} is {found[field.name]}, not {field.type}"
    for name, kind in found.items():
        if name not in RECORD.names and not (kind in _KIND_OF or pa.types.is_decimal128(kind)):
            return f"its column {name} is {kind}"
    return None


def plain(kind: Any) -> Any:
    """Arrow has several layouts for one type; libraries differ in which they show."""
    text = str(kind)
    if text in ("large_string", "string_view"):
        return pa.string()
    if text in ("large_binary", "binary_view"):
        return pa.binary()
    return kind


def _same(one: Any, other: Any) -> bool:
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return bool(one.unit == other.unit and one.tz is not None)
    if _is_list(one) and _is_list(other):
        return {f.name: str(plain(f.type)) for f in one.value_type} == {
            f.name: str(plain(f.type)) for f in other.value_type
        }
    return bool(one == other)


def _is_list(kind: Any) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or str(kind).startswith("list_view")
    return bool(is_list and pa.types.is_struct(kind.value_type))
