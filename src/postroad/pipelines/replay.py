"""replay: a range of messages, from an archive or a topic, back into a topic; each once.

A replay has a name, or is known by its arguments. What it has done is noted in the cluster that it writes
to (`journal`), step by step. So the same replay can be interrupted and run again, on another machine and
weeks later: it goes on where it was, and one that was complete does nothing. Where it ends is decided when
it first runs: messages that come later are another replay's.

Messages keep their order within each partition that they come from. A step that was interrupted finds what
it stored for as long as the target remembers producers (`spark.sink`): a day, unless it is set otherwise.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from postroad.errors import UnknownTopicOrPartition
from postroad.pipelines import delivery, edges
from postroad.pipelines.delivery import SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC, Delivery, moved_by
from postroad.pipelines.edges import Edge
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.expressions import checked
from postroad.pipelines.failures import spark_failures
from postroad.pipelines.journal import Journal
from postroad.pipelines.replay_source import ReplaySettings, Source, source_of
from postroad.pipelines.running import Moved, Report
from postroad.pipelines.steps import StepState, run_steps, run_until, step_size
from postroad.spark import offsets
from postroad.spark.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Replayed(NamedTuple):
    """What became of it. `rows` counts all runs; `was_complete`: an earlier one had done it all."""

    name: str
    rows: int
    is_complete: bool
    was_complete: bool
    begin: dict[str, dict[str, int]]
    end: dict[str, dict[str, int]]


def replay(
    spark: SparkSession,
    settings: ReplaySettings,
    *,
    report: Report = lambda progress: None,
    stop: threading.Event | None = None,
) -> Replayed:
    """Runs until it is complete, or until `stop` is set.

    Before anything is written it is an error if something is missing or wrong: a cluster, a topic, a
    partition, the filter, offsets that are gone, another replay of the same name.
    """
    _check(settings)
    with Cluster(settings.bootstrap) as target:
        source = source_of(spark, settings)
        arguments = _arguments(settings, source)
        name = settings.name or _digest(arguments)
        journal = Journal(target, "replay ")
        state = _resumed(journal, name, arguments)
        if state is None:
            with spark_failures():
                begin, end = edges.resolve(source.bounds(), settings.since, settings.until)
            state = StepState.new(arguments, begin, end)
        was_complete = state.is_complete
        if not was_complete:
            _check_target(target, settings, state)
            checked(source.sample(), "--where", settings.where)
            stopping = stop or threading.Event()
            run = _Run(spark, settings, source, f"replay {name}", stopping)
            state = run_steps(journal, name, state, run.plan, run.work, report=report, stop=stopping)
            if not state.is_planned:
                state = replace(state, is_complete=True)
                journal.put(name, state.note())
    found = [offsets.to_json(each) for each in (state.begin, state.end)]
    return Replayed(name, state.rows, state.is_complete, was_complete, *found)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: ReplaySettings,
        source: Source,
        job: str,
        stop: threading.Event,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._source = source
        self._job = job
        self._stop = stop

    def plan(self, state: StepState) -> StepState | None:
        planned = state.planned(step_size(state, self._settings.rate))
        return planned if planned.is_planned else None

    def work(self, state: StepState) -> Moved:
        rate = self._settings.rate
        tasks = None if rate is None else delivery.lanes(rate)
        step = Delivery(
            {"kafka.bootstrap.servers": self._settings.bootstrap},
            self._job,
            state.step,
            rate=None if rate is None or tasks is None else rate / tasks,
        )
        rows = self._source.rows(state, tasks)
        found = run_until(self._spark, lambda: step.run(self._sent(rows)), self._stop)
        return moved_by(found)

    def _sent(self, rows: DataFrame) -> DataFrame:
        """The rows that go, with the sink's columns."""
        from pyspark.sql import functions as f

        settings = self._settings
        if settings.where is not None:
            rows = rows.where(settings.where)
        columns = [
            f.col("topic").alias(SOURCE_TOPIC),
            f.col("partition").alias(SOURCE_PARTITION),
            f.col("offset").alias(SOURCE_OFFSET),
            *(f.col(name) for name in ("key", "value", "headers")),
            f.col("topic") if settings.to is None else f.lit(settings.to).alias("topic"),
        ]
        kept = {"partition": settings.keeps_partitions, "timestamp": settings.keeps_timestamps}
        return rows.select(*columns, *(f.col(name) for name, keeps in kept.items() if keeps))


def _resumed(journal: Journal, name: str, arguments: Mapping[str, Any]) -> StepState | None:
    note = journal.get(name)
    if note is None:
        return None
    state = StepState.of(note)
    differing = sorted(
        key for key in {*arguments, *state.arguments} if arguments.get(key) != state.arguments.get(key)
    )
    if differing:
        raise PipelineError(
            f"a replay {name} was begun with another {' and another '.join(differing)}: "
            "choose another --name, or repeat it as it was"
        )
    return state


def _arguments(settings: ReplaySettings, source: Source) -> dict[str, Any]:
    """What makes it this replay. A time that is relative to now is not part of it: the first run counts."""
    return {
        "source": source.identity,
        "to": settings.to,
        "from": _said(settings.since),
        "until": _said(settings.until),
        "where": settings.where,
        "timestamps": settings.keeps_timestamps,
        "partitions": settings.keeps_partitions,
    }


def _said(edge: Edge) -> Any:
    if edge.each is not None:
        return offsets.to_json(edge.each)
    return None if edge.is_relative else {"offset": edge.offset, "time": edge.time_ms}


def _digest(arguments: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(arguments, sort_keys=True).encode()).hexdigest()[:16]


def _check(settings: ReplaySettings) -> None:
    if not settings.topics:
        raise PipelineError("which topic is to be replayed? Name it with --topic")
    if settings.rate is not None and settings.rate <= 0:
        raise PipelineError("a rate is more than 0 messages a second")
    if settings.name is None and (settings.since.is_relative or settings.until.is_relative):
        raise PipelineError(
            "a time that is so long ago is another one whenever it is said: give the replay a --name, by "
            "which it is known when it is repeated, or say the time itself (2026-03-01T08:00)"
        )


def _check_target(target: Cluster, settings: ReplaySettings, state: StepState) -> None:
    names = list(settings.topics) if settings.to is None else [settings.to]
    found = target.topics(names)
    if not settings.keeps_partitions:
        return
    for topic, partition in state.begin:
        info = found[settings.to or topic]
        if partition not in info.partitions:
            raise UnknownTopicOrPartition(
                f"{topic}/{partition} can't keep its partition: {info.name} has {len(info.partitions)}"
            )
