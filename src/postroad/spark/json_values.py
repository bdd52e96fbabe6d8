"""Values that are JSON: the column `value` becomes a struct, and rows that don't fit are dealt with.

Arrow's JSON parser reads all values of a batch at once. Each is wrapped as `{"v": [[VALUE]], "i": NUMBER}` on
a line of its own: a value that is cut short, or two in one, can't shift those after it, and the number proves
it. A text that closes both brackets and opens others would pass; it is not JSON by itself, so the few texts
that may do so are looked at alone, too. If the batch as a whole can't be read it is halved until the bad rows
stand alone, so that one parser decides what is good, and good batches pay nothing.

A null value stays null, as does JSON's `null`; fields that the schema doesn't name are ignored, fields that a
value doesn't have are null. A bad row is one that isn't a JSON object, or has a field of another type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark import TaskContext

from postroad.errors import ConfigurationError, PostroadError
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.dead_letters import DeadLetters, Letter
from postroad.spark.ranges import OffsetRange

FEW: Final = 8  # so many rows are tried one by one
REASON_CHARS_MAX: Final = 300
QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"

_NOT_ONE: Final = "it is not one JSON value"
_CLOSING: Final = r"\]\s*\]\s*,"
_ALONE: Final = msgspec.json.Decoder(msgspec.Raw)  # finds where a value ends, and makes no object of it


class BadRow(PostroadError):
    """A value that is not what the schema says, and badRows=fail."""


class JsonValues(NamedTuple):
    """How values are read; pickled for the executors."""

    names: tuple[str, ...]  # the columns to deliver, in their order
    kind: Any  # Arrow's type of `value`, a struct
    bad_rows: Literal["fail", "drop", "deadletter"]
    dead_letter_topic: str | None
    job: str  # who writes dead letters, where no streaming query does

    def prepare(self, cluster: Cluster) -> None:
        """On the driver, before anything is read: dead letters have a topic to go to."""
        if self.dead_letter_topic is not None:
            cluster.create_topic(self.dead_letter_topic, exist_ok=True)

    @property
    def wanted(self) -> Columns:
        """What has to be decoded: also what is told of a bad row."""
        needed: tuple[str, ...] = () if self.bad_rows == "drop" else (columns.OFFSET,)
        if self.bad_rows == "deadletter":
            needed = (columns.KEY, columns.OFFSET, columns.TIMESTAMP, columns.HEADERS)
        return Columns(tuple(dict.fromkeys((*self.names, *needed))))

    def convert(self, cluster: Cluster, part: OffsetRange, batches: Iterable[Any]) -> Iterator[Any]:
        """The batches with their values read. BadRow for the first bad one, if that is wanted."""
        dead = DeadLetters(
            cluster, self.dead_letter_topic or "", part, f"{_micro_batch() or self.job} {self.kind}"
        )
        for batch in batches:
            values, bad = parse(batch.column(columns.VALUE), self.kind)
            if bad:
                self._set_aside(batch, bad, part, dead)
                keep = pa.array(row not in bad for row in range(len(batch)))
                batch, values = batch.filter(keep), values.filter(keep)
            yield self._deliver(batch, values)
        dead.flush()

    def _set_aside(self, batch: Any, bad: dict[int, str], part: OffsetRange, dead: DeadLetters) -> None:
        if self.bad_rows == "fail":
            row, reason = next(iter(bad.items()))
            offset = batch.column(columns.OFFSET)[row].as_py()
            raise BadRow(
                f"The value of {part.topic}/{part.partition} at offset {offset:,} doesn't fit: {reason}. "
                "Change the schema, or set badRows=drop or badRows=deadletter."
            )
        if self.bad_rows == "deadletter":
            for row, reason in bad.items():
                dead.add(_letter(batch, row), reason)

    def _deliver(self, batch: Any, values: Any) -> Any:
        arrays = [values if name == columns.VALUE else batch.column(name) for name in self.names]
        fields = [
            pa.field(name, self.kind if name == columns.VALUE else columns.TYPES[name]) for name in self.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _letter(batch: Any, row: int) -> Letter:
    headers = batch.column(columns.HEADERS)[row].as_py() or ()
    return Letter(
        offset=batch.column(columns.OFFSET)[row].as_py(),
        time_ms=(batch.column(columns.TIMESTAMP)[row].value or 0) // 1000,  # no datetime holds every time
        key=batch.column(columns.KEY)[row].as_py(),
        value=batch.column(columns.VALUE)[row].as_py(),
        headers=[(each["key"], each["value"]) for each in headers],
    )


def _micro_batch() -> str | None:
    """The micro-batch of this task, if a streaming query runs it; a repetition has the same name."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(QUERY)
    return f"{query} {context.getLocalProperty(BATCH)}" if context and query else None


