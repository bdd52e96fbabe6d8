"""Dead letters as rows: what SQL and functions see of them, and what is sent back.

SQL sees the columns of the dead-letter topic (key, value, headers, topic, partition, offset, timestamp)
and, out of the letter's headers, `origin_topic`, `origin_partition`, `origin_offset`, `origin_timestamp`,
`subscription`, `reason`, `deliveries` and `died_at`.

A function gets a dict of the same columns, with headers as a list of (name, value), and `topic` being
where the letter would go. It gives back a dict with `key`, `value`, `headers` and `topic`, changed or not,
or None: the letter stays where it is.

What goes back to the letter's own topic is for the subscription in which it died, unless it is to be for all:
the column `addressee` and the header `postroad-for` name it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from postroad.pipelines.delivery import SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC, Span
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.expressions import checked, with_value
from postroad.pipelines.shapes import without_nulls
from postroad.spark.columns import DDL, HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, TOPIC, TYPES, VALUE
from postroad.wire import header_names as names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Repair = Callable[[dict[str, Any]], dict[str, Any] | None]
Excluded = Mapping[int, list[Span]]
"""Offsets of each partition that are left out."""

SETTABLE: Final = (KEY, VALUE, HEADERS, TOPIC)
ADDRESSEE: Final = "addressee"
_GOING: Final = {name: f"going_{name}" for name in SETTABLE}  # beside the letter's own, which SQL sees

_TOLD: Final = {  # column: header, type
    "origin_topic": (names.DEAD_TOPIC, "string"),
    "origin_partition": (names.DEAD_PARTITION, "int"),
    "origin_offset": (names.DEAD_OFFSET, "bigint"),
    "origin_timestamp": (names.DEAD_TIMESTAMP, "timestamp"),
    "subscription": (names.DEAD_SUBSCRIPTION, "string"),
    "reason": (names.DEAD_REASON, "string"),
    "deliveries": (names.DEAD_DELIVERIES, "int"),
    "died_at": (names.DEAD_AT, "timestamp"),
}
_SOURCE_DDL: Final = {SOURCE_TOPIC: DDL[TOPIC], SOURCE_PARTITION: DDL[PARTITION], SOURCE_OFFSET: DDL[OFFSET]}
_SENT_DDL: Final = {**_SOURCE_DDL, **{name: DDL[name] for name in SETTABLE}, ADDRESSEE: "string"}
_SENT: Final = pa.schema(
    [
        (SOURCE_TOPIC, TYPES[TOPIC]),
        (SOURCE_PARTITION, TYPES[PARTITION]),
        (SOURCE_OFFSET, TYPES[OFFSET]),
        *((name, TYPES[name]) for name in SETTABLE),
        (ADDRESSEE, pa.string()),
    ]
)


def letters(rows: DataFrame, excluded: Excluded) -> DataFrame:
    """The rows of a dead-letter topic, but for some, with what their headers tell."""
    if excluded:
        rows = without_nulls(rows).mapInArrow(_Without(excluded), rows.schema)
    return rows.select("*", *(_told(name, *told) for name, told in _TOLD.items()))


def repaired(
    found: DataFrame,
    where: str | None,
    sets: Mapping[str, str],
    function: str | None,
    to: str | None,
    to_all: bool,
) -> DataFrame:
    """What goes back: the sink's columns, those of the source and `addressee`; `topic` and `addressee` may be
    null. PipelineError if an expression or the function is none."""
    from pyspark.sql import functions as f

    going = checked(found, "--where", where).withColumns(
        {
            _GOING[KEY]: f.col(KEY),
            _GOING[VALUE]: f.col(VALUE),
            _GOING[HEADERS]: _kept_headers(),
            _GOING[TOPIC]: f.col("origin_topic") if to is None else f.lit(to),
        }
    )
    for name, expression in sets.items():
        going = with_value(going, "--set", _GOING[name], expression, DDL[name])
    if function is not None:
        going = without_nulls(going, HEADERS, _GOING[HEADERS])
        return going.mapInArrow(_Repaired(load(function), to_all), _ddl(_SENT_DDL))
    its_own = f.lit(not to_all) & (f.col(_GOING[TOPIC]) == f.col("origin_topic"))
    going = going.withColumn(ADDRESSEE, f.when(its_own, f.col("subscription")))
    going = going.withColumn(_GOING[HEADERS], _addressed_headers())
    return going.select(
        f.col(TOPIC).alias(SOURCE_TOPIC),
        f.col(PARTITION).alias(SOURCE_PARTITION),
        f.col(OFFSET).alias(SOURCE_OFFSET),
        *(f.col(hidden).alias(name) for name, hidden in _GOING.items()),
        f.col(ADDRESSEE),
    )


def parse_set(text: str) -> tuple[str, str]:
    """`value = upper(value)` as column and expression."""
    column, equals, expression = text.partition("=")
    column = column.strip()
    if not equals or column not in SETTABLE or not expression.strip():
        raise PipelineError(
            f"--set {text!r} is not like: value = …; key, value, headers and topic can be set"
        )
    return column, expression.strip()


def load(function: str) -> Repair:
    """`module:name`, found from the current directory, too. It travels to the executors as a whole."""
    from pyspark import cloudpickle

    module, _, name = function.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module)
        repair: Repair = reduce(getattr, name.split("."), found)
    except (ImportError, AttributeError, ValueError) as error:
        raise PipelineError(f"--function {function!r} is not MODULE:NAME of a function: {error}") from None
    if not callable(repair):
        raise PipelineError(f"--function {function!r} is no function")
    register: Any = cloudpickle.register_pickle_by_value
    register(found)
    return repair


class _Without:
    """Rows whose offsets are not among those of their partition."""

    def __init__(self, excluded: Excluded) -> None:
        self._excluded = {partition: list(spans) for partition, spans in excluded.items()}

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            partitions, offsets = batch.column(PARTITION).to_numpy(), batch.column(OFFSET).to_numpy()
            keep = np.ones(len(batch), bool)
            for partition in np.unique(partitions).tolist():
                spans = self._excluded.get(partition)
                if spans:
                    keep &= (partitions != partition) | ~_is_in(offsets, spans)
            yield batch.filter(pa.array(keep))


class _Repaired:
    """Rows as the function gives them back."""

    def __init__(self, repair: Repair, to_all: bool) -> None:
        self._repair = repair
        self._to_all = to_all

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            sent = [made for row in batch.to_pylist() if (made := self._made(row)) is not None]
            yield pa.RecordBatch.from_pylist(sent, _SENT)

    def _made(self, row: dict[str, Any]) -> dict[str, Any] | None:
        source = {SOURCE_TOPIC: row[TOPIC], SOURCE_PARTITION: row[PARTITION], SOURCE_OFFSET: row[OFFSET]}
        for name, hidden in _GOING.items():
            row[name] = row.pop(hidden)
        row[HEADERS] = [(each["key"], each["value"]) for each in row[HEADERS] or ()]
        made = self._repair(row)
        if made is None:
            return None
        headers = [{"key": name, "value": _bytes(value)} for name, value in made[HEADERS]]
        its_own = not self._to_all and made[TOPIC] == row["origin_topic"]
        addressee = row["subscription"] if its_own else None
        if addressee is not None:
            headers.append({"key": names.FOR, "value": _bytes(addressee)})
        return {
            **source,
            KEY: _bytes(made[KEY]),
            VALUE: _bytes(made[VALUE]),
            HEADERS: headers,
            TOPIC: made[TOPIC],
            ADDRESSEE: addressee,
        }


def _is_in(offsets: Any, spans: list[Span]) -> Any:
    """Whether each offset is in one of the ascending spans."""
    firsts, lasts = np.array([span[:2] for span in spans], np.int64).T
    at = np.searchsorted(firsts, offsets, side="right") - 1
    return (at >= 0) & (offsets <= lasts[np.maximum(at, 0)])


def _told(column: str, header: str, kind: str) -> Column:
    """The last header of that name, as a column; null if there is none, or it makes no sense."""
    from pyspark.sql import functions as f

    text = f.expr(f"cast(try_element_at(filter(headers, h -> h.key = '{header}'), -1).value as string)")
    if kind == TIMESTAMP:
        return f.timestamp_millis(text.try_cast("bigint")).alias(column)
    return (text if kind == "string" else text.try_cast(kind)).alias(column)


def _kept_headers() -> Column:
    """Without the marks of death, and without what holds for the first time only."""
    from pyspark.sql import functions as f

    asked = ", ".join(f"'{name}'" for name in (*names.ASKED_FOR, names.REASON))
    return f.expr(f"filter(headers, h -> not startswith(h.key, '{names.DEAD}') and h.key not in ({asked}))")


def _addressed_headers() -> Column:
    from pyspark.sql import functions as f

    headers = f.coalesce(f.col(_GOING[HEADERS]), f.array().cast(DDL[HEADERS]))
    named = f.struct(f.lit(names.FOR).alias("key"), f.col(ADDRESSEE).cast("binary").alias("value"))
    addressed = f.concat(headers, f.array(named))
    return f.when(f.col(ADDRESSEE).isNull(), f.col(_GOING[HEADERS])).otherwise(addressed)


def _bytes(content: object) -> bytes | None:
    if content is None or isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    raise TypeError(f"a function's key, value and headers are bytes or str, not {type(content).__name__}")


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
