"""The backend that is a cluster: `client`'s producer and share consumers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from postroad.client.client import Client
from postroad.client.producer import Producer
from postroad.client.share_consumer import ShareConsumer
from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import PostroadError
from postroad.wire.share_requests import NOT_GIVEN
from postroad.workers.declaring import declare
from postroad.workers.publishing import Outgoing
from postroad.workers.worker import Worker

if TYPE_CHECKING:
    from postroad.workers.commits import Commits


class KafkaBackend:
    """`connect` makes a client that is not connected yet."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._client: Client | None = None
        self._producer: Producer | None = None

    async def open(self) -> None:
        client = self._connect()
        try:
            await client.connection()
        except BaseException:
            client.close()
            raise
        self._client, self._producer = client, Producer(client)

    async def close(self) -> None:
        if self._producer is not None:
            try:
                with contextlib.suppress(PostroadError):  # whoever published it was told
                    await self._producer.__aexit__(None, None, None)
            finally:
                self.client.close()
                self._client = self._producer = None

    @property
    def client(self) -> Client:
        assert self._client is not None, "open it first"
        return self._client

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        producer = self._producer
        assert producer is not None, "open it first"
        deliveries = [
            await producer.send(topic, value, key=key, headers=headers)
            for topic, value, key, headers in messages
        ]
        for delivery in deliveries:
            await delivery

    async def join(self, worker: Worker) -> KafkaSource:
        await declare(self.client, worker)
        source = KafkaSource(self.client, worker)
        await source.open()
        return source


class KafkaSource:
    def __init__(self, client: Client, worker: Worker) -> None:
        self._client = client
        self._worker = worker
        self._consumer = ShareConsumer(client, worker.subscription, worker.topics)
        self._commits: Commits | None = None

    async def open(self) -> None:
        await self._consumer.__aenter__()

    @property
    def losses(self) -> int:
        return self._consumer.losses

    async def take(self, count: int, wait_ms: int) -> list[ShareMessage]:
        return await self._consumer.poll(count, wait_ms, lock_ms=self._worker.lock_ms)

    async def collect(self) -> list[ShareMessage]:
        return await self._consumer.collect()

    async def settle(
        self,
        messages: Sequence[ShareMessage],
        kind: AckType,
        *,
        delay_ms: int | None = None,
        reason: str = "",
    ) -> list[tuple[ShareMessage, PostroadError]]:
        refusals = await self._consumer.settle(
            messages,
            kind,
            lock_ms=self._worker.lock_ms if kind == AckType.RENEW else NOT_GIVEN,
            delay_ms=NOT_GIVEN if delay_ms is None else delay_ms,
            reason=reason,
        )
        return [(refusal.message, refusal.error) for refusal in refusals]

    async def commit(self, done: Sequence[tuple[ShareMessage, Sequence[Outgoing]]]) -> None:
        if self._commits is None:
            from postroad.workers.commits import Commits

            self._commits = Commits(self._client, self._consumer)
        await self._commits.commit(done)

    async def close(self) -> None:
        if self._commits is not None:
            await self._commits.close()
        await self._consumer.close()
