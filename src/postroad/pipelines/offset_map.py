"""Offsets of a source cluster as offsets of the cluster that mirrors it.

Kept in a compacted topic of the target, so whoever fails over to it can use it:

    topic  `postroad-mirror-offsets`, one partition
    key    `SOURCE-CLUSTER-ID PREFIX TOPIC/PARTITION FIRST`; the prefix is that of topics at the target
    value  JSON: `first` and `last` offset at the source, without a gap, and `target`, where the first is
           now; up to `until` there all is of the source, if that is further than the last

    key    `SOURCE-CLUSTER-ID PREFIX TOPIC`
    value  JSON: `id`, by which a topic is known from another of its name

Spans of a partition ascend on both sides. Where one ends and the next begins there may be messages that were
not mirrored, or of which nobody noted where they are: an offset in between is translated to the end of the
span before. So a translated offset is never ahead of what it stands for; it may be a little behind.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from postroad.errors import UnknownTopicOrPartition
from postroad.pipelines.delivery import Span
from postroad.pipelines.errors import PipelineError
from postroad.pipelines.journal import Journal
from postroad.spark.cluster import Cluster
from postroad.spark.router import TopicPartition

TOPIC: Final = "postroad-mirror-offsets"


class OffsetMap:
    """The map of one source cluster to topics with one prefix, as it is known to this run. Partitions are the
    source's."""

    def __init__(self, target: Cluster, source_id: str, prefix: str) -> None:
        self._journal = Journal(target, f"{source_id} {prefix} ", TOPIC)
        self._ids: dict[str, str] = {}
        self._spans: dict[TopicPartition, list[Span]] = {}
        for key, note in self._journal.all().items():
            if "id" in note:
                self._ids[key] = note["id"]
            else:
                span = Span(note["first"], note["last"], note["target"], note["until"])
                self._spans.setdefault(_topic_partition(key), []).append(span)
        for spans in self._spans.values():
            spans.sort()

    def claim(self, ids: Mapping[str, str]) -> None:
        """These are the topics of the source. PipelineError if one is not that of which the map tells."""
        for topic, id_ in ids.items():
            if self._ids.get(topic, id_) != id_:
                raise PipelineError(
                    f"{topic} was deleted at the source since it was mirrored, and created anew: its offsets "
                    "mean other messages now. Mirror it with another --name and another --prefix"
                )
        self._journal.put_all({topic: {"id": id_} for topic, id_ in ids.items() if topic not in self._ids})
        self._ids |= ids

    def end(self, topic_partition: TopicPartition) -> int | None:
        """The offset after the last one that is known to be mirrored; None if none is."""
        spans = self._spans.get(topic_partition)
        return spans[-1].last + 1 if spans else None

    def add(self, news: Mapping[TopicPartition, Iterable[Span]]) -> None:
        """They are noted; what is known already changes nothing."""
        notes: dict[str, Mapping[str, Any] | None] = {}
        for topic_partition, spans in news.items():
            for span in spans:
                if (grown := self._add(topic_partition, span)) is not None:
                    notes[_key(topic_partition, grown)] = grown._asdict()
        self._journal.put_all(notes)

    def translate(self, topic_partition: TopicPartition, offset: int) -> int | None:
        """Where a consumer goes on that would read `offset` next; None if nothing before it is known.

        Not the first span's beginning then: where clusters mirror each other, what lies before it at the
        source came from the target, and is still to be read there.
        """
        spans = self._spans.get(topic_partition, [])
        number = bisect_right(spans, offset, key=lambda each: each.first) - 1
        if number < 0:
            return None
        return spans[number].target + min(spans[number].size, offset - spans[number].first)

    def passed(self, topic_partition: TopicPartition, there: int) -> int:
        """Up to which offset of the source all is read by one who would read `there` next at the target."""
        spans = self._spans.get(topic_partition, [])
        number = bisect_left(spans, there, key=lambda each: each.target) - 1
        if number < 0:
            return 0
        return spans[number].first + min(spans[number].size, there - spans[number].target)

    def reach(self, topic_partition: TopicPartition, there: int) -> int:
        """From `there` up to which offset of the target all is of the source."""
        for span in self._spans.get(topic_partition, []):
            if span.target > there:
                break
            there = max(there, span.reach)
        return there

    def prune(self, starts: Mapping[TopicPartition, int]) -> None:
        """Forget what the target's logs no longer have; `starts` are their first offsets, by source."""
        gone: dict[str, Mapping[str, Any] | None] = {}
        for topic_partition, spans in self._spans.items():
            start = starts.get(topic_partition, 0)
            old = [span for span in spans[:-1] if span.reach <= start]
            gone |= {_key(topic_partition, span): None for span in old}
            self._spans[topic_partition] = spans[len(old) :]
        self._journal.put_all(gone)

    def _add(self, topic_partition: TopicPartition, span: Span) -> Span | None:
        """The span as it is known now; None if it was known before."""
        spans = self._spans.setdefault(topic_partition, [])
        last = spans[-1] if spans else None
        if last is not None and span.last <= last.last:
            if span.target != last.reach:
                return None
            spans[-1] = last._replace(until=span.reach)  # stored twice, so it is of the source, too
            return spans[-1]
        if last is not None and span.first <= last.last:
            known = last.last + 1 - span.first
            span = span._replace(first=span.first + known, target=span.target + known)
        if last is not None and span.first == last.last + 1 and span.target == last.target + last.size:
            spans[-1] = last._replace(last=span.last, until=span.until)
        else:
            spans.append(span)
        return spans[-1]


class Translation:
    """Positions at the source as positions at the target, before which there is nothing unread.

    Topics with a prefix are the mirror's alone. Others may have messages of their own, and where two
    clusters mirror each other whoever reads the source gets these there, sooner or later. So a position
    stays before the first of them that was not read there, as far as the map of the mirror back tells.
    """

    def __init__(
        self,
        map_: OffsetMap,
        starts: Mapping[TopicPartition, int] | None,
        back: Callable[[], OffsetMap | None],
    ) -> None:
        """`starts` are the first offsets of the target's logs, by source; None: they are ours alone."""
        self._map = map_
        self._starts = starts
        self._back = cache(back)

    def __call__(self, topic_partition: TopicPartition, offset: int) -> int | None:
        found = self._map.translate(topic_partition, offset)
        if found is None or self._starts is None:
            return found
        reach = self._map.reach(topic_partition, self._starts[topic_partition])
        if reach < found and (back := self._back()) is not None:
            reach = self._map.reach(
                topic_partition, max(self._starts[topic_partition], back.passed(topic_partition, offset))
            )
        return min(found, reach)

    def read_behind(self, topic_partition: TopicPartition, offset: int, there: int) -> int:
        """At most so many messages from `there` on are read by one who is at `offset` of the source."""
        return max(0, (self._map.translate(topic_partition, offset) or 0) - there)


def existing(target: Cluster, source_id: str, prefix: str) -> OffsetMap | None:
    """The map that a mirror keeps there, if there is one: nothing is created."""
    try:
        target.topics([TOPIC])
    except UnknownTopicOrPartition:
        return None
    return OffsetMap(target, source_id, prefix)


def _key(topic_partition: TopicPartition, span: Span) -> str:
    return f"{topic_partition[0]}/{topic_partition[1]} {span.first}"


def _topic_partition(key: str) -> TopicPartition:
    topic, _, partition = key.partition(" ")[0].rpartition("/")
    return topic, int(partition)
