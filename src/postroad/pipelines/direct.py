"""Simple questions to one topic, answered without Spark, which takes seconds to start.

    select count(*) from TOPIC
    select partition, min(offset), max(offset), count(*) from TOPIC group by partition
    select offset, cast(value as string) from TOPIC where partition = 0 and offset >= 100 limit 10

`understood` knows these forms and says None to all others; then Spark is asked. What both can answer they
answer alike: columns have the names that Spark gives them, values the types that `collect` gives. It is for
topics of which not much has to be read; a large one is read more quickly by several tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from postroad.pipelines.tables.schema import RECORD
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.columns import OFFSET, PARTITION, TIMESTAMP, Columns
from postroad.spark.ranges import OffsetRange, between
from postroad.spark.reader import read_range
from postroad.spark.wanted import EVERYTHING, Wanted

OFFSETS_MAX: Final = 2_000_000  # that are looked through for an aggregate: about a second
ROWS_MAX: Final = 10_000  # of an answer

_QUERY: Final = re.compile(
    r"\s*select\s+(?P<items>.+?)\s+from\s+(?P<topic>`[^`]+`|[A-Za-z_]\w*)"
    r"(?:\s+where\s+(?P<where>.+?))?(?P<grouped>\s+group\s+by\s+partition)?(?P<ordered>\s+order\s+by\s+partition)?"
    r"(?:\s+limit\s+(?P<limit>\d{1,9}))?\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)
_ALIAS: Final = r"(?:\s+as\s+(?P<alias>[A-Za-z_]\w*))?"
_COLUMN: Final = re.compile(r"(?P<column>[A-Za-z]+)" + _ALIAS, re.IGNORECASE)
_TEXT: Final = re.compile(r"cast\s*\(\s*(?P<column>key|value)\s+as\s+string\s*\)" + _ALIAS, re.IGNORECASE)
_TOTAL: Final = re.compile(
    r"(?:(?P<count>count)\s*\(\s*(?:\*|1)\s*\)|(?P<which>min|max)\s*\(\s*(?P<of>offset|timestamp)\s*\))"
    + _ALIAS,
    re.IGNORECASE,
)
_CONDITION: Final = re.compile(
    r"\s*(?P<column>partition|offset)\s*(?P<is>=|<=|>=|<|>)\s*(?P<number>\d{1,18})\s*"
)
_AND: Final = re.compile(r"\s+and\s+", re.IGNORECASE)
_NAMES: Final = tuple(RECORD.names)
_LAST: Final = EVERYTHING.offsets[1]


class DirectAnswer(NamedTuple):
    columns: list[str]
    rows: list[tuple[Any, ...]]


class Item(NamedTuple):
    """A column of the answer: one of the topic's, or `count`, `min` or `max` over `column`."""

    name: str
    column: str
    total: str | None = None
    is_text: bool = False


@dataclass(frozen=True)
class Question:
    topic: str
    items: tuple[Item, ...]
    wanted: Wanted
    limit: int | None
    is_grouped: bool

    @property
    def is_total(self) -> bool:
        return any(item.total for item in self.items)


def understood(query: str) -> Question | None:
    """None for what is Spark's to answer, or to refuse."""
    found = _QUERY.fullmatch(query)
    if found is None:
        return None
    items = _items(found["items"])
    wanted = _wanted(found["where"])
    if items is None or wanted is None:
        return None
    limit = None if found["limit"] is None else int(found["limit"])
    question = Question(found["topic"].strip("`"), items, wanted, limit, found["grouped"] is not None)
    totals = [item for item in items if item.total]
    others = [item for item in items if not item.total]
    if totals or question.is_grouped:
        if any(item.column != PARTITION for item in others) or (others and not question.is_grouped):
            return None
    elif found["ordered"] is not None:
        return None
    return question


def answer(question: Question, bootstrap: str) -> DirectAnswer | None:
    """None if too much would have to be read here. UnknownTopicOrPartition if there is no such topic."""
    with Cluster(bootstrap, isolation="read_committed") as cluster:
        topic_partitions = cluster.topics([question.topic])[question.topic].topic_partitions
        begin, end = cluster.earliest(topic_partitions), cluster.latest(topic_partitions)
        parts = question.wanted.within(between(begin, end), cluster)
        names = [item.name for item in question.items]
        size = sum(part.size for part in parts)
        if question.is_total or question.is_grouped:
            return DirectAnswer(names, _totals(question, cluster, parts)) if size <= OFFSETS_MAX else None
        limit = size if question.limit is None else question.limit
        if limit > ROWS_MAX or size > OFFSETS_MAX:
            return None
        return DirectAnswer(names, list(_rows(question, cluster, parts, limit)))


