"""A partition's records, from an offset to where its log ends when the reading begins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from postroad.client import Client, TopicPartition
from postroad.client.fetcher import Fetcher
from postroad.client.offsets import EARLIEST
from postroad.errors import RequestTimedOut
from postroad.wire.records import Record

POLL_S: Final = 1.0


async def read(
    client: Client, topic_partition: TopicPartition, start: int, end: int
) -> AsyncIterator[list[Record]]:
    """All there are from `start` on and before `end`, in pieces. RequestTimedOut if no more come in time."""
    if start >= end:
        return
    fetcher = Fetcher(client, reset=EARLIEST)
    fetcher.seek({topic_partition: start})
    loop = asyncio.get_running_loop()
    deadline = loop.time() + client.timeout_s
    try:
        while fetcher.positions[topic_partition] < end:
            before = fetcher.positions[topic_partition]
            for _, records, _ in await fetcher.next(POLL_S):
                yield [record for record in records if record.offset < end]
            if fetcher.positions[topic_partition] > before:
                deadline = loop.time() + client.timeout_s
            elif loop.time() > deadline:
                raise RequestTimedOut(f"{topic_partition} can't be read from offset {before} on.")
    finally:
        await fetcher.close()
