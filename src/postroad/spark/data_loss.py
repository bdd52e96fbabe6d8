"""What a query can no longer read, said in one place.

Records vanish before a query has read them when retention is shorter than the query is late, when a topic
is deleted or made anew, or when a log loses its end. With `failOnDataLoss` (the default) the query ends at
once with an error that says what is missing; without it a warning says the same and the query goes on with
what is there. Nobody waits for offsets that will never come.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from postroad.errors import PostroadError
from postroad.spark.cluster import Cluster
from postroad.spark.router import TopicPartition
from postroad.wire.batch import walk

SHOWN_MAX: Final = 5
_PROBE_BYTES: Final = 16 * 1024

log = logging.getLogger(__name__)


class DataLost(PostroadError):
    """Records that a query has not read are gone, and failOnDataLoss says that this matters."""


class Loss(NamedTuple):
    """`lost` offsets of a partition; the log has `kept` now, None if there is no such partition any more."""

    topic_partition: TopicPartition
    lost: tuple[int, int]  # first, and the one after the last
    kept: tuple[int, int] | None


def report(cluster: Cluster, losses: Sequence[Loss], *, fail: bool) -> None:
    """DataLost if `fail`; otherwise it is logged. Nothing happens if nothing was lost."""
    if not losses:
        return
    texts = [describe(cluster, loss) for loss in losses[:SHOWN_MAX]]
    if len(losses) > SHOWN_MAX:
        texts.append(f"and {len(losses) - SHOWN_MAX} partitions more.")
    text = " ".join(texts)
    if fail:
        raise DataLost(
            f"Data was lost. {text} "
            "To go on with what is left, set failOnDataLoss=false, or begin with a new checkpoint."
        )
    log.warning("Data was lost; the query goes on without it. %s", text)


def describe(cluster: Cluster, loss: Loss) -> str:
    """One sentence: which offsets of which partition, and why, and since when."""
    topic, partition = loss.topic_partition
    first, after = loss.lost
    if loss.kept is None:
        return (
            f"{topic}/{partition}: all from offset {first:,} on is gone: "
            "it was deleted, or the query no longer subscribes to it."
        )
    lost = f"{topic}/{partition}: offsets {first:,} to {after - 1:,} ({after - first:,}) are gone"
    start, end = loss.kept
    if first >= end:
        return f"{lost}: the log ends at {end:,}; the topic was made anew, or its log lost its end."
    since = _since(cluster, loss.topic_partition, start, end)
    return f"{lost}: the log begins at {start:,}{since}, older records were deleted."


def _since(cluster: Cluster, topic_partition: TopicPartition, start: int, end: int) -> str:
    """When the oldest record that is left was written; nothing if that can't be told."""
    if start >= end:
        return ""
    try:
        data = cluster.fetch(topic_partition, start, _PROBE_BYTES).data
    except PostroadError:
        return ""
    for _, header in walk(data):
        return f" (written {_utc(header.base_timestamp)})"
    return ""


def _utc(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError):
        return f"at {time_ms} ms"
