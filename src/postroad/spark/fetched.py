"""What one Fetch brought of one partition, and the error for an offset that the log doesn't have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from postroad.client.offsets import by_topic
from postroad.errors import CorruptMessage, OffsetOutOfRange
from postroad.spark.router import TopicPartition
from postroad.wire import batch as batches
from postroad.wire.messages import fetch


class Aborted(NamedTuple):
    """A transaction that was aborted: its producer's batches from here on to its marker don't count."""

    producer_id: int
    first_offset: int


class Fetched(NamedTuple):
    """Whole batches; the first may begin before the offset that was asked for.

    `next_offset` is where to go on: behind the last batch, even if compaction took its last records,
    or the offset that was asked for if nothing came. `end` is where a reader of this isolation has to
    stop for now: the high watermark, or the last stable offset.
    """

    data: memoryview
    next_offset: int
    high_watermark: int
    end: int
    log_start: int
    aborted: list[Aborted]


class OutsideLog(OffsetOutOfRange):
    """The offset lies before the log's start (records were deleted) or after its end (they were lost)."""

    def __init__(self, topic_partition: TopicPartition, offset: int, start: int, end: int) -> None:
        super().__init__(topic_partition, offset, start, end)  # all of them, so that it can be pickled
        self.topic_partition, self.offset, self.start, self.end = topic_partition, offset, start, end

    def __str__(self) -> str:
        topic, partition = self.topic_partition
        if self.offset < self.start:
            why = f"it begins at {self.start:,}: the records before that were deleted"
        else:
            why = f"it ends at {self.end:,}: the topic was made anew, or its end was lost"
        return f"{topic}/{partition} has no offset {self.offset:,}; {why}."


def fetch_request(
    offsets: Mapping[TopicPartition, int],
    max_bytes: int,
    wait_ms: int,
    is_committed_only: bool,
    rack: str = "",
) -> fetch.FetchRequest:
    """For partitions of one leader, or of a replica nearby."""
    topics = [
        fetch.FetchTopic(
            topic=topic,
            partitions=[
                fetch.FetchPartition(
                    partition=partition,
                    fetch_offset=offsets[topic, partition],
                    partition_max_bytes=max_bytes,
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(offsets).items()
    ]
    return fetch.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=int(is_committed_only),
        topics=topics,
        rack_id=rack,
    )


def read_partition(
    topic_partition: TopicPartition, offset: int, answer: Any, is_committed_only: bool
) -> Fetched:
    """From the part of an answer that has no error code."""
    data = memoryview(answer.records or b"").cast("B")
    size, next_offset = _whole_batches(topic_partition, data, offset)
    aborted = [Aborted(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
    end = answer.last_stable_offset if is_committed_only else answer.high_watermark
    return Fetched(data[:size], next_offset, answer.high_watermark, end, answer.log_start_offset, aborted)


def _whole_batches(topic_partition: TopicPartition, data: memoryview, offset: int) -> tuple[int, int]:
    """How many bytes are whole batches, and the offset behind them. A node may cut the last batch."""
    size, next_offset = 0, offset
    for at, header in batches.walk(data):
        size, next_offset = at + header.size, header.next_offset
    if data and next_offset <= offset:  # to ask again would bring the same, for ever
        raise CorruptMessage(
            f"{topic_partition[0]}/{topic_partition[1]}: the answer for offset {offset:,} doesn't hold it."
        )
    return size, max(next_offset, offset)
