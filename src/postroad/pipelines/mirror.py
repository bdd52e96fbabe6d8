"""mirror: topics of one cluster into another, partition by partition, each message once.

It goes in steps that are noted at the target before they are done (`journal`), so it needs no other
memory: a mirror that is stopped or killed goes on from wherever it is started next. Partition numbers,
keys, headers and times stay; headers are added that tell the origin (`origins`). After each step the
offsets of both sides are noted (`offset_map`), and consumer groups (`mirror_admin`) and subscriptions
(`mirror_subscriptions`) are moved along: whoever has to leave the one cluster finds itself at the same
message in the other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from postroad.mirrors import notes
from postroad.mirrors.positions import Carried, Wanted
from postroad.pipelines import journal as journals
from postroad.pipelines import offset_map as maps
from postroad.pipelines.delivery import Delivery, moved_by
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.journal import Journal
from postroad.pipelines.mirror_admin import group_names, move_groups, prepare_topics
from postroad.pipelines.mirror_subscriptions import CarriedSubscriptions
from postroad.pipelines.offset_map import OffsetMap, Translation
from postroad.pipelines.origins import Positions, mirrored
from postroad.pipelines.running import Moved, Report
from postroad.pipelines.steps import StepState, read_step, run_steps, run_until
from postroad.spark import offsets
from postroad.spark.cluster import Cluster, TopicInfo
from postroad.spark.offsets import Offsets
from postroad.spark.router import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_OFFSETS: Final = 500_000
PRUNE_EVERY: Final = 100  # steps
_OWN: Final = frozenset({journals.TOPIC, maps.TOPIC, notes.TOPIC})
_NONE: Final = Wanted()


@dataclass(frozen=True)
class MirrorSettings:
    """From where, to where, and what. Topics by name, or all that the pattern matches as a whole."""

    source: str
    target: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    prefix: str = ""  # of topics' names at the target
    groups: Sequence[str] = ()  # consumer groups whose positions are carried over
    group_pattern: str | None = None
    subscriptions: Wanted = _NONE  # whose positions and configs are carried over
    name: str | None = None  # the source cluster's id by default
    once: bool = False  # stop when all is mirrored that was there at the start
    every_s: float = 5.0  # otherwise: how often it looks for new messages
    accepts_loss: bool = False  # go on where the source has deleted messages before they were mirrored
    commit_group: str | None = None  # of the source: progress is committed to it, so that others see the lag


@dataclass
class Mirrored:
    """What a run did. `ends`: the offset of the source after the last one mirrored."""

    name: str
    rows: int = 0
    ends: dict[str, dict[str, int]] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)  # partitions moved, all in all
    subscriptions: dict[str, Carried] = field(default_factory=dict)  # what became of each the last time
    is_complete: bool = False  # all that was there when it looked last is mirrored


def mirror(
    spark: SparkSession,
    settings: MirrorSettings,
    *,
    report: Report = lambda progress: None,
    stop: threading.Event | None = None,
) -> Mirrored:
    """Runs until all is mirrored (`once`), or until `stop` is set.

    Before anything is written it is an error if a cluster or a topic is not there, if both clusters are the
    same, or if a pattern is none.
    """
    _check(settings)
    with (
        Cluster(settings.source, isolation="read_committed") as source,
        Cluster(settings.target) as target,
    ):
        run = _Run(spark, settings, source, target, stop or threading.Event())
        return run.run(report)


class _Run:
    def __init__(
        self,
        spark: SparkSession,
        settings: MirrorSettings,
        source: Cluster,
        target: Cluster,
        stop: threading.Event,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._source = source
        self._target = target
        self._stop = stop
        self._source_id, self._target_id = _ids(source, target)
        self._infos = self._topics()
        self._name = settings.name or self._source_id
        self._journal = Journal(target, "mirror ")
        self._map = OffsetMap(target, self._source_id, settings.prefix)
        self._subscriptions = CarriedSubscriptions(
            settings.source, settings.target, self._source_id, settings.prefix, settings.subscriptions
        )
        self._result = Mirrored(self._name)

    def run(self, report: Report) -> Mirrored:
        result = self._result
        note = self._journal.get(self._name)
        state = StepState.new(self._arguments(), {}, {}) if note is None else StepState.of(note)
        self._check_is_same(state)
        rows_before = state.rows
        while True:
            state = self._looked_around(state)
            state = run_steps(
                self._journal, self._name, state, self._plan, self._work, report=report, stop=self._stop
            )
            self._tell(state)
            result.rows, result.ends = state.rows - rows_before, offsets.to_json(state.at)
            result.is_complete = state.at == state.end
            if self._settings.once or self._stop.wait(self._settings.every_s):
                return result

    def _looked_around(self, state: StepState) -> StepState:
        """With the topics, partitions and ends that there are now; all of them are at the target, too."""
        self._infos = self._topics()
        self._map.claim({name: info.id.hex() for name, info in self._infos.items()})
        counts = {name: len(info.partitions) for name, info in self._infos.items()}
        prepare_topics(self._settings.source, self._settings.target, counts, self._settings.prefix)
        topic_partitions = self._topic_partitions()
        earliest, latest = self._source.earliest(topic_partitions), self._source.latest(topic_partitions)
        fresh = [topic_partition for topic_partition in topic_partitions if topic_partition not in state.at]
        new = {
            topic_partition: max(earliest[topic_partition], self._map.end(topic_partition) or 0)
            for topic_partition in fresh
        }
        state = replace(state, begin=state.begin | new, at=state.at | new, until=state.until | new)
        state = self._without_lost(state, earliest, latest)
        return replace(state, end=state.at | latest)

    def _without_lost(self, state: StepState, earliest: Offsets, latest: Offsets) -> StepState:
        """Behind what the source no longer has; PipelineError unless that is accepted."""
        for (topic, partition), end in latest.items():
            if (at := state.at[topic, partition]) > end:
                raise PipelineError(
                    f"{topic}/{partition} is mirrored up to offset {at}, and the source ends at {end}: it "
                    "has lost messages. Mirror it with another --name and another --prefix"
                )
        lost = {
            topic_partition: start
            for topic_partition, start in earliest.items()
            if state.at[topic_partition] < start
        }
        if not lost:
            return state
        if not self._settings.accepts_loss:
            (topic, partition), start = min(lost.items())
            raise PipelineError(
                f"{topic}/{partition}: offsets {state.at[topic, partition]} to {start - 1} were deleted at "
                "the source before they were mirrored. To go on without them say --accept-loss"
            )
        return state.without(lost)

    def _plan(self, state: StepState) -> StepState | None:
        planned = state.planned(STEP_OFFSETS)
        if not planned.is_planned:
            return None
        there = [self._there(topic_partition) for topic_partition in self._topic_partitions()]
        if state.step % PRUNE_EVERY == 0:
            self._map.prune(self._starts())
        return replace(planned, extra={"target_ends": offsets.to_json(self._target.latest(there))})

    def _work(self, state: StepState) -> Moved:
        settings = self._settings
        step = Delivery(
            {"kafka.bootstrap.servers": settings.target},
            f"mirror {self._name}",
            state.step,
            account=partial(
                Positions, self._source_id, settings.prefix, offsets.from_json(state.extra["target_ends"])
            ),
        )
        loss = str(not settings.accepts_loss).lower()

        def send() -> Any:
            rows = read_step(self._spark, settings.source, state, failOnDataLoss=loss)
            return step.run(mirrored(rows, self._source_id, self._target_id, settings.prefix))

        found = run_until(self._spark, send, self._stop)
        self._map.add({each.topic_partition: each.spans for each in found})
        return moved_by(found)

    def _tell(self, state: StepState) -> None:
        """Those who follow the mirror: groups and subscriptions at the target, and the group that shows its
        lag at the source."""
        settings = self._settings
        names = group_names(settings.source, settings.groups, settings.group_pattern)
        wanted = [name for name in names if name != settings.commit_group]
        topic_partitions = {
            topic_partition: self._there(topic_partition) for topic_partition in self._topic_partitions()
        }
        for name, count in self._moved(wanted, topic_partitions).items():
            self._result.groups[name] = self._result.groups.get(name, 0) + count
        if settings.subscriptions and topic_partitions:
            self._result.subscriptions = self._subscriptions.carry(self._translation(), topic_partitions)
        if settings.commit_group is not None and topic_partitions:
            self._source.commit(
                settings.commit_group,
                {topic_partition: state.at[topic_partition] for topic_partition in topic_partitions},
            )

    def _moved(
        self, groups: Sequence[str], topic_partitions: Mapping[TopicPartition, TopicPartition]
    ) -> dict[str, int]:
        if not groups or not topic_partitions:
            return {}
        return move_groups(self._source, self._target, groups, self._translation(), topic_partitions)

    def _translation(self) -> Translation:
        starts = None if self._settings.prefix else self._starts()
        back = partial(maps.existing, self._source, self._target_id, "")
        return Translation(self._map, starts, back)

    def _starts(self) -> Offsets:
        """Where the target's logs begin, by partitions of the source."""
        there = {
            topic_partition: self._there(topic_partition) for topic_partition in self._topic_partitions()
        }
        found = self._target.earliest(list(there.values()))
        return {topic_partition: found[at] for topic_partition, at in there.items()}

    def _topics(self) -> dict[str, TopicInfo]:
        """PipelineError if there are none."""
        settings = self._settings
        found = self._source.topics(list(settings.topics)) if settings.topics else {}
        if settings.pattern is not None:
            found |= self._source.topics(pattern=settings.pattern)
        found = {name: info for name, info in found.items() if name not in _OWN}
        if not found and settings.pattern is None:
            raise PipelineError("there is nothing to mirror: name topics, or give a pattern")
        return found

    def _topic_partitions(self) -> list[TopicPartition]:
        return [topic_partition for info in self._infos.values() for topic_partition in info.topic_partitions]

    def _there(self, topic_partition: TopicPartition) -> TopicPartition:
        return self._settings.prefix + topic_partition[0], topic_partition[1]

    def _arguments(self) -> Mapping[str, Any]:
        return {"source": self._source_id, "prefix": self._settings.prefix}

    def _check_is_same(self, state: StepState) -> None:
        if dict(state.arguments) != self._arguments():
            raise PipelineError(
                f"the mirror {self._name} copies from cluster {state.arguments['source']} with the prefix "
                f"{state.arguments['prefix']!r}: choose another --name"
            )


def _ids(source: Cluster, target: Cluster) -> tuple[str, str]:
    ids = source.id(), target.id()
    for cluster, found in zip((source, target), ids, strict=True):
        if not found:
            raise PipelineError(f"the cluster at {cluster.bootstrap} has no id, so no origin can name it")
    if ids[0] == ids[1]:
        raise PipelineError(
            f"{source.bootstrap} and {target.bootstrap} are the same cluster: a mirror needs two"
        )
    return ids


def _check(settings: MirrorSettings) -> None:
    if not settings.topics and settings.pattern is None:
        raise PipelineError("what is to be mirrored? Name topics, or give a pattern")
    patterns = {
        "--pattern": settings.pattern,
        "--group-pattern": settings.group_pattern,
        "--subscription-pattern": settings.subscriptions.pattern,
    }
    for option, pattern in patterns.items():
        try:
            re.compile(pattern or "")
        except re.error as error:
            raise PipelineError(f"{option} {pattern!r} is no regular expression: {error}") from None
