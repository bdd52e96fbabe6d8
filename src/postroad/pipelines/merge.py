"""merge: a topic's keys → a table with a row for each, as it is now; each change once.

A compacted topic, or the events of a database (Debezium's), is read in steps: a range of offsets of each
partition. What the step makes of the table is one commit, which also says up to where each partition is
merged. So the table itself is all that a merge remembers: wherever it is killed, and wherever it is started
again, it goes on where the table ends. Of two that run at a time one commits, and the other looks again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from postroad.pipelines.changes import Form, Reading
from postroad.pipelines.errors import PipelineError, WrongTable
from postroad.pipelines.running import Progress, Report
from postroad.pipelines.steps import Stopped, read_ranges, run_until
from postroad.pipelines.tables import TableAddress
from postroad.pipelines.tables.derived import KEPT_S_MIN, Change, DerivedTable, Loaded, create_derived
from postroad.pipelines.tables.growing_columns import fits_table, is_plain, merged
from postroad.pipelines.tables.location import Location
from postroad.pipelines.tables.merged import (
    CHANGES_DDL,
    OUTCOME_DDL,
    RESERVED,
    Merged,
    Merging,
    base_schema,
    group_name,
    with_kinds,
)
from postroad.pipelines.tables.schema import Kind, kind_of
from postroad.pipelines.tables.table import COMMIT_ATTEMPTS, Conflict, over_conflicts
from postroad.pipelines.tables.topics import made_anew, topic_number
from postroad.spark import ranges
from postroad.spark.cluster import Cluster, TopicInfo
from postroad.spark.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_OFFSETS: Final = 1_000_000  # of a step: what a kill may cost
TASK_OFFSETS: Final = 250_000
BUCKETS: Final = 8
BUCKETS_MAX: Final = 10_000
KEEP_S: Final = 24 * 3600.0
TIDY_EVERY_S: Final = 3600.0

_TOPIC: Final = "topic"  # notes
_PARTITIONS: Final = "partitions"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MergeSettings:
    """What to merge, and how. `to` is a directory or a URL; `key` are columns, none: the message's key."""

    bootstrap: str
    topic: str
    to: str
    format: Literal["delta", "iceberg"] = "delta"
    values: Form = "json"
    key: Sequence[str] = ()
    json_kinds: Mapping[str, Kind] = field(default_factory=dict)  # types that columns must have
    once: bool = False  # stop when all is merged that was there at the start
    every_s: float = 10.0  # otherwise: how often it looks for new messages
    buckets: int = BUCKETS  # how many tasks share a step
    bad_rows: Literal["fail", "drop"] = "fail"
    accepts_loss: bool = False  # go on where messages were deleted before they were merged
    keep_s: float = KEEP_S  # how long files of earlier states are kept for those who read them
    step_offsets: int = STEP_OFFSETS
    catalog: str = ""
    table: str = "postroad.merged"

    @property
    def address(self) -> TableAddress:
        """With the whole path: tasks have another working directory."""
        return TableAddress(str(Location(self.to)), self.format, self.catalog, self.table)


@dataclass
class MergeResult:
    """What a run did. `ends`: the offset after the last one merged, by partition."""

    upserts: int = 0
    deletes: int = 0
    bad: int = 0
    bytes: int = 0
    steps: int = 0
    ends: dict[str, int] | None = None


class _Standing(NamedTuple):
    """The table now, and up to where it is merged."""

    loaded: Loaded
    ends: Offsets


def merge(
    spark: SparkSession,
    settings: MergeSettings,
    *,
    report: Report = lambda progress: None,
    stop: threading.Event | None = None,
) -> MergeResult:
    """Runs until all is merged (`once`), or until `stop` is set.

    Before anything is written it is an error if the cluster or the topic is not there, if the topic is not
    the one that was merged, or if something else than this merge's table lies at the path.
    """
    _check(settings)
    with Cluster(settings.bootstrap, isolation="read_committed") as cluster:
        cluster.topics([settings.topic])
        table = merged_table(settings)
        return _Run(spark, settings, cluster, table, stop or threading.Event()).run(report)


