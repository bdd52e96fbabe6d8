"""Rows that could not be read, put into a topic with the reason, each once.

The record is kept as it was: key, value and headers. Further headers are added that say where it was and
what is wrong, by the names of all our dead letters, so whatever lists and redrives those takes these, too.

A task that is repeated writes as the same producer, with the same sequence numbers (`identity`): what is in
the topic already is not stored twice. Which letters there are, and how they are cut, follows from the query
and its micro-batch, the partition, the offset at which the task begins and the schema, so these are the
identity.

A letter is larger than its record was, which may have come compressed. One that is too large for a batch with
others is compressed, too; if the topic doesn't take it even so it goes there without its value, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from postroad.errors import RequestRefused
from postroad.spark import columns
from postroad.spark.cluster import Cluster
from postroad.spark.identity import of_task
from postroad.spark.ranges import OffsetRange
from postroad.spark.router import TopicPartition
from postroad.spark.storing import Outgoing, Store, outgoing, too_large
from postroad.wire import header_names as names
from postroad.wire.compression import GZIP, NONE

LETTERS_MAX: Final = 500
LETTER_BYTES: Final = 512 * 1024  # a batch stays below what a topic accepts by default

Headers = Sequence[tuple[str, bytes | None]]


class Letter(NamedTuple):
    """A record that could not be read."""

    offset: int
    time_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class DeadLetters:
    """Those of one task of `job`. Nothing is written before `flush`, but full batches."""

    def __init__(self, cluster: Cluster, topic: str, part: OffsetRange, job: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._part = part
        self._identity = of_task(f"dead letters of {part.topic}/{part.partition} {job}", part.start)
        self._store = Store(cluster, self._identity, self._encode, _without_value)
        self._letters: list[Letter] = []
        self._bytes = 0
        self._sequence = 0
        self._topic_partition: TopicPartition | None = None

    def add(self, letter: Letter, reason: str) -> None:
        now_ms = time.time_ns() // 1_000_000  # the letter is new: retention counts from now
        headers = [
            (names.SET_ASIDE.get(name, name), value)
            for name, value in letter.headers
            if not names.tells_of_death(name)
        ]
        headers += self._told(letter, now_ms, reason)
        size = sum(len(name) + len(value or b"") for name, value in headers)
        size += len(letter.key or b"") + len(letter.value or b"")
        if len(self._letters) >= LETTERS_MAX or (self._letters and self._bytes + size > LETTER_BYTES):
            self.flush()
        self._letters.append(letter._replace(time_ms=now_ms, headers=headers))
        self._bytes += size

    def flush(self) -> None:
        """All that were added are stored, now or by an earlier attempt of this task."""
        if not self._letters:
            return
        self._store.put({self._target(): self._encode(_rows(self._letters), self._sequence)})
        self._sequence += len(self._letters)
        self._letters, self._bytes = [], 0

    def _encode(self, rows: Any, sequence: int) -> Outgoing:
        compression = NONE if rows.nbytes <= LETTER_BYTES else GZIP
        return outgoing(rows, sequence, self._identity, compression)

    def _target(self) -> TopicPartition:
        """One partition for a task, looked up for the first letter: most tasks have none."""
        if self._topic_partition is None:
            topic_partitions = self._cluster.topics([self._topic])[self._topic].topic_partitions
            self._topic_partition = topic_partitions[self._part.partition % len(topic_partitions)]
        return self._topic_partition

    def _told(self, letter: Letter, now_ms: int, reason: str) -> list[tuple[str, bytes]]:
        facts = {
            names.DEAD_TOPIC: self._part.topic,
            names.DEAD_PARTITION: self._part.partition,
            names.DEAD_OFFSET: letter.offset,
            names.DEAD_TIMESTAMP: letter.time_ms,
            names.DEAD_AT: now_ms,
            names.DEAD_REASON: reason,
        }
        return [(name, str(fact).encode()) for name, fact in facts.items()]


def _rows(letters: Sequence[Letter]) -> Any:
    """As the sink has them."""
    arrays = {
        columns.KEY: pa.array([letter.key for letter in letters], pa.binary()),
        columns.VALUE: pa.array([letter.value for letter in letters], pa.binary()),
        columns.TIMESTAMP: pa.array([letter.time_ms for letter in letters], pa.int64()),
        columns.HEADERS: pa.array(
            [[{"key": name, "value": value} for name, value in letter.headers] for letter in letters],
            columns.TYPES[columns.HEADERS],
        ),
    }
    return pa.RecordBatch.from_pydict(arrays)


def _without_value(topic_partition: TopicPartition, batch: Outgoing, refusal: RequestRefused) -> Any:
    (row,) = batch.rows.to_pylist()
    value = row[columns.VALUE]
    if value is None:
        too_large(topic_partition, batch, refusal)
    why = f"its value of {len(value):,} bytes is too large for topic {topic_partition[0]}"
    headers = [(each["key"], each["value"]) for each in row[columns.HEADERS]]
    headers.append((names.DEAD_UNREADABLE, why.encode()))
    return _rows([Letter(0, row[columns.TIMESTAMP], row[columns.KEY], None, headers)])
