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
from postroad.spark.router import Place
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
        self._cut_short: set[Place] = set()  # logs that lost their ends
        self._admitted_at = float("-inf")
        self._is_prepared = False

    # --- the driver's part, in the order in which Spark asks ---------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Where a query without a checkpoint starts."""
        options = self._options
        places = options.subscription.places(self._cluster)
        return offsets.to_json(
            offsets.resolve(options.starting, self._cluster, places, missing=options.late_start)
        )

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What comes from now on is for another run."""
        places = self._options.subscription.places(self._cluster, strict=False)
        self._target = self._cluster.latest(places)

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
        places = self._places(reached)
        for _ in range(LOOKS_AT_SHORT_LOG):
            latest = self._ends(places, reached)
            shorter = [place for place in latest if reached.get(place, 0) > latest[place]]
            if not shorter:
                self._topic_ids = self._cluster.topic_ids({topic for topic, _ in latest})
                return latest
            time.sleep(LOOK_PAUSE_S)
        self._report([Loss(place, (latest[place], reached[place]), (0, latest[place])) for place in shorter])
        self._cut_short = self._same_topics(shorter)
        return latest

    def _ends(self, places: list[Place], reached: Offsets) -> Offsets:
        """A partition that Trigger.AvailableNow did not see when it began stays where it is."""
        if self._target is None:
            return self._cluster.latest(places)
        known = reached | self._target
        return {place: known[place] for place in places if place in known}

    def _places(self, reached: Offsets) -> list[Place]:
        """Where losses matter a topic by name has to be there; otherwise the query goes on with the rest."""
        subscription = self._options.subscription
        try:
            places = subscription.places(self._cluster)
        except UnknownTopicOrPartition:
            places = subscription.places(self._cluster, strict=False)
            was_never_there = set(reached) <= set(places)
            if was_never_there and self._options.fail_on_data_loss:
                raise
        gone = sorted(set(reached) - set(places))
        self._report([Loss(place, (reached[place], reached[place]), None) for place in gone])
        return places

    def _same_topics(self, places: list[Place]) -> set[Place]:
        """Those whose topics were not made anew, as far as this reader knows."""
        ids = self._cluster.topic_ids({topic for topic, _ in places})
        return {place for place in places if self._topic_ids.get(place[0]) == ids[place[0]]}

    def _begin(self, reached: Offsets, end: Offsets) -> Offsets:
        """Where to read from: where the query was, or from the beginning of what is new."""
        shorter = [place for place in end if place in reached and reached[place] > end[place]]
        cut_short = {place: end[place] for place in shorter if place in self._cut_short}
        new = [
            place for place in end if place not in reached or (place in shorter and place not in cut_short)
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

    def _bytes_each(self, begin: Offsets, end: Offsets) -> dict[Place, float]:
        """About how many bytes an offset takes in each log, as stored: by a look at what comes next.

        An answer is bounded as a whole; a partition that it left out is taken for an average one.
        """
        behind = {place: begin[place] for place in end if begin[place] < end[place]}
        if not behind:
            return {}
        found: dict[Place, float] = {}
        for place, fetched in self._sample(behind).items():
            spans = [header.next_offset - header.base_offset for _, header in walk(fetched.data)]
            if spans:
                found[place] = len(fetched.data) / sum(spans)
        average = sum(found.values()) / max(1, len(found))
        return {place: found.get(place, average) for place in behind}

    def _sample(self, behind: Offsets) -> dict[Place, Fetched]:
        """What comes next in these logs, or first, where retention was quicker than the query."""
        sample_bytes = min(SAMPLE_BYTES * len(behind), FETCH_BYTES)
        try:
            return self._cluster.fetch_many(behind, sample_bytes)
        except OutsideLog:
            earliest = self._cluster.earliest(behind)
            first = {place: max(offset, earliest[place]) for place, offset in behind.items()}
            return self._cluster.fetch_many(first, sample_bytes)

    def _within(self, reached: Offsets, until: Offsets) -> list[OffsetRange]:
        """The ranges of a micro-batch, without what the logs no longer have."""
        busy = {place: end for place, end in until.items() if reached.get(place) != end}
        if not busy:
            return []
        is_known = {place: place in reached and reached[place] < end for place, end in busy.items()}
        begin = {place: reached[place] if is_known[place] else 0 for place in busy}
        begin |= {place: busy[place] for place in self._cut_short if place in busy and not is_known[place]}
        earliest = self._earliest(busy)
        found, losses = [], []
        for part in ranges.between(begin, busy):
            if part.place not in earliest:
                losses.append(Loss(part.place, (part.start, part.until), None))
                continue
            first = min(earliest[part.place], part.until)
            if first > part.start:
                losses.append(Loss(part.place, (part.start, first), (first, part.until)))
            found.append(part._replace(start=max(first, part.start)))
        self._report(losses)
        return [part for part in found if part.size]

    def _earliest(self, places: Offsets) -> Offsets:
        """Without the partitions that are no longer there."""
        try:
            return self._cluster.earliest(places)
        except UnknownTopicOrPartition:
            there = existing(self._cluster, sorted({topic for topic, _ in places}))
            return self._cluster.earliest([place for place in there if place in places])

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
