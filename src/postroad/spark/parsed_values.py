"""Values that are read: the column `value` gets the type of what they hold, and rows that don't fit are dealt
with as the user says. How they are read is up to a parser (`json_parsing`, `registered_parsing`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext

from postroad.errors import PostroadError
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.dead_letters import DeadLetters, Letter
from postroad.spark.json_parsing import parse
from postroad.spark.ranges import OffsetRange

QUERY: Final = "sql.streaming.queryId"
BATCH: Final = "streaming.sql.batchId"


class BadRow(PostroadError):
    """A value that is not what the schema says, and badRows=fail."""


class ValueParser(Protocol):
    def parse(self, values: Any) -> tuple[Any, dict[int, str]]:
        """An array of the type that is wanted, and the reason for each row that can't be read."""


class JsonParser(NamedTuple):
    """Values are JSON objects."""

    kind: Any

    def parse(self, values: Any) -> tuple[Any, dict[int, str]]:
        return parse(values, self.kind)


class ParsedValues(NamedTuple):
    """How values are read; pickled for the executors."""

    names: tuple[str, ...]  # the columns to deliver, in their order
    kind: Any  # Arrow's type of `value`
    parser: ValueParser
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
            cluster, self.dead_letter_topic or "", part, f"{micro_batch() or self.job} {self.kind}"
        )
        for batch in batches:
            values, bad = self.parser.parse(batch.column(columns.VALUE))
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
                dead.add(letter(batch, row), reason)

    def _deliver(self, batch: Any, values: Any) -> Any:
        arrays = [values if name == columns.VALUE else batch.column(name) for name in self.names]
        fields = [
            pa.field(name, self.kind if name == columns.VALUE else columns.TYPES[name]) for name in self.names
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def letter(batch: Any, row: int) -> Letter:
    """A row with all columns of the source as a dead letter."""
    headers = batch.column(columns.HEADERS)[row].as_py() or ()
    return Letter(
        offset=batch.column(columns.OFFSET)[row].as_py(),
        time_ms=(batch.column(columns.TIMESTAMP)[row].value or 0) // 1000,  # no datetime holds every time
        key=batch.column(columns.KEY)[row].as_py(),
        value=batch.column(columns.VALUE)[row].as_py(),
        headers=[(each["key"], each["value"]) for each in headers],
    )


def micro_batch() -> str | None:
    """The micro-batch of this task, if a streaming query runs it; a repetition has the same name."""
    context = TaskContext.get()
    query = None if context is None else context.getLocalProperty(QUERY)
    return f"{query} {context.getLocalProperty(BATCH)}" if context and query else None
