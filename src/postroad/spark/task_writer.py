"""One task's rows on their way into topics: loads, partitions, batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from postroad.errors import MessageTooLarge, UnknownTopicOrPartition
from postroad.spark import placing
from postroad.spark.cluster import Cluster
from postroad.spark.columns import KEY, PARTITION, TOPIC
from postroad.spark.cuts import cut
from postroad.spark.identity import Identity
from postroad.spark.loads import loads
from postroad.spark.placing import Turn
from postroad.spark.router import TopicPartition
from postroad.spark.rows import column, sizes, with_times
from postroad.spark.sending import Sender
from postroad.spark.stored import SEQUENCE_MASK
from postroad.spark.storing import Outgoing, Reach, Store, outgoing
from postroad.spark.write_options import WriteOptions
from postroad.wire.compression import codec_of

_PARTITION_BITS: Final = 32


def write_task(
    options: WriteOptions,
    identity: Identity,
    batches: Iterable[Any],
    in_loads: Callable[[Iterable[Any]], Iterator[Any]] | None = None,
    reach: Reach | None = None,
) -> tuple[int, int]:
    """All rows are stored when it returns; how many they were, and the bytes of their batches.

    `in_loads` says what is sent at a time, and when: as `loads` does, or slower. `reach` is for transactions
    to which partitions are added.
    """
    rows = size = 0
    with options.cluster as cluster:
        task = _Task(options, identity, cluster)
        with Sender(Store(cluster, identity, task.encode, reach=reach)) as sender:
            for load in in_loads(batches) if in_loads else loads(batches, options.batch_bytes):
                for sendings in task.rounds(load):
                    sender.send(sendings)
                    size += sum(len(each.data) for each in sendings.values())
                rows += len(load)
    return rows, size


class _Task:
    def __init__(self, options: WriteOptions, identity: Identity, cluster: Cluster) -> None:
        self._options = options
        self._compression = codec_of(options.compression)
        self._identity = identity
        self._cluster = cluster
        self._partitions: dict[str, int] = {}
        self._turns: dict[str, Turn] = {}
        self._sequences: dict[TopicPartition, int] = {}

    def rounds(self, load: Any) -> Iterator[dict[TopicPartition, Outgoing]]:
        """The load's batches, at most one for each partition at a time."""
        self._check_sizes(load)
        topic_partitions = self._by_topic_partition(with_times(load))
        cuts = [cut(rows, self._options.batch_bytes) for rows in topic_partitions.values()]
        for slices in zip_longest(*cuts):
            yield {
                topic_partition: self._next(topic_partition, rows)
                for topic_partition, rows in zip(topic_partitions, slices, strict=True)
                if rows is not None
            }

    def encode(self, rows: Any, sequence: int) -> Outgoing:
        """One record batch of all the rows."""
        return outgoing(rows, sequence, self._identity, self._compression)

    def _next(self, topic_partition: TopicPartition, rows: Any) -> Outgoing:
        sequence = self._sequences.get(topic_partition, 0)
        self._sequences[topic_partition] = (sequence + len(rows)) & SEQUENCE_MASK
        return self.encode(rows, sequence)

    def _by_topic_partition(self, load: Any) -> dict[TopicPartition, Any]:
        """The rows of each partition, in their order."""
        topics, codes = self._codes(load)
        order, found = placing.gather(codes)
        if order is not None:
            load = load.take(order)
        return {
            (topics[code >> _PARTITION_BITS], code & ((1 << _PARTITION_BITS) - 1)): load.slice(first, count)
            for code, first, count in found
        }

    def _codes(self, load: Any) -> tuple[list[str], Any]:
        """The load's topics; and for each row the number of its topic among them, and its partition."""
        if self._options.topic is not None:
            return [self._options.topic], self._topic_partition(self._options.topic, load)
        named = column(load, TOPIC).dictionary_encode()
        topics: list[str] = named.dictionary.to_pylist()
        numbers = named.indices.to_numpy()
        codes = np.empty(len(load), np.int64)
        for number, topic in enumerate(topics):
            mine = np.flatnonzero(numbers == number)
            rows = load if len(topics) == 1 else load.take(mine)
            codes[mine] = self._topic_partition(topic, rows) | number << _PARTITION_BITS
        return topics, codes

    def _topic_partition(self, topic: str, rows: Any) -> Any:
        count = self._count(topic)
        wanted = column(rows, PARTITION)
        if wanted is not None and wanted.null_count < len(wanted):
            _check_partitions(topic, wanted, count)
        turn = self._turns.setdefault(topic, Turn(self._identity.turn))
        keys = column(rows, KEY)
        return placing.topic_partition(keys, wanted, len(rows), count, turn).astype(np.int64)

    def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            self._partitions[topic] = len(self._cluster.topics([topic])[topic].partitions)
        return self._partitions[topic]

    def _check_sizes(self, load: Any) -> None:
        largest, limit = int(sizes(load).max()), self._options.record_bytes_max
        if largest > limit:
            raise MessageTooLarge(
                f"A row has {largest:,} bytes, more than {limit:,}: write less in one row, or raise the "
                "option kafka.max.request.size and the topic's max.message.bytes."
            )


def _check_partitions(topic: str, wanted: Any, count: int) -> None:
    bounds = pc.min_max(wanted).as_py()
    for partition in (bounds["min"], bounds["max"]):
        if not 0 <= partition < count:
            raise UnknownTopicOrPartition(
                f"Topic {topic} has no partition {partition}: it has {count}, counted from 0."
            )
