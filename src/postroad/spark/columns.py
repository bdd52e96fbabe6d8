"""The columns of a topic's rows: those of Spark's own Kafka connector, name for name and type for type.

A query that reads the one can read the other, and so can its checkpoint's state. Arrow's types are
chosen so that Spark takes a batch as it is: 32-bit offsets, no dictionaries, every field nullable,
timestamps in microseconds of UTC.

    key            binary     null where the record has none
    value          binary     null for a tombstone
    topic          string
    partition      int
    offset         bigint
    timestamp      timestamp  Kafka's milliseconds
    timestampType  int        0: set by the producer, 1: by the broker when it appended
    headers        array<struct<key: string, value: binary>>   only where it is asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from postroad.errors import ConfigurationError

KEY: Final = "key"
VALUE: Final = "value"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
TIMESTAMP_TYPE: Final = "timestampType"
HEADERS: Final = "headers"

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

HEADER_TYPE: Final[Any] = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])

TYPES: Final[dict[str, Any]] = {
    KEY: pa.binary(),
    VALUE: pa.binary(),
    TOPIC: pa.string(),
    PARTITION: pa.int32(),
    OFFSET: pa.int64(),
    TIMESTAMP: pa.timestamp("us", tz="UTC"),
    TIMESTAMP_TYPE: pa.int32(),
    HEADERS: pa.list_(pa.field("element", HEADER_TYPE)),
}
DDL: Final = {
    KEY: "binary",
    VALUE: "binary",
    TOPIC: "string",
    PARTITION: "int",
    OFFSET: "bigint",
    TIMESTAMP: "timestamp",
    TIMESTAMP_TYPE: "int",
    HEADERS: "array<struct<key: string, value: binary>>",
}


class Columns(NamedTuple):
    """Which columns are wanted, in their order. What isn't wanted is never decoded."""

    names: tuple[str, ...]

    @property
    def schema(self) -> Any:
        """As Arrow has it."""
        return pa.schema([pa.field(name, TYPES[name]) for name in self.names])

    @property
    def ddl(self) -> str:
        """As Spark reads it."""
        return ", ".join(f"`{name}` {DDL[name]}" for name in self.names)


ALL: Final = Columns((KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE))
ALL_WITH_HEADERS: Final = Columns((*ALL.names, HEADERS))


def every(*, headers: bool = False) -> Columns:
    """All columns that there are without a projection."""
    return ALL_WITH_HEADERS if headers else ALL


def projection(fields: Sequence[tuple[str, str]], *, headers: bool = False) -> Columns:
    """The columns of a user's schema, as (name, type) with the type as Spark's simpleString writes it.

    ConfigurationError names the column that a topic doesn't have, or has as another type.
    """
    offered = every(headers=headers).names
    for name, kind in fields:
        if name not in offered:
            raise ConfigurationError(_no_such_column(name, offered))
        if _plain(kind) != _plain(DDL[name]):
            raise ConfigurationError(f"schema: column {name} is of type {DDL[name]}, not {kind}")
    names = tuple(name for name, _ in fields)
    if not names:
        raise ConfigurationError("schema: name at least one column")
    if len(set(names)) != len(names):
        raise ConfigurationError("schema: a column is named twice")
    return Columns(names)


def _no_such_column(name: str, offered: Sequence[str]) -> str:
    if name == HEADERS:
        return "schema: headers are read only with the option includeHeaders=true"
    return f"schema: a topic has no column {name!r}, only {', '.join(offered)}"


def _plain(kind: str) -> str:
    return kind.replace(" ", "").lower()