def merged_table(settings: MergeSettings) -> DerivedTable:
    """The table, created if nothing is there. PipelineError if something else is."""
    _check(settings)
    columns = with_kinds(_base(settings), settings.json_kinds)
    return create_derived(settings.address, columns, _settings(settings))


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: MergeSettings,
        cluster: Cluster,
        table: DerivedTable,
        stop: threading.Event,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._cluster = cluster
        self._table = table
        self._stop = stop
        self._result = MergeResult()
        self._next_tidy = time.monotonic() + TIDY_EVERY_S

    def run(self, report: Report) -> MergeResult:
        info, latest = self._look()
        standing = self._standing(info)
        total = sum(max(0, end - standing.ends.get(at, 0)) for at, end in latest.items())
        done = 0
        while not self._stop.is_set():
            start = self._start(standing.ends, latest)
            until = ranges.admit_offsets(start, latest, self._settings.step_offsets)
            if parts := ranges.between(start, until):
                began, bytes_before = time.monotonic(), self._result.bytes
                try:
                    standing = self._step(info, standing, start, until)
                except Stopped:
                    break
                rows = sum(part.size for part in parts)
                done += rows
                took_s = time.monotonic() - began
                left = sum(max(0, end - standing.ends.get(at, 0)) for at, end in latest.items())
                size = self._result.bytes - bytes_before
                report(Progress(self._result.steps, rows, done, max(total, done), took_s, left, size))
                continue
            if self._settings.once:
                break
            self._tidy_now_and_then()
            if self._stop.wait(self._settings.every_s):
                break
            info, latest = self._look()
            standing = self._standing(info)
        if self._settings.once:
            self._tidy()
        self._result.ends = {str(partition): end for (_, partition), end in sorted(standing.ends.items())}
        return self._result

    def _look(self) -> tuple[TopicInfo, Offsets]:
        info = self._cluster.topics([self._settings.topic])[self._settings.topic]
        return info, self._cluster.latest(info.topic_partitions)

    def _standing(self, info: TopicInfo) -> _Standing:
        topic = self._settings.topic
        count = self._table.load([_PARTITIONS]).notes.get(_PARTITIONS, 0)
        loaded = self._table.load([_TOPIC, _PARTITIONS, *map(_end, range(max(count, len(info.partitions))))])
        ends = {
            (topic, number): loaded.notes[_end(number)]
            for number in range(count)
            if _end(number) in loaded.notes
        }
        missing = [number for _, number in ends if number not in info.partitions]
        known = {topic: loaded.notes.get(_TOPIC, 0)}
        if missing or made_anew(known, {topic: topic_number(info.id)}) is not None:
            raise PipelineError(
                f"{topic} is not the topic that was merged: it was deleted and created anew, or this is "
                "another cluster. Merge it into a directory of its own; this one keeps the old one"
            )
        if foreign := sorted({file.group for file in loaded.files.values()} - self._groups()):
            raise WrongTable(
                f"{self._settings.to} has files that no merge wrote ({foreign[0]}…): another program writes "
                "to it, or compacts it. Leave that to the merge, and merge the topic into another directory"
            )
        return _Standing(loaded, ends)

    def _groups(self) -> set[str]:
        return {group_name(bucket) for bucket in range(self._settings.buckets)}

    def _start(self, ends: Offsets, latest: Offsets) -> Offsets:
        """Where the next step begins; PipelineError if messages are gone, unless that is accepted."""
        earliest = self._cluster.earliest(list(latest))
        for at, end in ends.items():
            if end > latest.get(at, end):
                raise PipelineError(
                    f"{at[0]}/{at[1]} is merged up to offset {end}, and it ends at {latest[at]}: it has lost "
                    "messages. Merge it into another directory"
                )
        lost = {at: first for at, first in earliest.items() if ends.get(at, first) < first}
        if lost and not self._settings.accepts_loss:
            (topic, number), first = min(lost.items())
            raise PipelineError(
                f"{topic}/{number}: offsets {ends[topic, number]} to {first - 1} were deleted before they "
                "were merged. To go on without them say --accept-loss"
            )
        return {at: max(ends.get(at, 0), first) for at, first in earliest.items()}

    def _step(self, info: TopicInfo, standing: _Standing, start: Offsets, until: Offsets) -> _Standing:
        """The changes from `start` to `until` are in the table, once; gives how it stands then, which is the
        same step by somebody else, or more, if others merge, too."""
        begun = standing.ends
        for _ in range(COMMIT_ATTEMPTS):
            if standing.ends != begun:
                return standing  # somebody else has gone on: plan anew
            outcomes, kinds = self._work(standing.loaded, start, until)
            change = Change(
                with_kinds(_base(self._settings), kinds),
                self._notes(info, until),
                [file for each in outcomes for file in each.added],
                [file for each in outcomes for file in each.removed],
            )
            try:
                self._table.commit(standing.loaded, change)
            except Conflict as conflict:
                log.info("%s has moved on (%s): looking again", self._table.location, conflict)
                standing = self._standing(info)
                if all(file.path not in standing.loaded.files for file in change.added):
                    self._discard(outcomes)
                elif change.added:  # it was our own commit, whose answer was lost
                    self._count(outcomes)
                    return standing
                continue
            self._count(outcomes)
            return self._standing(info)
        raise PipelineError(
            f"{self._table.location} is written by too many others at once: stop some of them"
        )

    def _work(self, loaded: Loaded, start: Offsets, until: Offsets) -> tuple[list[Merged], dict[str, Kind]]:
        """What tasks did, all by the same columns.

        Tasks that meet a new column at once may take it for different ones. Then all is done again by tasks
        that know what it is.
        """
        base = _base(self._settings)
        known = {field.name: kind_of(field.type) for field in loaded.schema if field.name not in base.names}
        new = {name: kind for name, kind in self._settings.json_kinds.items() if name not in known}
        wanted: Mapping[str, Kind] = {**known, **new}
        while True:
            outcomes = self._outcomes(loaded, wanted, start, until)
            kinds = merged(wanted, [outcome.kinds for outcome in outcomes])
            if all(fits_table(outcome.kinds, kinds) for outcome in outcomes):
                return outcomes, kinds
            self._discard(outcomes)
            wanted = kinds

    def _outcomes(
        self, loaded: Loaded, kinds: Mapping[str, Kind], start: Offsets, until: Offsets
    ) -> list[Merged]:
        settings = self._settings
        work = Merging(
            settings.address,
            settings.topic,
            _reading(settings),
            settings.buckets,
            settings.bad_rows == "fail",
            kinds,
            {
                group: tuple(files)
                for group, files in groupby(sorted(loaded.files.values()), key=lambda file: file.group)
            },
        )
        parts = ranges.between(start, until)
        loss = str(not settings.accepts_loss).lower()

        def run() -> list[Any]:
            rows = read_ranges(
                self._spark,
                settings.bootstrap,
                parts,
                includeHeaders="false",
                failOnDataLoss=loss,
                maxRecordsPerPartition=str(TASK_OFFSETS),
            )
            changes = rows.mapInArrow(work.changes, CHANGES_DDL)
            return (
                changes.repartitionById(settings.buckets, "bucket")
                .mapInArrow(work.merge, OUTCOME_DDL)
                .collect()
            )

        return [
            msgspec.json.decode(row.outcome, type=Merged) for row in run_until(self._spark, run, self._stop)
        ]

    def _notes(self, info: TopicInfo, until: Offsets) -> dict[str, int]:
        notes = {_end(partition): end for (_, partition), end in until.items()}
        return {**notes, _PARTITIONS: max(info.partitions) + 1, _TOPIC: topic_number(info.id)}

    def _count(self, outcomes: Sequence[Merged]) -> None:
        self._result.steps += 1
        for outcome in outcomes:
            self._result.upserts += outcome.upserts
            self._result.deletes += outcome.deletes
            self._result.bad += outcome.bad
            self._result.bytes += outcome.bytes

    def _discard(self, outcomes: Sequence[Merged]) -> None:
        for outcome in outcomes:
            for file in outcome.added:
                self._table.location.delete(f"{self._table.data}{file.path}")

    def _tidy_now_and_then(self) -> None:
        """Rows come first: what fails is told, and ends no merge."""
        if time.monotonic() >= self._next_tidy:
            try:
                self._tidy()
            except Exception as error:
                log.warning("%s: not tidied now, the next time will do: %s", self._table.location, error)
            self._next_tidy = time.monotonic() + TIDY_EVERY_S

    def _tidy(self) -> None:
        try:
            over_conflicts(partial(self._table.tidy, self._settings.keep_s))
        except Conflict:
            log.warning("%s changes too fast to be tidied now", self._table.location)


