"""The streaming reader: which offsets the next micro-batch takes, and progress for those who watch.

Spark keeps one reader on the driver for as long as the query runs and asks it, for each trigger,
`latestOffset(start, limit)`, then `partitions(start, end)`; the checkpoint remembers both offsets before a
task runs. Executors get readers of their own, which only `read`.

1. `start` is what Spark has processed completely. So that is what is committed to the group, and not only
   in `commit`: that one comes a trigger later, and never for the last batch of Trigger.AvailableNow.
2. What `partitions` answers depends on its arguments, not on anything remembered: Spark repeats it after a
   restart and expects the same rows. A partition that is in `end` alone is new and read from its beginning;
   one that ends before it starts was made anew, unless this reader has seen its log lose its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from postroad.errors import (
    BrokerNotAvailable,
    ConfigurationError,
    TryAgain,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from postroad.spark import data_loss, offsets, ranges
from postroad.spark.cluster import FETCH_BYTES
from postroad.spark.data_loss import Loss
from postroad.spark.fetched import Fetched, OutsideLog
from postroad.spark.offsets import Offsets
from postroad.spark.options import ReadOptions
from postroad.spark.ranges import OffsetRange
from postroad.spark.reader import RangePartition, Task
from postroad.spark.router import TopicPartition
from postroad.spark.subscription import existing
from postroad.spark.workers import Dispatched
from postroad.wire.batch import walk

SAMPLE_BYTES: Final = 64 * 1024
LOOKS_AT_SHORT_LOG: Final = 3  # a new leader may tell an old end for a moment
LOOK_PAUSE_S: Final = 0.3
COMMIT_PATIENCE_S: Final = 2.0  # a trigger waits no longer for a group's coordinator

log = logging.getLogger(__name__)


class StreamReader(Dispatched, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ReadOptions, task: Task) -> None:
        self._options = options
        self._task = task
        self._cluster = options.cluster
        self._target: Offsets | None = None  # Trigger.AvailableNow: where the query is to end
        self._latest: Offsets | None = None
        self._committed: Offsets = {}
        self._topic_ids: dict[str, bytes] = {}  # by name, when their logs were last as long as before
        self._cut_short: set[TopicPartition] = set()  # logs that lost their ends
        self._admitted_at = float("-inf")
        self._is_prepared = False

    # --- the driver's part, in the order in which Spark asks ---------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint starts."""
        options = self._options
        topic_partitions = options.subscription.topic_partitions(self._cluster)
        return offsets.to_json(
            offsets.resolve(options.starting, self._cluster, topic_partitions, missing=options.late_start)
        )

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What comes from now on is for another run."""
        topic_partitions = self._options.subscription.topic_partitions(self._cluster, strict=False)
        self._target = self._cluster.latest(topic_partitions)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One of the limits, since Spark takes no more; whichever comes back, all of them are applied."""
        options = self._options
        if options.max_offsets is not None:
            return ReadMaxRows(options.max_offsets)
        if options.max_bytes is not None:
            return ReadMaxBytes(options.max_bytes)
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next micro-batch ends; `start` itself if there is nothing to do."""
        reached = offsets.from_json(start)
        self._commit_group(reached)
        self._latest = latest = self._look(reached)
        begin = self._begin(reached, latest)
        if not isinstance(limit, ReadAllAvailable) and not self._is_worth_it(begin, latest):
            return start
        self._admitted_at = time.monotonic()
        end = latest if isinstance(limit, ReadAllAvailable) else self._admit(begin, latest)
        return offsets.to_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """For the query's progress: what was there when the trigger fired."""
        return None if self._latest is None else offsets.to_json(self._latest)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if self._task.values is not None and not self._is_prepared:
            self._task.values.prepare(self._cluster)
            self._is_prepared = True
        reached, until = offsets.from_json(start), offsets.from_json(end)
        whole = self._within(reached, until)
        parts = ranges.split(whole, self._options.min_partitions, self._options.max_records)
        return [RangePartition(part) for part in parts]

    def commit(self, end: dict[str, Any]) -> None:
        self._commit_group(offsets.from_json(end))

    def stop(self) -> None:
        self._cluster.close()

    # --- the executors' part -------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangePartition)
        return self._task.read(partition.range)

    # --- what there is ---------------------------------------------------------------------------------

    def _look(self, reached: Offsets) -> Offsets:
        """The end of each partition that the query reads, now or when Trigger.AvailableNow began.

        Partitions that were reached and are gone are lost; so are offsets of a log that became shorter.
        """
        topic_partitions = self._topic_partitions(reached)
        for _ in range(LOOKS_AT_SHORT_LOG):
            latest = self._ends(topic_partitions, reached)
            shorter = [
                topic_partition
                for topic_partition in latest
                if reached.get(topic_partition, 0) > latest[topic_partition]
            ]
            if not shorter:
                self._topic_ids = self._cluster.topic_ids({topic for topic, _ in latest})
                return latest
            time.sleep(LOOK_PAUSE_S)
        self._report(
            [
                Loss(
                    topic_partition,
                    (latest[topic_partition], reached[topic_partition]),
                    (0, latest[topic_partition]),
                )
                for topic_partition in shorter
            ]
        )
        self._cut_short = self._same_topics(shorter)
        return latest

    def _ends(self, topic_partitions: list[TopicPartition], reached: Offsets) -> Offsets:
        """A partition that Trigger.AvailableNow did not see when it began stays where it is."""
        if self._target is None:
            return self._cluster.latest(topic_partitions)
        known = reached | self._target
        return {
            topic_partition: known[topic_partition]
            for topic_partition in topic_partitions
            if topic_partition in known
        }

    def _topic_partitions(self, reached: Offsets) -> list[TopicPartition]:
        """Where losses matter a topic by name has to be there; otherwise the query goes on with the rest."""
        subscription = self._options.subscription
        try:
            topic_partitions = subscription.topic_partitions(self._cluster)
        except UnknownTopicOrPartition:
            topic_partitions = subscription.topic_partitions(self._cluster, strict=False)
            was_never_there = set(reached) <= set(topic_partitions)
            if was_never_there and self._options.fail_on_data_loss:
                raise
        gone = sorted(set(reached) - set(topic_partitions))
        self._report(
            [
                Loss(topic_partition, (reached[topic_partition], reached[topic_partition]), None)
                for topic_partition in gone
            ]
        )
        return topic_partitions

    def _same_topics(self, topic_partitions: list[TopicPartition]) -> set[TopicPartition]:
        """Those whose topics were not made anew, as far as this reader knows."""
        ids = self._cluster.topic_ids({topic for topic, _ in topic_partitions})
        return {
            topic_partition
            for topic_partition in topic_partitions
            if self._topic_ids.get(topic_partition[0]) == ids[topic_partition[0]]
        }

    def _begin(self, reached: Offsets, end: Offsets) -> Offsets:
        """Where to read from: where the query was, or from the beginning of what is new."""
        shorter = [
            topic_partition
            for topic_partition in end
            if topic_partition in reached and reached[topic_partition] > end[topic_partition]
        ]
        cut_short = {
            topic_partition: end[topic_partition]
            for topic_partition in shorter
            if topic_partition in self._cut_short
        }
        new = [
            topic_partition
            for topic_partition in end
            if topic_partition not in reached
            or (topic_partition in shorter and topic_partition not in cut_short)
        ]
        return reached | cut_short | (self._cluster.earliest(new) if new else {})

    # --- how much of it --------------------------------------------------------------------------------

    def _is_worth_it(self, begin: Offsets, latest: Offsets) -> bool:
        least = self._options.min_offsets
        if least is None or self._target is not None:  # AvailableNow would wait for ever
            return True
        waited_ms = (time.monotonic() - self._admitted_at) * 1000
        return ranges.is_worth_it(begin, latest, least, waited_ms, self._options.max_delay_ms)

    def _admit(self, begin: Offsets, latest: Offsets) -> Offsets:
        end = latest
        if self._options.max_offsets is not None:
            end = ranges.admit_offsets(begin, end, self._options.max_offsets)
        if self._options.max_bytes is not None:
            end = ranges.admit_bytes(begin, end, self._bytes_each(begin, end), self._options.max_bytes)
        return end

    def _bytes_each(self, begin: Offsets, end: Offsets) -> dict[TopicPartition, float]:
        """About how many bytes an offset takes in each log, as stored: by a look at what comes next.

        An answer is bounded as a whole; a partition that it left out is taken for an average one.
        """
        behind = {
            topic_partition: begin[topic_partition]
            for topic_partition in end
            if begin[topic_partition] < end[topic_partition]
        }
        if not behind:
            return {}
        found: dict[TopicPartition, float] = {}
        for topic_partition, fetched in self._sample(behind).items():
            spans = [header.next_offset - header.base_offset for _, header in walk(fetched.data)]
            if spans:
                found[topic_partition] = len(fetched.data) / sum(spans)
        average = sum(found.values()) / max(1, len(found))
        return {topic_partition: found.get(topic_partition, average) for topic_partition in behind}

    def _sample(self, behind: Offsets) -> dict[TopicPartition, Fetched]:
        """What comes next in these logs, or first, where retention was quicker than the query."""
        sample_bytes = min(SAMPLE_BYTES * len(behind), FETCH_BYTES)
        try:
            return self._cluster.fetch_many(behind, sample_bytes)
        except OutsideLog:
            earliest = self._cluster.earliest(behind)
            first = {
                topic_partition: max(offset, earliest[topic_partition])
                for topic_partition, offset in behind.items()
            }
            return self._cluster.fetch_many(first, sample_bytes)

    def _within(self, reached: Offsets, until: Offsets) -> list[OffsetRange]:
        """The ranges of a micro-batch, without what the logs no longer have."""
        busy = {
            topic_partition: end
            for topic_partition, end in until.items()
            if reached.get(topic_partition) != end
        }
        if not busy:
            return []
        is_known = {
            topic_partition: topic_partition in reached and reached[topic_partition] < end
            for topic_partition, end in busy.items()
        }
        begin = {
            topic_partition: reached[topic_partition] if is_known[topic_partition] else 0
            for topic_partition in busy
        }
        begin |= {
            topic_partition: busy[topic_partition]
            for topic_partition in self._cut_short
            if topic_partition in busy and not is_known[topic_partition]
        }
        earliest = self._earliest(busy)
        found, losses = [], []
        for part in ranges.between(begin, busy):
            if part.topic_partition not in earliest:
                losses.append(Loss(part.topic_partition, (part.start, part.until), None))
                continue
            first = min(earliest[part.topic_partition], part.until)
            if first > part.start:
                losses.append(Loss(part.topic_partition, (part.start, first), (first, part.until)))
            found.append(part._replace(start=max(first, part.start)))
        self._report(losses)
        return [part for part in found if part.size]

    def _earliest(self, topic_partitions: Offsets) -> Offsets:
        """Without the partitions that are no longer there."""
        try:
            return self._cluster.earliest(topic_partitions)
        except UnknownTopicOrPartition:
            there = existing(self._cluster, sorted({topic for topic, _ in topic_partitions}))
            return self._cluster.earliest(
                [topic_partition for topic_partition in there if topic_partition in topic_partitions]
            )

    # --- telling ---------------------------------------------------------------------------------------

    def _report(self, losses: list[Loss]) -> None:
        data_loss.report(self._cluster, losses, fail=self._options.fail_on_data_loss)

    def _commit_group(self, reached: Offsets) -> None:
        """Progress as a consumer group's offsets. A coordinator that is away for a moment stops no query."""
        group = self._options.commit_group
        if group is None or reached == self._committed or not reached:
            return
        try:
            self._cluster.commit(group, reached, COMMIT_PATIENCE_S)
        except UnknownMemberId:
            raise ConfigurationError(
                f"Option commitGroup = {group!r}: consumers are members of this group, and their progress is "
                "not this query's. Choose a group that nobody else uses."
            ) from None
        except (TryAgain, BrokerNotAvailable) as error:
            log.warning("Progress is not committed to group %s; the next trigger does: %s", group, error)
        else:
            self._committed = dict(reached)