def check_kind(kind: Any) -> None:
    """ConfigurationError if there is no way to read this type from JSON."""
    if not pa.types.is_struct(kind):
        raise ConfigurationError("valueFormat=json: the column value must be a struct of the values' fields.")
    try:
        _parse(pa.array([b"{}"], pa.binary()), kind)
    except pa.ArrowNotImplementedError as error:
        raise ConfigurationError(f"valueFormat=json: {error}: use another type in the schema.") from None


def parse(values: Any, kind: Any) -> tuple[Any, dict[int, str]]:
    """An array of binaries as one of structs, and the reason for each row that can't be read (null there)."""
    bad: dict[int, str] = {}
    pieces = list(_pieces(values, kind, 0, bad))
    return pa.concat_arrays(pieces) if len(pieces) != 1 else pieces[0], bad


def _pieces(values: Any, kind: Any, first: int, bad: dict[int, str]) -> Iterator[Any]:
    """`values` begin at row `first`; bad ones are noted."""
    try:
        yield _parse(values, kind)
        return
    except pa.ArrowInvalid as error:
        if len(values) == 1:
            bad[first] = _reason(str(error))
            yield pa.nulls(1, kind)
            return
    step = 1 if len(values) <= FEW else (len(values) + 1) // 2
    for at in range(0, len(values), step):
        yield from _pieces(values.slice(at, step), kind, first + at, bad)


def _parse(values: Any, kind: Any) -> Any:
    """All of them, or ArrowInvalid."""
    rows = len(values)
    if not rows:
        return pa.array([], kind)
    texts = pc.fill_null(values.cast(pa.string()), "null")  # the cast finds what isn't UTF-8
    numbers = pa.array(range(rows), pa.int64())
    _check_alone(texts.filter(pc.match_substring_regex(texts, _CLOSING)))
    lines = pc.binary_join_element_wise('{"v":[[', texts, ']],"i":', numbers.cast(pa.string()), "}\n", "")
    data = lines.buffers()[2]
    schema = pa.schema([("v", pa.list_(pa.list_(_readable(kind)))), ("i", pa.int64())])
    found = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).combine_chunks()
    if len(found) != rows or not found.column("i").chunk(0).equals(numbers):
        raise pa.ArrowInvalid(_NOT_ONE)
    return _only(_only(found.column("v").chunk(0))).cast(kind)


def _only(lists: Any) -> Any:
    """The element of each list, which has one."""
    if lists.null_count or pc.any(pc.not_equal(pc.list_value_length(lists), 1)).as_py():
        raise pa.ArrowInvalid(_NOT_ONE)
    return lists.flatten()


def _check_alone(texts: Any) -> None:
    for text in texts.to_pylist():
        try:
            _ALONE.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise pa.ArrowInvalid(_NOT_ONE) from None


def _readable(kind: Any) -> Any:
    """The type as the parser knows it: it takes dates for times."""
    if pa.types.is_date(kind):
        return pa.timestamp("s")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    return kind


_COLUMN: Final = re.compile(r"Column\(/v/\[\]/\[\]/?([^)]*)\)")
_CHANGED: Final = re.compile(r"changed from (\w+) to (\w+)")


def _reason(error: str) -> str:
    """The parser's words as they are about one value, not about a table of lines."""
    if "Column(/v/[])" in error:  # it has closed a bracket of ours
        return _NOT_ONE
    text = error.removeprefix("JSON parse error: ").removesuffix(" in row 0").rstrip(".")
    text = _COLUMN.sub(lambda match: f"field {match[1]}" if match[1] else "it", text)
    text = _CHANGED.sub(r"is of type \2, not \1", text)
    return text[:REASON_CHARS_MAX]
