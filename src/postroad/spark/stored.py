"""What earlier attempts of a task stored in a partition, held against the rows of this one.

A broker says where a repeated batch is for the last five batches of a producer, and only if they were cut in
the same way. All others are looked for in the log: it is read backwards, in steps that double, for batches of
this producer and epoch, down to sequence 0 or to where the log begins. So a task that is repeated reads once
what was written to the partition since its first attempt; any other task reads nothing.

Keys and values are compared. What retention or compaction took away meanwhile is no contradiction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from postroad.errors import OffsetNotAvailable, OutOfOrderSequence
from postroad.spark.cluster import Cluster
from postroad.spark.columns import KEY, VALUE
from postroad.spark.fetched import OutsideLog
from postroad.spark.identity import Identity
from postroad.spark.router import TopicPartition
from postroad.spark.rows import column
from postroad.wire.batch import BatchHeader, walk
from postroad.wire.records import Record, decode_records

SEQUENCE_MASK: Final = 0x7FFFFFFF

Text = tuple[bytes | None, bytes | None]


class DifferentRows(OutOfOrderSequence):
    """A repeated task has other rows than before, or in another order."""


class Batch(NamedTuple):
    """Where a stored batch is, and the sequences of its rows."""

    sequence: int  # of the first row
    rows: int
    offset: int
    size: int

    def overlaps(self, sequence: int, count: int) -> bool:
        return (
            rows_between(self.sequence, sequence) < count or rows_between(sequence, self.sequence) < self.rows
        )


class Earlier:
    """What is stored of one task in one partition."""

    def __init__(self, cluster: Cluster, topic_partition: TopicPartition, identity: Identity) -> None:
        self._cluster = cluster
        self._topic_partition = topic_partition
        self._producer = (identity.producer_id, identity.epoch)
        self._batches: list[Batch] = []  # the newest first
        self._seen_to = 0  # the log was looked through up to this offset

    def expect(self, sequence: int, rows: Any) -> None:
        """The broker has rows of these sequences: they are these, or DifferentRows is raised."""
        if self._reaches_to(sequence + len(rows)) or self._look(sequence + len(rows)):
            wanted = _texts(rows)
            for batch in self._batches:
                if batch.overlaps(sequence, len(rows)):
                    self._compare(batch, sequence, wanted)

    def expect_at(self, offset: int, sequence: int, rows: Any, size: int) -> None:
        """The same if the broker has said that they are the batch at this offset, of about that size."""
        self._compare(Batch(sequence, len(rows), offset, size), sequence, _texts(rows))

    def _compare(self, batch: Batch, sequence: int, wanted: Sequence[Text]) -> None:
        first = rows_between(batch.sequence, sequence)
        for record in self._records(batch):
            at = (first + record.offset - batch.offset) & SEQUENCE_MASK
            if at < len(wanted) and (record.key, record.value) != wanted[at]:
                raise DifferentRows(
                    f"{self._name}: the task was repeated with other rows than before, or in another "
                    "order, so nobody can tell which of them are stored. Make them the same each time (sort "
                    "in foreachBatch, and write there with the options writeId and writeBatch), or give the "
                    "option writeId a new value to write all of them once more."
                )

    def _records(self, batch: Batch) -> list[Record]:
        try:
            data = self._cluster.fetch(self._topic_partition, batch.offset, batch.size).data
        except OutsideLog:
            return []
        for at, header in walk(data):
            if header.base_offset == batch.offset:
                return decode_records(data[at : at + header.size])
        return []

    # --- in the log ----------------------------------------------------------------------------

    def _reaches_to(self, end: int) -> bool:
        """Do the batches that were found reach to this sequence?"""
        if not self._batches:
            return False
        newest = self._batches[0]
        return rows_between(newest.sequence + newest.rows, end) <= SEQUENCE_MASK // 2

    def _look(self, end: int) -> bool:
        """Find all that was stored up to this sequence; False if the log has none of it any more."""
        begins = self._cluster.earliest([self._topic_partition])[self._topic_partition]
        ends = self._cluster.latest([self._topic_partition])[self._topic_partition]
        newer = self._find(max(begins, self._seen_to), ends, steps_of=end)
        self._batches, self._seen_to = [*newer, *self._batches], ends
        if self._reaches_to(end):
            return True
        if begins and not self._batches:
            return False
        raise OffsetNotAvailable(
            f"{self._name}: the log doesn't show yet what an earlier attempt of the task stored, so nothing "
            "can be compared with it. Start again."
        )

    def _find(self, begin: int, end: int, steps_of: int) -> list[Batch]:
        found: list[Batch] = []
        while end > begin:
            middle = max(begin, end - steps_of)
            for header in reversed(self._mine(middle, end)):
                rows = header.last_offset_delta + 1
                found.append(Batch(header.base_sequence, rows, header.base_offset, header.size))
                if header.base_sequence == 0:
                    return found
            end, steps_of = middle, steps_of * 2
        return found

    def _mine(self, begin: int, end: int) -> list[BatchHeader]:
        """The task's batches that begin between these offsets."""
        found = []
        while begin < end:
            fetched = self._cluster.fetch(self._topic_partition, begin)
            if fetched.next_offset == begin:
                raise OffsetNotAvailable(f"{self._name}: nothing came for offset {begin:,}, below its end.")
            found += [
                header
                for _, header in walk(fetched.data)
                if begin <= header.base_offset < end
                and (header.producer_id, header.producer_epoch) == self._producer
            ]
            begin = fetched.next_offset
        return found

    @property
    def _name(self) -> str:
        return f"{self._topic_partition[0]}/{self._topic_partition[1]}"


def rows_between(later: int, earlier: int) -> int:
    """From one sequence to another. They count modulo 2^31: more than half of that is a step back."""
    return (later - earlier) & SEQUENCE_MASK


def _texts(rows: Any) -> list[Text]:
    """Key and value of each row."""
    keys, values = (column(rows, name) for name in (KEY, VALUE))
    return list(
        zip([None] * len(rows) if keys is None else keys.to_pylist(), values.to_pylist(), strict=True)
    )
