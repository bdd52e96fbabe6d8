"""Messages looked at without touching them: their content by plain fetches, their state by Peek."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from postroad.client import subscriptions
from postroad.client.client import Client
from postroad.client.consumer import Consumer
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.wire.peek import FROM_START, PeekRange
from postroad.wire.records import Record

DONE: Final = "done"
READ_BYTES: Final = 256 * 1024
PATIENCE_S: Final = 5.0  # content that can't be read by then is left out


class Peeked(NamedTuple):
    """`state` has the message among others in the same state; `record` is None if it could not be read."""

    topic_partition: TopicPartition
    offset: int
    state: PeekRange
    record: Record | None


class Following(NamedTuple):
    """Where to go on looking."""

    topic_partition: TopicPartition
    offset: int


async def look(
    client: Client,
    group: str,
    topic_partitions: Sequence[TopicPartition],
    starts: Mapping[TopicPartition, int],
    limit: int,
    bytes_max: int | None = None,
) -> tuple[list[Peeked], Following | None]:
    """Up to `limit` messages that the subscription is not done with, partition after partition, each
    from its offset in `starts` or from where it begins; and where there may be more.

    With about `bytes_max` it is enough too: the message that brings it there is still among them.
    """
    found: list[Peeked] = []
    size = 0
    for topic_partition in topic_partitions:
        left = limit - len(found)
        start = starts.get(topic_partition, FROM_START)
        if not left:
            return found, Following(topic_partition, max(start, 0))
        answer = await subscriptions.peek(client, group, topic_partition, start, left)
        states = {
            offset: state
            for state in answer.ranges
            if state.state != DONE
            for offset in range(state.first, min(state.last, state.first + left) + 1)
        }
        wanted = sorted(states)[:left]
        left_bytes = None if bytes_max is None else bytes_max - size
        records, end = await read(client, topic_partition, wanted, left_bytes)
        size += sum(map(size_of, records.values()))
        looked = [offset for offset in wanted if end is None or offset < end]
        found += [Peeked(topic_partition, offset, states[offset], records.get(offset)) for offset in looked]
        if len(looked) < len(wanted):
            return found, Following(topic_partition, wanted[len(looked)])
        if len(found) == limit and wanted[-1] + 1 < answer.high_watermark:
            return found, Following(topic_partition, wanted[-1] + 1)
    return found, None


async def read(
    client: Client, topic_partition: TopicPartition, wanted: Iterable[int], bytes_max: int | None = None
) -> tuple[dict[int, Record], int | None]:
    """Those of the records that are there, in as few fetches as their distances allow. And where it ended
    because `bytes_max` were read, else None; the first fetch counts whatever it brings."""
    missing = set(wanted)
    size = 0
    records: dict[int, Record] = {}
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    async with Consumer(client, reset=EARLIEST, partition_bytes=READ_BYTES) as consumer:
        while missing and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            await consumer.assign({topic_partition: min(missing)})
            for _, came, _ in await consumer.poll(left_s):
                for record in came:
                    if record.offset in missing:
                        records[record.offset] = record
                        size += size_of(record)
            missing = {offset for offset in missing if offset >= consumer.positions[topic_partition]}
            if missing and bytes_max is not None and size >= bytes_max:
                return records, consumer.positions[topic_partition]
    return records, None


def size_of(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
