"""redrive: dead letters at scale, filtered and repaired with SQL or a function, back to their topics; each
once.

The letters that are there when it begins are looked at in steps. Each step is noted with its filter, its
repairs and the letters that it leaves out before it is sent (`journal`, `delivery`), and what it sent is
marked (`redriven`). So a redrive that was interrupted is finished first by the next one, whatever that one
asks for, and no letter that was sent is ever sent again. A letter that does not match, for which the
function gives None, or whose topic does not exist, stays for another time.

A step whose letters are partly deleted since, or whose function is another, can't be done again as it was,
and which of its letters were sent nobody knows. Then somebody has to say that it is given up.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from postroad.errors import UnknownTopicOrPartition
from postroad.pipelines import delivery, redriven
from postroad.pipelines.delivery import Delivery, SourceOffsets, Span, moved_by
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.failures import spark_failures
from postroad.pipelines.journal import Journal, Overtaken
from postroad.pipelines.letters import ADDRESSEE, SETTABLE, letters, load, repaired
from postroad.pipelines.redriven import Spans
from postroad.pipelines.running import Moved, Report
from postroad.pipelines.steps import StepState, Stopped, read_step, run_steps, run_until, step_size
from postroad.spark.cluster import Cluster
from postroad.spark.columns import ALL_WITH_HEADERS
from postroad.spark.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEP_LETTERS: Final = 50_000  # what a step leaves out is part of its note, which has to fit into a message
STATE: Final = "state"
UNFINISHED: Final = "a redrive that was interrupted comes first, and could not be finished"
GIVE_UP: Final = (
    "If that can't be mended give it up with --abandon: what it has sent already may then be sent again"
)
TO_ALL: Final = "--to-all sends it to all that do"
HOMELESS: Final = "it does not say from which topic it came: name one with --to"


@dataclass(frozen=True)
class RedriveSettings:
    """Which letters, and how they are repaired. `name` is a subscription, or a dead-letter topic itself."""

    bootstrap: str
    name: str
    where: str | None = None
    sets: Mapping[str, str] = field(default_factory=dict)  # column: SQL expression
    function: str | None = None  # module:name
    to: str | None = None  # None: each to its own topic
    to_all: bool = False  # for all subscriptions of its topic, not only for the one in which it died
    rate: float | None = None  # letters a second
    is_dry: bool = False  # only count them
    abandons: bool = False  # give up what was interrupted: letters of it may be sent again


@dataclass
class Redriven:
    """What a run did. `failed`: how many letters could not be sent, by the reason; they stay."""

    topic: str
    seen: int = 0
    sent: int = 0
    kept: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    finished: int = 0  # letters of an interrupted step that was done again; few were still to be sent
    abandoned: int = 0  # letters of one that was given up, at most; some of them may have been sent
    is_complete: bool = False  # it looked at all letters


def redrive(
    spark: SparkSession,
    settings: RedriveSettings,
    *,
    report: Report = lambda progress: None,
    stop: threading.Event | None = None,
) -> Redriven:
    """Runs until all letters were looked at, or until `stop` is set.

    Before anything is sent it is an error if there are no such letters, or an expression or the function is
    wrong. A function that fails for a letter is an error, too; letters of its step are not sent.
    """
    _check(spark, settings)
    stopping = stop or threading.Event()
    topic = redriven.dead_topic(settings.bootstrap, settings.name)
    with Cluster(settings.bootstrap) as cluster:
        info = _found(cluster, settings, topic)
        run = _Run(spark, settings, cluster, f"redrive {topic} {info.id.hex()} ", topic, stopping)
        topic_partitions = info.topic_partitions
        return run.run(cluster.earliest(topic_partitions), cluster.latest(topic_partitions), report)


Target = tuple[str, str | None]
"""A topic, and the subscription there that letters are for; None: all."""


class Counted(NamedTuple):
    """A step's letters before they are sent: looked at, and going, by topic (None: they don't say) and by
    the subscription there that they are for."""

    seen: int
    going: dict[tuple[str | None, str | None], int]


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: RedriveSettings,
        cluster: Cluster,
        job: str,
        topic: str,
        stop: threading.Event,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._cluster = cluster
        self._job = job
        self._journal = Journal(cluster, job)
        self._stop = stop
        self._result = Redriven(topic)
        self._done: Spans = {}
        self._held: dict[tuple[str, str], bool] = {}

    def run(self, begin: Offsets, end: Offsets, report: Report) -> Redriven:
        result, settings = self._result, self._settings
        numbers = {partition: offset for (_, partition), offset in end.items()}
        accepted = redriven.accepted(settings.bootstrap, result.topic, numbers)
        before = self._finish_step(begin)
        if before is None:
            return result
        self._done = redriven.union(accepted or {}, redriven.read_marks(self._journal))
        state = replace(StepState.new(self._arguments(), begin, end), step=before)
        if settings.is_dry:
            self._count_all(state)
        else:
            done = run_steps(
                self._journal, STATE, state, self._plan, self._work, report=report, stop=self._stop
            )
            result.is_complete = done.at == done.end
            result.sent = done.rows
            if accepted is not None:
                self._accept(accepted)
        result.kept = result.seen - result.sent - sum(result.failed.values())
        return result

    def _finish_step(self, begin: Offsets) -> int | None:
        """The number of the next step, when that of an interrupted run is done; None if stopped within."""
        note = self._journal.get(STATE)
        if note is None:
            return 0
        state = StepState.of(note)
        if not state.is_planned or self._settings.is_dry:
            return state.step
        if self._settings.abandons:
            self._result.abandoned = sum(state.until.values()) - sum(state.at.values())
            state = state.done(0)
        else:
            try:
                state = self._finished(state, begin)
            except Stopped:
                return None
            except Overtaken:
                raise
            except PipelineError as error:
                raise PipelineError(f"{UNFINISHED}: {error}. {GIVE_UP}") from error
        self._journal.put(STATE, state.note())
        return state.step

    def _finished(self, state: StepState, begin: Offsets) -> StepState:
        """The step is done again, but for what has nothing left to be sent, or nowhere to go."""
        first = {
            topic_partition: begin[topic_partition]
            for topic_partition, at in state.at.items()
            if at < begin[topic_partition]
        }
        for (topic, partition), offset in first.items():
            if offset < state.until[topic, partition]:
                raise PipelineError(f"letters of {topic}/{partition} before offset {offset} are deleted")
        left = state.without(
            {
                topic_partition: max(offset, state.until[topic_partition])
                for topic_partition, offset in first.items()
            }
        )
        if not left.is_planned:
            return left
        targets = [target for target in _targets_of(left) if self._exists(target[0])]
        self._result.finished = self._work(replace(left, extra={**left.extra, "targets": targets})).rows
        return left.done(self._result.finished)

    def _plan(self, state: StepState) -> StepState | None:
        size = min(STEP_LETTERS, step_size(state, self._settings.rate))
        planned = state.planned(size)
        if not planned.is_planned:
            return None
        excluded = self._excluded(planned)
        try:
            counted = run_until(self._spark, lambda: self._count(planned, excluded), self._stop)
        except Stopped:
            return None
        targets = self._targets(counted)
        return replace(planned, extra={"targets": targets, "excluded": _listed(excluded)})

    def _work(self, state: StepState) -> Moved:
        rate = self._settings.rate
        tasks = None if rate is None else delivery.lanes(rate)
        step = Delivery(
            {"kafka.bootstrap.servers": self._settings.bootstrap},
            self._job,
            state.step,
            rate=None if rate is None or tasks is None else rate / tasks,
            account=SourceOffsets,
        )
        excluded = _spans(state.extra["excluded"])

        def send() -> list[delivery.Delivered]:
            _, rows = self._rows(state, excluded)
            rows = _going_to(rows, targets)
            return step.run(rows if tasks is None else rows.coalesce(tasks))

        targets = _targets_of(state)
        found = run_until(self._spark, send, self._stop) if targets else []
        redriven.write_marks(self._journal, {each.topic_partition[1]: each.spans for each in found})
        return moved_by(found)

    def _rows(self, state: StepState, excluded: Spans) -> tuple[DataFrame, DataFrame]:
        """The letters of a step, and what becomes of those that match."""
        found = letters(read_step(self._spark, self._settings.bootstrap, state), excluded)
        arguments = state.arguments
        to_all = arguments.get("to_all", True)  # as a step was noted before there was a choice
        return found, repaired(
            found, arguments["where"], arguments["sets"], arguments["function"], arguments["to"], to_all
        )

    def _count(self, state: StepState, excluded: Spans) -> Counted:
        """Every letter passes the filter and the function once before any is sent."""
        found, rows = self._rows(state, excluded)
        groups = rows.groupBy("topic", ADDRESSEE).count().collect()
        going = {(row.topic, row[ADDRESSEE]): row["count"] for row in groups}
        return Counted(found.count(), going)

    def _count_all(self, state: StepState) -> None:
        while (planned := state.planned(STEP_LETTERS)).is_planned and not self._stop.is_set():
            excluded = self._excluded(planned)
            with spark_failures():
                counted = self._count(planned, excluded)
            targets = self._targets(counted)
            self._result.sent += sum(counted.going[target] for target in targets)
            state = planned.done(0)
        self._result.is_complete = state.at == state.end

    def _targets(self, counted: Counted) -> list[Target]:
        """Where letters can go to; the others are noted as failures."""
        result = self._result
        result.seen += counted.seen
        targets: list[Target] = []
        for (topic, addressee), count in sorted(counted.going.items(), key=str):
            if not topic:
                reason = HOMELESS
            elif not self._exists(topic):
                reason = f"there is no topic {topic}"
            elif addressee is not None and not self._holds(addressee, topic):
                reason = f"no subscription {addressee} holds {topic} any more: {TO_ALL}"
            else:
                targets.append((topic, addressee))
                continue
            result.failed[reason] = result.failed.get(reason, 0) + count
        return targets

    def _holds(self, subscription: str, topic: str) -> bool:
        if (subscription, topic) not in self._held:
            found = redriven.holds(self._settings.bootstrap, subscription, topic)
            self._held[subscription, topic] = found
        return self._held[subscription, topic]

    def _exists(self, topic: str) -> bool:
        try:
            return bool(self._cluster.topics([topic]))
        except UnknownTopicOrPartition:
            return False

    def _excluded(self, state: StepState) -> Spans:
        first = {partition: offset for (_, partition), offset in state.at.items()}
        end = {partition: offset for (_, partition), offset in state.until.items()}
        return redriven.within(self._done, first, end)

    def _accept(self, before: Spans) -> None:
        if marked := redriven.read_marks(self._journal):
            left = redriven.accept(self._settings.bootstrap, self._result.topic, marked, before)
            redriven.rewrite_marks(self._journal, left)

    def _arguments(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "where": settings.where,
            "sets": dict(settings.sets),
            "function": settings.function,
            "to": settings.to,
            "to_all": settings.to_all,
        }


def _targets_of(state: StepState) -> list[Target]:
    """As they were noted; before letters were for one subscription a target was a topic alone."""
    noted = state.extra["targets"]
    return [(each, None) if isinstance(each, str) else (each[0], each[1]) for each in noted]


def _going_to(rows: DataFrame, targets: Sequence[Target]) -> DataFrame:
    """Those of the rows that have one of these targets, as the sink takes them."""
    from pyspark.sql import functions as f

    wanted = f.lit(False)
    for topic, addressee in targets:
        wanted |= (f.col("topic") == topic) & f.col(ADDRESSEE).eqNullSafe(f.lit(addressee))
    return rows.where(wanted).drop(ADDRESSEE)


def _listed(spans: Spans) -> dict[str, list[tuple[int, int]]]:
    return {str(partition): [span[:2] for span in those] for partition, those in spans.items()}


def _spans(listed: Mapping[str, list[tuple[int, int]]]) -> Spans:
    return {int(partition): [Span(*each) for each in those] for partition, those in listed.items()}


def _found(cluster: Cluster, settings: RedriveSettings, topic: str) -> Any:
    if settings.to is not None:
        cluster.topics([settings.to])
    try:
        return cluster.topics([topic])[topic]
    except UnknownTopicOrPartition:
        if topic == settings.name:
            raise PipelineError(f"there is no subscription and no topic {topic}") from None
        raise PipelineError(
            f"subscription {settings.name} has no dead letters: there is no topic {topic}"
        ) from None


def _check(spark: SparkSession, settings: RedriveSettings) -> None:
    if settings.rate is not None and settings.rate <= 0:
        raise PipelineError("a rate is more than 0 letters a second")
    for column in settings.sets:
        if column not in SETTABLE:
            raise PipelineError(f"--set: {column!r} can't be set, only {', '.join(SETTABLE)}")
    if settings.function is not None:
        load(settings.function)
    nothing = spark.createDataFrame([], ALL_WITH_HEADERS.ddl)
    found = letters(nothing, {})
    repaired(found, settings.where, settings.sets, settings.function, settings.to, settings.to_all)
