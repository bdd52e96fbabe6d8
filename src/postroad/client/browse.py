"""Messages looked at without touching them: their content by plain fetches, their state by Peek."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
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

    place: TopicPartition
    offset: int
    state: PeekRange
    record: Record | None


async def look(
    client: Client, group: str, places: Sequence[TopicPartition], first: int | None, limit: int
) -> list[Peeked]:
    """Up to `limit` messages that the subscription is not done with, partition after partition, from an
    offset or from where each begins."""
    found: list[Peeked] = []
    for place in places:
        left = limit - len(found)
        if not left:
            break
        start = FROM_START if first is None else first
        answer = await subscriptions.peek(client, group, place, start, left)
        states = {
            offset: state
            for state in answer.ranges
            if state.state != DONE
            for offset in range(state.first, min(state.last, state.first + left) + 1)
        }
        wanted = sorted(states)[:left]
        records = await read(client, place, wanted)
        found += [Peeked(place, offset, states[offset], records.get(offset)) for offset in wanted]
    return found


async def read(client: Client, place: TopicPartition, wanted: Iterable[int]) -> dict[int, Record]:
    """Those of the records that are there, in as few fetches as their distances allow."""
    missing = set(wanted)
    records: dict[int, Record] = {}
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    async with Consumer(client, reset=EARLIEST, partition_bytes=READ_BYTES) as consumer:
        while missing and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            await consumer.assign({place: min(missing)})
            for _, came, _ in await consumer.poll(left_s):
                records |= {record.offset: record for record in came if record.offset in missing}
            missing = {offset for offset in missing if offset >= consumer.positions[place]}
    return records