def _end(partition: int) -> str:
    return f"end/{partition}"


def _reading(settings: MergeSettings) -> Reading:
    return Reading(settings.values, tuple(settings.key))


def _base(settings: MergeSettings) -> Any:
    return base_schema(settings.values, tuple(settings.key))


def _settings(settings: MergeSettings) -> dict[str, str]:
    """What can't be another one for a table that is there."""
    return {
        "merges": settings.topic,
        "values": settings.values,
        "key": ",".join(settings.key),
        "buckets": str(settings.buckets),
    }


def _check(settings: MergeSettings) -> None:
    if not 1 <= settings.buckets <= BUCKETS_MAX:
        raise PipelineError(f"buckets are from 1 to {BUCKETS_MAX}, not {settings.buckets}")
    if settings.keep_s < KEPT_S_MIN:
        raise PipelineError("earlier states are kept for at least an hour: somebody may be reading them")
    if settings.values == "bytes" and settings.key:
        raise PipelineError("values that are bytes have no columns that could be the key: leave it out")
    if len({name.lower() for name in settings.key}) < len(settings.key):
        raise PipelineError(f"--key {','.join(settings.key)}: a column is named twice")
    for name in settings.key:
        if not is_plain(name) or name.lower() in RESERVED:
            raise PipelineError(f"--key: {name!r} can't be the name of a column")
