"""What all actions share: the gateway, its queues by their URLs, and who is asking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from postroad.errors import GroupIdNotFound, UnknownTopicOrPartition
from postroad.gateway.consumers import Consumer, consumer_of
from postroad.gateway.directory import SubscriptionInfo
from postroad.gateway.exchange import Head
from postroad.gateway.gateway import Gateway
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import DESCRIBE
from postroad.gateway.sqs import names
from postroad.gateway.sqs.deduplication import Duplicates
from postroad.gateway.sqs.errors import no_such_queue
from postroad.gateway.sqs.first_receives import FirstReceives
from postroad.gateway.sqs.move_task import KIND, Move
from postroad.gateway.sqs.queue import SQS_CONFIG, Queue, Remembered, write

_QUEUES_MAX: Final = 10_000


class Caller:
    """Who asks, as far as an action has to know."""

    __slots__ = ("_head", "_url", "access")

    def __init__(self, head: Head, url: str, access: Access) -> None:
        self._head = head
        self._url = url
        self.access = access

    @property
    def base_url(self) -> str:
        """What URLs of queues begin with: as configured, or as the caller addressed us."""
        return self._url or self._head.origin

    @property
    def region(self) -> str:
        """The one that the caller signed for."""
        _, _, scope = self._head.headers.get("authorization", "").partition("Credential=")
        parts = scope.split("/", 4)
        return parts[2] if len(parts) == 5 and parts[2].isprintable() else names.REGION

    @property
    def trace(self) -> str:
        """What X-Ray follows a request by; empty if nobody does."""
        return self._head.headers.get("x-amzn-trace-id", "")

    @property
    def consumer(self) -> Consumer:
        """The caller, in the list of those who receive."""
        transport = self._head.peer.transport
        peer = None if transport is None else transport.get_extra_info("peername")
        agent = self._head.headers.get("user-agent", "")
        return consumer_of("sqs", str(peer[0]) if peer else "", agent, self.access.owner)

    @property
    def is_gone(self) -> bool:
        """The connection is closed: nobody will see the answer."""
        transport = self._head.peer.transport
        return transport is None or transport.is_closing()


class Service:
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.duplicates = Duplicates()
        self.first_receives = FirstReceives()
        gateway.redrives.kinds[KIND] = lambda source, task: Move(gateway, source, task)
        self._queues: dict[str, Queue] = {}
        self.changes = (
            asyncio.Lock()
        )  # what is remembered of a queue is one text, read and written as a whole

    async def queue(self, url: str) -> Queue:
        """Raises SqsError if there is none."""
        return self.known_queue(url) or await self.queue_named(names.name_in_url(url))

    def known_queue(self, url: str) -> Queue | None:
        """If nobody has to be asked. Raises SqsError if it is no URL of a queue."""
        info = self.gateway.directory.known(names.name_in_url(url))
        return None if info is None else self._seen(info)

    @staticmethod
    def may_see(access: Access, name: str) -> bool:
        """Whether the caller may know that there is such a queue: as a consumer, or as a sender."""
        return access.may_group(name, DESCRIBE) or access.may_topic(name, DESCRIBE)

    async def queue_seen(self, access: Access, name: str) -> Queue:
        """The queue, for somebody who may know of it; no such queue for others. Raises SqsError."""
        if access.is_guarded and not self.may_see(access, name):
            raise no_such_queue()
        return await self.queue_named(name)

    async def queue_named(self, name: str) -> Queue:
        if not 0 < len(name) <= names.GROUP_CHARACTERS_MAX:
            raise no_such_queue()
        try:
            info = await self.gateway.directory.subscription(name)
        except (GroupIdNotFound, UnknownTopicOrPartition):
            raise no_such_queue() from None
        return self._seen(info)

    @asynccontextmanager
    async def changing(self, url: str) -> AsyncIterator[Queue]:
        """The queue as it is just now; nobody else here changes one meanwhile. Raises SqsError."""
        name = names.name_in_url(url)
        async with self.changes:
            self.gateway.directory.forget(name)
            yield await self.queue_named(name)

    async def remember(
        self, queue: Queue, remembered: Remembered, config: Mapping[str, str | None] | None = None
    ) -> None:
        """In place of what was remembered; `config` is changed along with it."""
        await self.gateway.directory.alter(queue.name, {**(config or {}), SQS_CONFIG: write(remembered)})

    def _seen(self, info: SubscriptionInfo) -> Queue:
        """Read once for each time that the directory asks anew."""
        queue = self._queues.get(info.name)
        if queue is None or queue.info is not info:
            if len(self._queues) >= _QUEUES_MAX:
                self._queues.clear()
            queue = self._queues[info.name] = Queue(info)
        return queue
