"""`TopicLog`: the registry's records in the topic `__schemas`, followed and written.

Whoever asks first has the topic read from its beginning; from then on it is followed. What was written at any
gateway before a question is known when it is answered: the topic's end is asked for, and waited for. So it
is with what this gateway writes: `write` returns when it is applied, with all that came before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from postroad.client import offsets, topics
from postroad.client.append import append
from postroad.client.client import Client
from postroad.client.fetcher import Fetcher
from postroad.client.metadata import TopicPartition
from postroad.client.offsets import EARLIEST
from postroad.errors import CoordinatorNotAvailable, PostroadError, TopicAlreadyExists, TryAgain
from postroad.schemas.records import RegistryRecord
from postroad.schemas.registry import Registry
from postroad.wire.records import Record, encode_batch

TOPIC: Final = "__schemas"
PARTITION: Final = TopicPartition(TOPIC, 0)  # the only one: its order is what decides
CATCH_UP_S: Final = 10.0  # a question that has waited so long is answered 503
POLL_S: Final = 1.0
AGAIN_S: Final = 0.5

log = logging.getLogger(__name__)


class TopicLog:
    def __init__(self, client: Client) -> None:
        self.registry = Registry()
        self._client = client
        self._next = 0  # the offset of the first record that is not applied
        self._moved = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def caught_up(self) -> Registry:
        """The registry with all that was written before this call. Raises PostroadError."""
        if await self._start():
            end = (await offsets.latest(self._client, [PARTITION]))[PARTITION]
            await self._applied(end)
        return self.registry

    async def write(self, made: Sequence[RegistryRecord]) -> None:
        """The records are durable, in one batch, and applied. Raises PostroadError."""
        if not await self._start():
            with contextlib.suppress(TopicAlreadyExists):  # another gateway was faster
                await topics.create(self._client, TOPIC, partitions=1)
            await self._client.retry(lambda: self._client.topic(TOPIC))
            await self._start()
        now_ms = self._client.runtime.clock.now_ms()
        batch = encode_batch(
            [Record(number, now_ms, key, value, ()) for number, (key, value) in enumerate(made)],
            base_offset=0,
        )
        appended = await append(self._client, PARTITION, batch)
        await self._applied(appended.base_offset + len(made))

    # --- following

    async def _start(self) -> bool:
        """Whether there is a topic; it is followed then."""
        if self._following is not None:
            return True
        async with self._starting:
            if self._following is None and await self._exists():
                self._following = asyncio.create_task(self._follow(), name="follow schemas")
        return self._following is not None

    async def _exists(self) -> bool:
        return await self._client.retry(lambda: self._client.topic_now(TOPIC)) is not None

    async def _follow(self) -> None:
        fetcher = Fetcher(self._client, reset=EARLIEST)
        fetcher.seek({PARTITION: 0})
        try:
            while True:
                try:
                    await self._take_next(fetcher)
                except PostroadError as error:
                    level = logging.INFO if isinstance(error, TryAgain) else logging.ERROR
                    log.log(level, "schemas can't be read: %s", error)
                    await asyncio.sleep(AGAIN_S)
        finally:
            await fetcher.close()

    async def _take_next(self, fetcher: Fetcher) -> None:
        for fetched in await fetcher.next(POLL_S):
            for record in fetched.records:
                if record.offset < self._next:  # the log lost its end, and is read from its beginning
                    self.registry, self._next = Registry(), 0
                if not self.registry.apply(record.key, record.value):
                    log.warning("%s: the record at offset %d can't be read", TOPIC, record.offset)
                self._next = record.offset + 1
        self._next = max(self._next, fetcher.positions.get(PARTITION, 0))
        self._moved.set()
        self._moved = asyncio.Event()

    async def _applied(self, end: int) -> None:
        try:
            async with asyncio.timeout(CATCH_UP_S):
                while self._next < end:
                    await self._moved.wait()
        except TimeoutError:
            raise CoordinatorNotAvailable("The schemas can't be read now: try again later.") from None
