"""How far streaming queries are behind, in messages and in seconds, beside what Spark tells of them.

    listener = LagListener("127.0.0.1:9092")
    spark.streams.addListener(listener)
    …
    listener.lag(query.id).messages

Spark lets a Python source add nothing to a query's progress, so a listener looks itself, after each progress:
at the ends of the partitions now, and at the oldest record that the query has not read yet.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from postroad.errors import PostroadError
from postroad.spark import columns, offsets
from postroad.spark.cluster import Cluster
from postroad.spark.columns import Columns
from postroad.spark.decode import decode
from postroad.spark.router import TopicPartition

READ_BYTES: Final = 16 * 1024
PATIENCE_S: Final = 5.0  # a listener that waits holds up all others

log = logging.getLogger(__name__)


class Lag(NamedTuple):
    """`seconds` is the age of the oldest message that is not read, None where there is none."""

    messages: int
    seconds: float | None
    by_partition: Mapping[TopicPartition, int]


class LagListener(StreamingQueryListener):
    """Knows the lag of each query that reads topics of one cluster; `tell(name or id, lag)` hears of it."""

    def __init__(self, bootstrap: str, tell: Callable[[str, Lag], None] | None = None) -> None:
        self._cluster = Cluster(bootstrap, client_id="postroad-lag", retry_s=PATIENCE_S)
        self._tell = tell
        self._lags: dict[str, Lag] = {}

    def lag(self, query_id: str) -> Lag | None:
        """As it was after the last micro-batch of the query; None before its first."""
        return self._lags.get(str(query_id))

    def with_lag(self, progress: Any) -> dict[str, Any]:
        """A query's progress (`query.lastProgress`) as a dict, with `lagMessages` and `lagSeconds`."""
        found: dict[str, Any] = json.loads(progress.json)
        if lag := self.lag(found["id"]):
            found |= {"lagMessages": lag.messages, "lagSeconds": lag.seconds}
        return found

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Nothing is read yet."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing new has come, so nobody is further behind."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = event.progress
        reached: offsets.Offsets = {}
        for source in progress.sources:
            reached |= _offsets(source.endOffset)
        if not reached:
            return
        try:
            lag = measure(self._cluster, reached)
        except PostroadError as error:
            log.warning("The lag of query %s is not known now: %s", progress.name or progress.id, error)
            return
        self._lags[str(progress.id)] = lag
        if self._tell is not None:
            self._tell(progress.name or str(progress.id), lag)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self._cluster.close()


def measure(cluster: Cluster, reached: Mapping[TopicPartition, int]) -> Lag:
    """How far somebody who has read up to these offsets is behind."""
    ends = cluster.latest(list(reached))
    behind = {
        topic_partition: max(0, end - reached[topic_partition]) for topic_partition, end in ends.items()
    }
    times_ms = [
        time_ms
        for topic_partition, messages in behind.items()
        if messages and (time_ms := _time_ms(cluster, topic_partition, reached[topic_partition])) is not None
    ]
    seconds = max(0.0, time.time() - min(times_ms) / 1000) if times_ms else None
    return Lag(sum(behind.values()), seconds, behind)


def _time_ms(cluster: Cluster, topic_partition: TopicPartition, offset: int) -> float | None:
    """When the first record at or after the offset was written."""
    fetched = cluster.fetch(topic_partition, offset, READ_BYTES, wait_ms=0)
    for batch in decode(
        fetched.data, topic_partition, offset, fetched.next_offset, Columns((columns.TIMESTAMP,))
    ):
        moment = batch.column(0)[0].value
        return None if moment is None else moment / 1000
    return None


def _offsets(text: str | None) -> offsets.Offsets:
    """A source's offsets; nothing if it isn't one that reads topics."""
    try:
        return offsets.from_json(json.loads(text or "{}"))
    except (ValueError, PostroadError):
        return {}
