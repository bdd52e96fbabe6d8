"""The origin of a mirrored message, in its headers; and where it is now.

Each mirror adds five headers: cluster, topic, partition, offset and time of what it copied
(`wire.header_names`). A message that has been in a cluster before names it in one of them, and is not sent
there again: two clusters may mirror each other, and any number of them in a ring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from postroad.pipelines.delivery import (
    SOURCE_OFFSET,
    SOURCE_PARTITION,
    SOURCE_TOPIC,
    Span,
    runs,
)
from postroad.spark.cluster import Cluster
from postroad.spark.columns import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, TOPIC, VALUE, Columns
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import read_range
from postroad.spark.router import TopicPartition
from postroad.spark.write_options import WriteOptions
from postroad.wire import header_names as names

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SPANS_MAX: Final = 100  # of one partition and step: where a topic has many gaps the map is coarser


def mirrored(rows: DataFrame, source_id: str, target_id: str, prefix: str) -> DataFrame:
    """What goes to the target: with its origin, and without what has been there."""
    from pyspark.sql import functions as f

    been_there = (
        f"exists(headers, h -> h.key = '{names.ORIGIN_CLUSTER}' and h.value = {_sql_bytes(target_id)})"
    )
    return rows.where(f"headers is null or not {been_there}").select(
        f.col(TOPIC).alias(SOURCE_TOPIC),
        f.col(PARTITION).alias(SOURCE_PARTITION),
        f.col(OFFSET).alias(SOURCE_OFFSET),
        KEY,
        VALUE,
        f.concat(f.coalesce(f.col(HEADERS), f.array()), _origin(source_id)).alias(HEADERS),
        f.concat(f.lit(prefix), f.col(TOPIC)).alias(TOPIC),
        PARTITION,
        TIMESTAMP,
    )


class Positions:
    """An account of where messages went: which offset of the target each span of the source begins at.

    If the target's log has grown by just these messages, its first and last new ones being their first and
    last, all of them are there, one after the other. Otherwise (others write there, too, or some were stored
    by an earlier attempt) the log is read from where it ended when the step was planned: origins in it tell.
    """

    def __init__(self, source_id: str, prefix: str, planned_ends: Mapping[TopicPartition, int]) -> None:
        self._source_id = source_id
        self._prefix = prefix
        self._planned_ends = planned_ends
        self._seen: list[Any] = []

    def begin(self, options: WriteOptions, topic_partition: TopicPartition) -> None:
        self._source = topic_partition
        self._target = (self._prefix + topic_partition[0], topic_partition[1])
        self._cluster = options.cluster
        self._end = self._cluster.latest([self._target])[self._target]

    def see(self, batch: Any) -> None:
        self._seen.append(batch.column(SOURCE_OFFSET).to_numpy(zero_copy_only=False))

    def spans(self) -> list[Span]:
        offsets = np.concatenate(self._seen)
        with self._cluster as cluster:
            end = cluster.latest([self._target])[self._target]
            is_plain = (
                end - self._end == len(offsets)
                and self._is_at(cluster, self._end, int(offsets[0]))
                and self._is_at(cluster, end - 1, int(offsets[-1]))
            )
            found = _in_a_row(offsets, self._end) if is_plain else self._read_back(cluster, end)
        return thinned(found)

    def _is_at(self, cluster: Cluster, offset: int, source_offset: int) -> bool:
        return any(found == source_offset for _, found in self._origins(cluster, offset, offset + 1))

    def _read_back(self, cluster: Cluster, end: int) -> list[Span]:
        start = self._planned_ends.get(self._target, 0)
        spans: list[Span] = []
        for offset, source in self._origins(cluster, start, end):
            last = spans[-1] if spans else None
            if last is not None and source <= last.last:  # stored twice
                if offset == last.reach:
                    spans[-1] = last._replace(until=offset + 1)
                continue
            if last is not None and source == last.last + 1 and offset == last.target + last.size:
                spans[-1] = last._replace(last=source)
            else:
                spans.append(Span(source, source, offset))
        return spans

    def _origins(self, cluster: Cluster, start: int, end: int) -> Iterator[tuple[int, int]]:
        """(offset, offset at the source) of what is ours there."""
        part = OffsetRange(*self._target, start, end)
        wanted = (self._source_id, self._source[0], str(self._source[1]))
        for batch in read_range(cluster, part, Columns((OFFSET, HEADERS)), fail_on_data_loss=False):
            for row in batch.to_pylist():
                origin = nearest_origin([(each["key"], each["value"]) for each in row[HEADERS] or ()])
                if origin is not None and origin[:3] == wanted:
                    yield row[OFFSET], int(origin[3])


def nearest_origin(headers: Sequence[tuple[str, bytes | None]]) -> tuple[str, str, str, str] | None:
    """Cluster, topic, partition and offset, as the last mirror wrote them; None if there was none."""
    found = {name: (value or b"").decode(errors="replace") for name, value in headers}
    cluster, topic, partition, offset = (found.get(name, "") for name in _NAMED)
    return (cluster, topic, partition, offset) if offset.isdecimal() else None


def thinned(spans: list[Span]) -> list[Span]:
    """At most `SPANS_MAX` of them, the first and the last among them. What is in none is still translated,
    to an offset before it; and that it is of the source, too, the one before it tells."""
    if len(spans) <= SPANS_MAX:
        return spans
    told = spans[-1:]
    for span in reversed(spans[:-1]):
        after = told[-1]
        told.append(span._replace(until=after.reach) if span.reach == after.target else span)
    told.reverse()
    return [told[number] for number in np.linspace(0, len(spans) - 1, SPANS_MAX).astype(int).tolist()]


_NAMED: Final = (names.ORIGIN_CLUSTER, names.ORIGIN_TOPIC, names.ORIGIN_PARTITION, names.ORIGIN_OFFSET)


def _in_a_row(offsets: Any, target: int) -> list[Span]:
    spans = []
    for span in runs(offsets):
        spans.append(span._replace(target=target))
        target += span.size
    return spans


def _origin(source_id: str) -> Column:
    from pyspark.sql import functions as f

    facts = {
        names.ORIGIN_CLUSTER: f.lit(source_id),
        names.ORIGIN_TOPIC: f.col(TOPIC),
        names.ORIGIN_PARTITION: f.col(PARTITION).cast("string"),
        names.ORIGIN_OFFSET: f.col(OFFSET).cast("string"),
        names.ORIGIN_TIMESTAMP: f.unix_millis(TIMESTAMP).cast("string"),
    }
    return f.array(
        *(
            f.struct(f.lit(name).alias("key"), fact.cast("binary").alias("value"))
            for name, fact in facts.items()
        )
    )


def _sql_bytes(text: str) -> str:
    return f"X'{text.encode().hex()}'"
