"""Reads ranges of offsets as Arrow: the batch reader, and what each task of it and of a stream does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from postroad.errors import ConfigurationError, UnknownTopicOrPartition
from postroad.spark import data_loss, offsets, ranges, workers
from postroad.spark.cluster import FETCH_BYTES, Cluster
from postroad.spark.columns import Columns
from postroad.spark.data_loss import Loss
from postroad.spark.decode import decode
from postroad.spark.fetched import Fetched, OutsideLog
from postroad.spark.options import ReadOptions
from postroad.spark.ranges import OffsetRange
from postroad.spark.router import TopicPartition
from postroad.spark.wanted import EVERYTHING, Wanted, of_filters

if TYPE_CHECKING:  # most reads have nothing to do with JSON
    from postroad.spark.parsed_values import ParsedValues

FETCH_BYTES_MIN: Final = 64 * 1024
BYTES_EACH: Final = 1024.0  # that a record takes, until there is one to look at
EMPTY_FETCHES_MAX: Final = 4  # in a row, of half a second each: then there is nothing more


class RangePartition(InputPartition):
    """What one task reads."""

    def __init__(self, range_: OffsetRange) -> None:
        super().__init__(range_)

    @property
    def range(self) -> OffsetRange:
        found: OffsetRange = self.value
        return found


class Task(NamedTuple):
    """How a range is read on an executor: pickled by the driver, once for all tasks."""

    options: ReadOptions
    columns: Columns
    values: ParsedValues | None = None
    wanted: Wanted = EVERYTHING

    def read(self, part: OffsetRange) -> Iterator[Any]:
        with workers.connected(self.options.cluster) as cluster:
            batches = read_range(
                cluster,
                part,
                self.columns,
                fail_on_data_loss=self.options.fail_on_data_loss,
                fetch_bytes=self.options.fetch_bytes,
                times_ms=self.wanted.times_ms if self.wanted.bounds_times else None,
            )
            yield from batches if self.values is None else self.values.convert(cluster, part, batches)
        workers.freeze()


class BatchReader(workers.Dispatched, DataSourceReader):
    """A read of what there is, from the starting to the ending offsets."""

    def __init__(self, options: ReadOptions, task: Task) -> None:
        self._options = options
        self._task = task

    def partitions(self) -> list[InputPartition]:
        """On the driver, once for each execution: the ranges are fixed before a task runs."""
        with self._options.cluster as cluster:
            planned = self._task.wanted.within(plan(self._options, cluster), cluster)
            if self._task.values is not None:
                self._task.values.prepare(cluster)
        parts = ranges.split(planned, self._options.min_partitions, self._options.max_records)
        return [RangePartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, RangePartition):  # Spark's way to say that there are no partitions
            return iter(())
        return self._task.read(partition.range)


class FilteringReader(BatchReader):
    """Reads what the query's filters may take. For sessions with `spark.sql.python.filterPushdown.enabled`:
    without it Spark refuses every reader that has this method."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 (Spark's)
        """All are Spark's to apply, too: a bound here is not always exact."""
        self._task = self._task._replace(wanted=of_filters(filters))
        return filters


def plan(options: ReadOptions, cluster: Cluster) -> list[OffsetRange]:
    """The whole range of each partition. DataLost if the log has lost its beginning and that matters."""
    topic_partitions = options.subscription.topic_partitions(cluster)
    earliest = cluster.earliest(topic_partitions)  # first, and the ends last: both may move meanwhile
    start = offsets.resolve(options.starting, cluster, topic_partitions, missing=options.late_start)
    until = offsets.resolve(options.ending, cluster, topic_partitions)
    latest = cluster.latest(topic_partitions)
    for topic_partition in topic_partitions:
        _check_bounds(
            topic_partition, start[topic_partition], until[topic_partition], latest[topic_partition]
        )
    losses = [
        Loss(
            topic_partition,
            (start[topic_partition], min(earliest[topic_partition], until[topic_partition])),
            (earliest[topic_partition], latest[topic_partition]),
        )
        for topic_partition in topic_partitions
        if start[topic_partition] < earliest[topic_partition]
        and start[topic_partition] < until[topic_partition]
    ]
    data_loss.report(cluster, losses, fail=options.fail_on_data_loss)
    return ranges.between(
        {
            topic_partition: max(start[topic_partition], earliest[topic_partition])
            for topic_partition in topic_partitions
        },
        until,
    )


def _check_bounds(topic_partition: TopicPartition, start: int, until: int, latest: int) -> None:
    """Records that were never there are not lost: somebody has written a wrong number."""
    for name, offset in (("starting", start), ("ending", until)):
        if offset > latest:
            raise ConfigurationError(
                f"The {name} offset of {topic_partition[0]}/{topic_partition[1]} is {offset:,}, "
                f"but the log ends at {latest:,}."
            )


def read_range(
    cluster: Cluster,
    part: OffsetRange,
    columns: Columns,
    *,
    fail_on_data_loss: bool = True,
    fetch_bytes: int = FETCH_BYTES,
    times_ms: tuple[int, int] | None = None,
) -> Iterator[Any]:
    """The records of the range, in order, as Arrow record batches of these columns.

    `times_ms`: only those from the one time to the other, both included.

    Gaps that compaction and transactions leave are passed over. Restarts of brokers are waited for, as long
    as the cluster has patience. DataLost if records vanish meanwhile, unless that doesn't matter.
    """
    at, empty, bytes_each = part.start, 0, BYTES_EACH
    while at < part.until:
        wanted = max(FETCH_BYTES_MIN, int((part.until - at) * bytes_each))  # not more than is of use
        try:
            fetched = cluster.fetch(part.topic_partition, at, min(fetch_bytes, wanted))
        except OutsideLog as outside:
            at = _after_loss(cluster, part, at, outside, fail_on_data_loss)
            continue
        except UnknownTopicOrPartition:
            loss = Loss(part.topic_partition, (at, part.until), None)
            return data_loss.report(cluster, [loss], fail=fail_on_data_loss)
        if fetched.next_offset > at:
            yield from decode(
                fetched.data, part.topic_partition, at, part.until, columns, fetched.aborted, times_ms
            )
            bytes_each = 2 * len(fetched.data) / (fetched.next_offset - at)  # twice: sizes vary
            at, empty = fetched.next_offset, 0
        elif (empty := empty + 1) >= EMPTY_FETCHES_MAX:
            return _check_end(cluster, part, at, fetched, fail_on_data_loss)


def _after_loss(cluster: Cluster, part: OffsetRange, at: int, outside: OutsideLog, fail: bool) -> int:
    """Where to go on: behind what retention took, or at the end if the log has become shorter."""
    going_on = min(outside.start, part.until) if at < outside.start else part.until
    loss = Loss(part.topic_partition, (at, going_on), (outside.start, outside.end))
    data_loss.report(cluster, [loss], fail=fail)
    return going_on


def _check_end(cluster: Cluster, part: OffsetRange, at: int, fetched: Fetched, fail: bool) -> None:
    """Nothing comes. Compaction took all that there was, unless the log has become shorter."""
    if fetched.end < part.until:
        loss = Loss(part.topic_partition, (at, part.until), (fetched.log_start, fetched.end))
        data_loss.report(cluster, [loss], fail=fail)