def size_of(query: str, bootstrap: str) -> int:
    """How many offsets the topics have that the query may name."""
    with Cluster(bootstrap) as cluster:
        named = [info for name, info in cluster.topics().items() if name in query]
        found = [topic_partition for info in named for topic_partition in info.topic_partitions]
        begin, end = cluster.earliest(found), cluster.latest(found)
    return sum(end[topic_partition] - begin[topic_partition] for topic_partition in found)


def _totals(question: Question, cluster: Cluster, parts: Sequence[OffsetRange]) -> list[tuple[Any, ...]]:
    read = Columns(tuple(dict.fromkeys((OFFSET, *(item.column for item in question.items)))))
    groups: dict[int, list[Any]] = {}
    for part in parts:
        batches = list(read_range(cluster, part, read))
        if batches:
            groups.setdefault(part.partition if question.is_grouped else 0, []).extend(batches)
    if not groups and not question.is_grouped:
        groups[0] = []
    rows = [
        tuple(partition if item.total is None else _total(item, batches) for item in question.items)
        for partition, batches in sorted(groups.items())
    ]
    return rows[: question.limit]


def _total(item: Item, batches: Sequence[Any]) -> Any:
    if item.total == "count":
        return sum(len(batch) for batch in batches)
    if not batches:
        return None
    found = np.concatenate([batch.column(item.column).cast("int64").to_numpy() for batch in batches])
    number = int(found.min() if item.total == "min" else found.max())
    return number if item.column == OFFSET else _as_collected(number)


def _rows(
    question: Question, cluster: Cluster, parts: Sequence[OffsetRange], limit: int
) -> Iterator[tuple[Any, ...]]:
    from postroad.pipelines.tables.files import archived

    left = limit
    pieces = (  # as a rule the first one has enough; gaps may be in the way
        part._replace(start=at, until=min(part.until, at + ROWS_MAX))
        for part in parts
        for at in range(part.start, part.until, ROWS_MAX)
    )
    for piece in pieces:
        if not left:
            return
        for batch in read_range(cluster, piece, columns.ALL_WITH_HEADERS):
            rows = archived(batch.slice(0, left))
            left -= rows.num_rows
            yield from _cells(question.items, rows)


def _cells(items: Sequence[Item], rows: Any) -> Iterator[tuple[Any, ...]]:
    found = []
    for item in items:
        column = rows.column(item.column)
        cells = column.cast("int64").to_pylist() if item.column == TIMESTAMP else column.to_pylist()
        if item.column == TIMESTAMP:
            cells = [None if cell is None else _as_collected(cell) for cell in cells]
        elif item.is_text:
            cells = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
        found.append(cells)
    yield from zip(*found, strict=True)


def _as_collected(micros: int) -> Any:
    """A time as Spark's `collect` gives it: this machine's, without a zone."""
    from pyspark.sql.types import TimestampType

    return TimestampType().fromInternal(micros)


def _items(text: str) -> tuple[Item, ...] | None:
    if text.strip() == "*":
        return tuple(Item(name, name) for name in _NAMES)
    found = [_item(part.strip()) for part in re.split(r",(?![^(]*\))", text)]
    items = tuple(item for item in found if item is not None)
    return items if len(items) == len(found) and len({item.name for item in items}) == len(items) else None


def _item(text: str) -> Item | None:
    if found := _TOTAL.fullmatch(text):
        if found["count"]:
            return Item(found["alias"] or "count(1)", OFFSET, "count")
        which, of = found["which"].lower(), found["of"].lower()
        return Item(found["alias"] or f"{which}({of})", of, which)
    if found := _TEXT.fullmatch(text):
        return Item(found["alias"] or found["column"], found["column"].lower(), is_text=True)
    if (found := _COLUMN.fullmatch(text)) and found["column"] in _NAMES:
        return Item(found["alias"] or found["column"], found["column"])
    return None


def _wanted(where: str | None) -> Wanted | None:
    wanted = EVERYTHING
    for condition in _AND.split(where) if where else ():
        found = _CONDITION.fullmatch(condition)
        if found is None:
            return None
        number, comparison = int(found["number"]), found["is"]
        first = {"=": number, ">=": number, ">": number + 1}.get(comparison, 0)
        last = {"=": number, "<=": number, "<": number - 1}.get(comparison, _LAST)
        if found["column"] == PARTITION:
            if comparison != "=":
                return None
            mine = frozenset({number})
            known = mine if wanted.partitions is None else wanted.partitions
            wanted = replace(wanted, partitions=mine & known)
        else:
            low, high = wanted.offsets
            wanted = replace(wanted, offsets=(max(low, first), min(high, last)))
    return wanted
