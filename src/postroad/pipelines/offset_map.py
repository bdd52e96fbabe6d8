"""Offsets of a source cluster as offsets of the cluster that mirrors it.

Kept in a compacted topic of the target, so whoever fails over to it can use it:

    topic  `postroad-mirror-offsets`, one partition
    key    `SOURCE-CLUSTER-ID TOPIC/PARTITION FIRST`
    value  JSON: `first` and `last` offset at the source, without a gap, and `target`, where the first is now

Spans of a partition ascend on both sides. Where one ends and the next begins there may be messages that were
not mirrored, or of which nobody noted where they are: an offset in between is translated to the end of the
span before. So a translated offset is never ahead of what it stands for; it may be a little behind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, Final

from postroad.pipelines.delivery import Span
from postroad.pipelines.journal import Journal
from postroad.spark.cluster import Cluster
from postroad.spark.router import Place

TOPIC: Final = "postroad-mirror-offsets"


class OffsetMap:
    """The map of one source cluster, as it is known to this run. Places are the source's."""

    def __init__(self, target: Cluster, source_id: str) -> None:
        self._journal = Journal(target, f"{source_id} ", TOPIC)
        self._spans: dict[Place, list[Span]] = {}
        for key, note in self._journal.all().items():
            place = _place(key)
            self._spans.setdefault(place, []).append(Span(note["first"], note["last"], note["target"]))
        for spans in self._spans.values():
            spans.sort()

    def end(self, place: Place) -> int | None:
        """The offset after the last one that is known to be mirrored; None if none is."""
        spans = self._spans.get(place)
        return spans[-1].last + 1 if spans else None

    def add(self, news: Mapping[Place, Iterable[Span]]) -> None:
        """They are noted; what is known already changes nothing."""
        notes: dict[str, Mapping[str, Any] | None] = {}
        for place, spans in news.items():
            for span in spans:
                if (grown := self._add(place, span)) is not None:
                    notes[_key(place, grown)] = grown._asdict()
        self._journal.put_all(notes)

    def translate(self, place: Place, offset: int) -> int | None:
        """Where a consumer goes on that would read `offset` next; None if nothing before it is known.

        Not the first span's beginning then: where clusters mirror each other, what lies before it at the
        source came from the target, and is still to be read there.
        """
        spans = self._spans.get(place, [])
        number = bisect_right(spans, offset, key=lambda each: each.first) - 1
        if number < 0:
            return None
        return spans[number].target + min(spans[number].size, offset - spans[number].first)

    def prune(self, starts: Mapping[Place, int]) -> None:
        """Forget what the target's logs no longer have; `starts` are their beginnings, by source places."""
        gone: dict[str, Mapping[str, Any] | None] = {}
        for place, spans in self._spans.items():
            start = starts.get(place, 0)
            old = [span for span in spans[:-1] if span.target + span.size <= start]
            gone |= {_key(place, span): None for span in old}
            self._spans[place] = spans[len(old) :]
        self._journal.put_all(gone)

    def _add(self, place: Place, span: Span) -> Span | None:
        """The span as it is known now; None if it was known before."""
        spans = self._spans.setdefault(place, [])
        last = spans[-1] if spans else None
        if last is not None and span.last <= last.last:
            return None
        if last is not None and span.first <= last.last:
            known = last.last + 1 - span.first
            span = Span(span.first + known, span.last, span.target + known)
        if last is not None and span.first == last.last + 1 and span.target == last.target + last.size:
            spans[-1] = last._replace(last=span.last)
        else:
            spans.append(span)
        return spans[-1]


def _key(place: Place, span: Span) -> str:
    return f"{place[0]}/{place[1]} {span.first}"


def _place(key: str) -> Place:
    topic, _, partition = key.partition(" ")[0].rpartition("/")
    return topic, int(partition)
