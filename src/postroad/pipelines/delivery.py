"""Rows of a pipeline into topics, each once, whoever repeats it and however Spark cuts its tasks.

The sink's identity (`spark.identity`) is that of a task, so as many tasks must come again in the same way.
Here it follows from the rows themselves: those that come from one partition of the source, in the order of
their offsets, are written as one producer, and the number of the pipeline's step is its epoch. Spark may put
partitions together in a task as it likes, as long as each comes whole and in order.

A rate is kept by each task for itself, in pieces of a tenth of a second; so there are as few tasks as the
rate allows (`lanes`), and each gets its share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from postroad.pipelines.running import Moved
from postroad.pipelines.shapes import without_nulls
from postroad.spark.identity import of_task
from postroad.spark.loads import loads
from postroad.spark.router import TopicPartition
from postroad.spark.rows import cast
from postroad.spark.task_writer import write_task
from postroad.spark.write_options import WriteOptions, parse_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE_TOPIC: Final = "source_topic"
SOURCE_PARTITION: Final = "source_partition"
SOURCE_OFFSET: Final = "source_offset"
SOURCE: Final = (SOURCE_TOPIC, SOURCE_PARTITION, SOURCE_OFFSET)

LANE_RATE: Final = 20_000.0  # messages a second that one task can surely do
PIECES_A_SECOND: Final = 10

_SCHEMA: Final = (
    "topic string, partition int, rows bigint, bytes bigint, "
    "spans array<struct<first: bigint, last: bigint, target: bigint, until: bigint>>"
)
_SPAN: Final[Any] = pa.struct([(name, pa.int64()) for name in ("first", "last", "target", "until")])
_ARROW: Final[Any] = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("spans", pa.list_(pa.field("element", _SPAN))),
    ]
)


class Span(NamedTuple):
    """Offsets of the source, both included, without a gap; `target`: where the first went, or -1.

    `until`: if more of the source follows there without a gap, of which no span tells, where that ends.
    """

    first: int
    last: int
    target: int = -1
    until: int = -1

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def reach(self) -> int:
        """From `target` up to this offset all is of the source."""
        return max(self.until, self.target + self.size)


class Delivered(NamedTuple):
    """What was sent of one partition of the source."""

    topic_partition: TopicPartition
    rows: int
    bytes: int
    spans: list[Span]


def moved_by(found: Iterable[Delivered]) -> Moved:
    """What was sent of all partitions."""
    rows = size = 0
    for each in found:
        rows, size = rows + each.rows, size + each.bytes
    return Moved(rows, size)


class Account(Protocol):
    """What a task keeps about the rows of one source partition, besides their number."""

    def begin(self, options: WriteOptions, topic_partition: TopicPartition) -> None:
        """Before the first row is sent."""

    def see(self, batch: Any) -> None:
        """Rows that are about to be sent."""

    def spans(self) -> list[Span]:
        """When all are stored."""


class Nothing:
    """An account of nothing."""

    def begin(self, options: WriteOptions, topic_partition: TopicPartition) -> None: ...

    def see(self, batch: Any) -> None: ...

    def spans(self) -> list[Span]:
        return []


class SourceOffsets:
    """Which offsets of the source were sent."""

    def __init__(self) -> None:
        self._seen: list[Any] = []

    def begin(self, options: WriteOptions, topic_partition: TopicPartition) -> None: ...

    def see(self, batch: Any) -> None:
        self._seen.append(batch.column(SOURCE_OFFSET).to_numpy(zero_copy_only=False))

    def spans(self) -> list[Span]:
        return runs(np.concatenate(self._seen)) if self._seen else []


@dataclass(frozen=True)
class Delivery:
    """One step of a job. `options` are the sink's; `rate` is messages a second for each task."""

    options: Mapping[str, str]
    job: str
    step: int
    rate: float | None = None
    account: Callable[[], Account] = Nothing

    def run(self, rows: DataFrame) -> list[Delivered]:
        """All rows are stored when it returns. They have the sink's columns, and those of `SOURCE`."""
        found = without_nulls(rows).mapInArrow(self.task, _SCHEMA).collect()
        return [
            Delivered((row.topic, row.partition), row.rows, row.bytes, [Span(*span) for span in row.spans])
            for row in found
        ]

    def task(self, batches: Iterable[Any]) -> Iterator[Any]:
        """In a task of Spark."""
        options = parse_write(self.options, streaming=False)
        in_loads = loads if self.rate is None else Pace(self.rate).loads
        for topic_partition, part in by_source(batches):
            account = self.account()
            account.begin(options, topic_partition)
            identity = of_task(f"pipeline {self.job} {topic_partition[0]}", topic_partition[1], self.step)
            rows, size = write_task(options, identity, _seen(part, account), in_loads)
            row = {"topic": topic_partition[0], "partition": topic_partition[1], "rows": rows, "bytes": size}
            row["spans"] = [span._asdict() for span in account.spans()]
            yield pa.RecordBatch.from_pylist([row], _ARROW)


def lanes(rate: float) -> int:
    """How many tasks share a rate."""
    return max(1, math.ceil(rate / LANE_RATE))


def by_source(batches: Iterable[Any]) -> Iterator[tuple[TopicPartition, Iterator[Any]]]:
    """The batches of each source partition, one partition after the other."""
    seen: set[TopicPartition] = set()
    pieces = (piece for batch in batches for piece in _pieces(batch))
    for topic_partition, those in groupby(pieces, key=lambda piece: piece[0]):
        assert topic_partition not in seen, (
            f"{topic_partition} came in two parts: its rows can't be told apart when repeated"
        )
        seen.add(topic_partition)
        yield topic_partition, (batch for _, batch in those)


def runs(offsets: Any) -> list[Span]:
    """Ascending offsets as spans."""
    ends = np.flatnonzero(np.diff(offsets) != 1)
    firsts, lasts = offsets[np.r_[0, ends + 1]], offsets[np.r_[ends, len(offsets) - 1]]
    return [Span(first, last) for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)]


class Pace:
    """Loads no faster than `rate` rows a second; time that was lost is not made up for."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._rows_max = max(1, int(rate / PIECES_A_SECOND))
        self._due = time.monotonic()

    def loads(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in map(cast, batches):
            for at in range(0, len(batch), self._rows_max):
                piece = batch.slice(at, self._rows_max)
                time.sleep(max(0.0, self._due - time.monotonic()))
                self._due = max(self._due, time.monotonic()) + len(piece) / self._rate
                yield piece


def _seen(batches: Iterable[Any], account: Account) -> Iterator[Any]:
    for batch in batches:
        account.see(batch)
        yield batch


def _pieces(batch: Any) -> Iterator[tuple[TopicPartition, Any]]:
    """Slices of one source partition each."""
    if not len(batch):
        return
    topics = batch.column(SOURCE_TOPIC).dictionary_encode()
    partitions = batch.column(SOURCE_PARTITION).to_numpy()
    numbers = topics.indices.to_numpy()
    changes = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(numbers) != 0)) + 1
    bounds = [0, *changes.tolist(), len(batch)]
    for first, end in pairwise(bounds):
        topic_partition = (topics.dictionary[int(numbers[first])].as_py(), int(partitions[first]))
        yield topic_partition, batch.slice(first, end - first)
