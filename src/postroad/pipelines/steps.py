"""A job in steps, each of which is noted before it is done (`journal`) and can be done again.

A step takes a range of offsets of each source partition. How large it is may depend on how the job went so
far: the note says what was decided, and a repetition keeps to it.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.failures import spark_failures
from postroad.pipelines.journal import Journal, Note
from postroad.pipelines.running import POLL_S, Moved, Progress, Report
from postroad.spark import offsets, ranges
from postroad.spark.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEP_OFFSETS: Final = 2_000_000
STEP_S: Final = 30.0  # of a step that keeps a rate: what is done again after a stop takes no longer

T = TypeVar("T")


class Stopped(Exception):
    """Asked to stop within a step: it is not done, and will be repeated."""


@dataclass(frozen=True)
class StepState:
    """A job between two moments. `until` is where the step ends that is noted; the same as `at`: none is."""

    arguments: Mapping[str, Any]  # what makes it this job and no other
    begin: Offsets
    end: Offsets
    at: Offsets
    until: Offsets
    step: int = 0
    rows: int = 0  # of all steps before
    is_complete: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)  # what else the step needs to be repeated

    @classmethod
    def new(cls, arguments: Mapping[str, Any], begin: Offsets, end: Offsets) -> StepState:
        return cls(arguments, begin, end, begin, begin)

    @property
    def is_planned(self) -> bool:
        return self.at != self.until

    @property
    def passed(self) -> int:
        return sum(self.at[topic_partition] - start for topic_partition, start in self.begin.items())

    @property
    def total(self) -> int:
        return sum(max(0, end - self.begin[topic_partition]) for topic_partition, end in self.end.items())

    def planned(self, size: int, **extra: Any) -> StepState:
        """With a step of about `size` offsets."""
        until = self.at | ranges.admit_offsets(self.at, self.end, size)
        return replace(self, until=until, extra=extra)

    def done(self, rows: int) -> StepState:
        """When the step is."""
        return replace(self, at=self.until, step=self.step + 1, rows=self.rows + rows, extra={})

    def without(self, lost: Offsets) -> StepState:
        """Where messages before these offsets are gone. Such a partition is no longer part of the step that
        is noted: it would not be the same. What is left of it is for the next one."""
        cut = replace(self, at=self.at | lost, until=self.until | lost)
        return cut if cut.is_planned or not self.is_planned else replace(cut, step=self.step + 1, extra={})

    def note(self) -> Note:
        found = {name: offsets.to_json(getattr(self, name)) for name in _OFFSETS}
        return {name: getattr(self, name) for name in _PLAIN} | found

    @classmethod
    def of(cls, note: Note) -> StepState:
        try:
            found: dict[str, Any] = {name: offsets.from_json(note[name]) for name in _OFFSETS}
            plain: dict[str, Any] = {name: note[name] for name in _PLAIN}
            return cls(**plain, **found)
        except KeyError as missing:
            raise PipelineError(f"what is noted of this job has no {missing}: give it another name") from None


_OFFSETS: Final = ("begin", "end", "at", "until")
_PLAIN: Final = ("arguments", "step", "rows", "is_complete", "extra")

Plan = Callable[[StepState], StepState | None]
Work = Callable[[StepState], Moved]


def run_steps(
    journal: Journal,
    key: str,
    state: StepState,
    plan: Plan,
    work: Work,
    *,
    report: Report,
    stop: threading.Event,
) -> StepState:
    """Step after step, until `plan` has none, or `stop` was set: then the state may have one that is noted.

    `work` gives what it sent, and may raise Stopped.
    """
    first = state.step
    while True:
        if not state.is_planned:
            planned = plan(state)
            if planned is None:
                if state.step > first:  # or the last step would be done again
                    journal.put(key, state.note())
                return state
            journal.put(key, planned.note())
            state = planned
        if stop.is_set():
            return state
        began = time.monotonic()
        try:
            rows, size = work(state)
        except Stopped:
            return state
        state = state.done(rows)
        took_s = time.monotonic() - began
        report(Progress(state.step, rows, state.passed, max(state.total, state.passed), took_s, bytes=size))


def step_size(state: StepState, rate: float | None) -> int:
    """Offsets of the next step. With a rate: what takes `STEP_S`, by how many messages went so far."""
    if rate is None:
        return STEP_OFFSETS
    share = state.rows / state.passed if state.rows else 1.0
    return max(1, min(STEP_OFFSETS, int(rate * STEP_S / share)))


def run_until(spark: SparkSession, work: Callable[[], T], stop: threading.Event) -> T:
    """What `work` gives. If `stop` is set before, its Spark jobs are cancelled and Stopped is raised."""
    tag, cancel = f"postroad-{uuid.uuid4().hex}", spark.interruptTag
    if context := getattr(spark, "_sc", None):  # not over Spark Connect: there tags are the session's
        cancel = context.cancelJobsWithTag
    outcome: list[T] = []
    failure: list[BaseException] = []

    def tagged() -> None:
        (context.addJobTag if context else spark.addTag)(tag)
        try:
            with spark_failures():
                outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=tagged, name="pipeline step", daemon=True)
    thread.start()
    while thread.is_alive() and not stop.is_set():
        thread.join(POLL_S)
    while thread.is_alive():  # a job that begins just now is cancelled by the next look
        cancel(tag)
        thread.join(POLL_S)
    if outcome:
        return outcome[0]
    if stop.is_set():
        raise Stopped
    raise failure[0]


def read_step(spark: SparkSession, bootstrap: str, state: StepState, **options: str) -> DataFrame:
    """The rows of a step from topics, a task for each partition, with headers."""
    parts = ranges.between(state.at, state.until)
    return read_ranges(spark, bootstrap, parts, **options)


def read_ranges(
    spark: SparkSession, bootstrap: str, parts: list[ranges.OffsetRange], **options: str
) -> DataFrame:
    """The rows of ranges, each of which is a task."""
    assigned: dict[str, list[int]] = {}
    for part in parts:
        assigned.setdefault(part.topic, []).append(part.partition)
    reader = spark.read.format("postroad").option("kafka.bootstrap.servers", bootstrap)
    return (
        reader.option("assign", json.dumps(assigned))
        .option(
            "startingOffsets",
            json.dumps(offsets.to_json({part.topic_partition: part.start for part in parts})),
        )
        .option(
            "endingOffsets", json.dumps(offsets.to_json({part.topic_partition: part.until for part in parts}))
        )
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .options(**options)
        .load()
    )
