"""A streaming query while it runs: its progress told, its end awaited, its failure in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

from postroad.pipelines.failures import spark_failures

POLL_S: Final = 0.3  # how soon a stop is noticed, and progress told


class Progress(NamedTuple):
    """How far a query has come. `total` is as many rows as were there when it began."""

    batch: int
    rows: int  # of this micro-batch
    done: int  # of all since the query began
    total: int
    seconds: float  # that this micro-batch took
    behind: int | None = None  # offsets, or batches of a table, that are there and wait; None: not known
    bytes: int = 0  # of this micro-batch: about how large its rows are, without compression


class Moved(NamedTuple):
    """What a micro-batch or a step worked at."""

    rows: int
    bytes: int


Report = Callable[[Progress], None]


def follow(
    query: StreamingQuery,
    total: int,
    report: Report,
    stop: threading.Event,
    also: Callable[[], None],
    moved_by: Callable[[Any], Moved],
) -> int:
    """Until the query has ended, or `stop` was set and it is stopped; gives the rows that it moved.

    A stop does not wait for the micro-batch under way: it is repeated by the next run. `also` is called
    now and then; `moved_by` says what a micro-batch moved, by its progress. PipelineError with the reason
    if the query failed.
    """
    seen, done = -1, 0
    with spark_failures():
        while True:
            is_over = query.awaitTermination(POLL_S)  # type: ignore[arg-type]  # Spark takes fractions
            for told in _news(query, seen):
                rows, size = moved_by(told)
                seen, done = told["batchId"], done + rows
                took_s = told["durationMs"].get("triggerExecution", 0) / 1000
                report(Progress(seen, rows, done, max(total, done), took_s, behind(told), size))
            if is_over:
                return done
            if stop.is_set():
                query.stop()
                return done
            also()


def behind(told: Any) -> int | None:
    """How far a query's sources are ahead of it, by its progress; None if they don't tell."""
    sizes = [_distance(source["endOffset"], source["latestOffset"]) for source in told["sources"]]
    return None if None in sizes else sum(size or 0 for size in sizes)


def _distance(reached: Any, latest: Any) -> int | None:
    found = [json.loads(each) if isinstance(each, str) else each for each in (reached, latest)]
    if not all(isinstance(each, dict) for each in found):
        return None
    begun, end = map(_flat, found)
    return sum(max(0, at - begun.get(name, 0)) for name, at in end.items())


def _flat(offsets: Mapping[str, Any]) -> dict[str, int]:
    """One number for each name: topic and partition, or what else a source counts."""
    flat: dict[str, int] = {}
    for name, content in offsets.items():
        inner = content if isinstance(content, dict) else {"": content}
        flat |= {f"{name}/{number}": int(at) for number, at in inner.items()}
    return flat


def _news(query: StreamingQuery, seen: int) -> Iterator[Any]:
    """Progress of batches after `seen`; Spark also tells of triggers that had nothing to do."""
    for told in query.recentProgress:
        if told["batchId"] > seen and told["numInputRows"] > 0:
            yield told
