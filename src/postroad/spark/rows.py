"""The rows that the sink is given: which columns they need, and what becomes of them.

The columns are those of Spark's Kafka sink, by name and in any order; others are left aside.

    value      string or binary   required; null is a tombstone
    key        string or binary   null, or no such column: no key
    headers    array<struct<key: string, value: binary>>
    topic      string             required unless the option `topic` says it for all rows
    partition  int                null: by the key, else in turn (`placing`)
    timestamp  timestamp          an extension; null: the time of writing

Whatever Spark's Arrow types are (it has 32-bit and 64-bit offsets), below here a row has the types of
`columns`, with the timestamp as Kafka's milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from postroad.errors import ConfigurationError, InvalidRecord, InvalidTimestamp
from postroad.spark.columns import HEADERS, KEY, PARTITION, TIMESTAMP, TOPIC, TYPES, VALUE

_TEXT: Final = ("string", "binary")
ALLOWED: Final[Mapping[str, Sequence[str]]] = {
    VALUE: _TEXT,
    KEY: _TEXT,
    HEADERS: ("array<struct<key:string,value:binary>>",),
    TOPIC: ("string",),
    PARTITION: ("int",),
    TIMESTAMP: ("timestamp",),
}
RECORD_BYTES: Final = 32  # lengths, deltas and counts of a record, generously
_NUMBERS: Final = pa.int64()


def check_columns(fields: Sequence[tuple[str, str]], topic: str | None) -> None:
    """`fields` as (name, type) with the type as Spark's simpleString writes it; ConfigurationError says
    which column is missing or of the wrong type."""
    found = dict(fields)
    if VALUE not in found:
        raise ConfigurationError(f"There is no column 'value', only {', '.join(found) or 'none'}: make one.")
    if topic is None and TOPIC not in found:
        raise ConfigurationError("Which topic? Set the option 'topic', or add a column 'topic'.")
    for name, kinds in ALLOWED.items():
        if name in found and found[name] not in kinds:
            raise ConfigurationError(
                f"Column {name} is of type {found[name]}; it must be {' or '.join(kinds)}: cast it."
            )


def cast(batch: Any) -> Any:
    """The columns that matter, in the types of `columns`."""
    names = [name for name in ALLOWED if name in batch.schema.names]
    return pa.RecordBatch.from_arrays([_column(batch.column(name), name) for name in names], names)


def column(batch: Any, name: str) -> Any:
    """None if there is no such column."""
    return batch.column(name) if name in batch.schema.names else None


def sizes(batch: Any) -> npt.NDArray[np.int64]:
    """Bytes of each row as a record, at most (but for very many headers)."""
    total = np.full(len(batch), RECORD_BYTES, np.int64)
    for name in (KEY, VALUE):
        if (texts := column(batch, name)) is not None:
            total += _lengths(texts)
    if (headers := column(batch, HEADERS)) is not None:
        offsets = headers.offsets.to_numpy()
        pairs = headers.values
        each = _lengths(pairs.field(0)) + _lengths(pairs.field(1))
        upto = np.concatenate([[0], np.cumsum(each)])
        total += np.diff(upto[offsets])
    return total


def with_times(batch: Any) -> Any:
    """With a timestamp in each row: its own, or now."""
    now_ms = pa.scalar(time.time_ns() // 1_000_000, _NUMBERS)
    given = column(batch, TIMESTAMP)
    if given is None:
        return batch.append_column(TIMESTAMP, pa.repeat(now_ms, len(batch)))
    return batch.set_column(batch.schema.get_field_index(TIMESTAMP), TIMESTAMP, given.fill_null(now_ms))


def _column(values: Any, name: str) -> Any:
    if name == TIMESTAMP:
        return _milliseconds(values)
    if name == HEADERS:
        return _headers(values)
    if name == TOPIC and values.null_count:
        raise InvalidRecord("A row has no topic: fill the column 'topic', or set the option 'topic'.")
    return values.cast(TYPES[name])


def _milliseconds(values: Any) -> Any:
    micros = values.cast(pa.timestamp("us", tz="UTC")).cast(_NUMBERS)
    if (pc.min(micros).as_py() or 0) < 0:
        raise InvalidTimestamp("A row's timestamp is before 1970, which no record can have.")
    return pc.divide(micros, 1000)


def _headers(values: Any) -> Any:
    headers = values.cast(TYPES[HEADERS])
    if headers.flatten().field(0).null_count or headers.flatten().null_count:
        raise InvalidRecord("A row has a header without a key: each needs one; its value may be null.")
    return headers


def _lengths(texts: Any) -> npt.NDArray[np.int64]:
    lengths: npt.NDArray[np.int64] = pc.binary_length(texts).fill_null(0).to_numpy().astype(np.int64)
    return lengths
