"""What all dialects share: publish, receive, settle, and what there is to publish to and receive from."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Self

from postroad.client import nodes, topics
from postroad.client.client import Client
from postroad.client.login import Credentials
from postroad.client.metadata import Topic
from postroad.client.producer import Delivery, Producer, Sent
from postroad.client.share_message import AckType
from postroad.config.sections import Console, Http
from postroad.errors import PostroadError, TopicAlreadyExists, UnknownTopicOrPartition
from postroad.gateway.access import Keys
from postroad.gateway.consumers import Consumers
from postroad.gateway.directory import Directory
from postroad.gateway.exchange import PlainRoute
from postroad.gateway.history import History
from postroad.gateway.memory import Memory
from postroad.gateway.metrics import GatewayMetrics
from postroad.gateway.node_figures import FiguresOfNodes
from postroad.gateway.origin import Visitors
from postroad.gateway.pages import Pages
from postroad.gateway.receipts import Receipt, Receipts
from postroad.gateway.receiver import RECEIVE_BYTES_MAX, IsGone, Received, Receiver
from postroad.gateway.redrives import Redrives
from postroad.gateway.scans import Helpers
from postroad.gateway.schemas.registrar import Registrar
from postroad.gateway.security import rights
from postroad.gateway.security.access import OPEN, Access
from postroad.gateway.security.identities import Identities
from postroad.gateway.settler import Settler
from postroad.gateway.topic_ids import TopicIds
from postroad.gateway.transactions import Transactions
from postroad.wire.share_requests import NOT_GIVEN

RECEIVERS_SWEEP_S: Final = 10.0
SCANS_AT_ONCE: Final = 2  # each has a process, which may keep a core busy for as long as it lasts


class Message(NamedTuple):
    """A message to publish. Without a timestamp it gets that of now; without a partition the key decides."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None
    partition: int | None = None


@dataclass(frozen=True)
class GatewaySettings:
    bootstrap: str
    http: Http
    credentials: Credentials | None = None  # with which it logs in to the nodes
    are_users: bool = False  # requests are users', as the nodes know them (`security.enabled`)
    principal_rules: str = "DEFAULT"  # how users are called after their certificates
    name: str = ""  # of no other gateway, and the same at its next start; empty: a random one
    console: Console = field(default_factory=Console)


class Gateway:
    """`async with Gateway(settings) as gateway`: connected, and ready for any number of callers."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self.http = settings.http
        self.identities = Identities(
            Keys.parse(settings.http.access_keys), settings.are_users, settings.principal_rules
        )
        self.visitors = Visitors(settings.http, self.identities.required)
        self.client = Client(
            settings.bootstrap, client_id="postroad-gateway", credentials=settings.credentials
        )
        self.producer = Producer(self.client)
        self.directory = Directory(self.client)
        self.topic_ids = TopicIds(self.client)
        self.settler = Settler(self.client, self.topic_ids)
        self.transactions = Transactions(self.client, self.settler, settings.name)
        self.receipts: Receipts
        self.cluster_id = ""
        self.metrics = GatewayMetrics()
        self.memory: Memory[Any] = Memory(settings.http)
        self.plain_routes: dict[str, PlainRoute] = {}  # by X-Amz-Target: what need not go through aiohttp
        self.pages = Pages()
        self.consumers = Consumers()
        self.figures = FiguresOfNodes(self.client)
        self.scans = Pages(at_once=SCANS_AT_ONCE)
        self.helpers = Helpers(settings.bootstrap, settings.credentials)
        self.closing = asyncio.Event()  # long waits end when it is set
        self.history = History(self.client)
        self.redrives = Redrives(self.client, self.directory, self.closing)
        self.schemas = Registrar(self.client)
        self._receivers: dict[str, Receiver] = {}
        self._sweeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        cluster = await self.client.retry(lambda: self.client.cluster([]))
        self.cluster_id = cluster.id or ""
        self.receipts = Receipts(await self._receipt_key())
        await self.identities.follow(self.client)
        self._sweeper = asyncio.create_task(self._sweep(), name="idle receivers")
        self.transactions.start()
        return self

    async def end_waits(self) -> None:
        """Whoever waits for messages gets none, now and from here on."""
        self.closing.set()
        await asyncio.gather(*(receiver.close() for receiver in self._receivers.values()))

    async def __aexit__(self, *_: object) -> None:
        """What was accepted is published; what is under way to nobody is released."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self.end_waits()
        self.transactions.close()
        with contextlib.suppress(PostroadError):  # whoever published it was told
            await self.producer.__aexit__(None)
        await self.schemas.close()
        await self.identities.close()
        await self.helpers.close()
        self.client.close()

    async def _receipt_key(self) -> bytes:
        """Gateways of one cluster must agree on it, with nothing configured too."""
        if self.http.receipt_secret:
            return hashlib.sha256(self.http.receipt_secret.encode()).digest()
        return await nodes.receipt_key(self.client)

    # --- in

    async def publish(self, topic: str, messages: Sequence[Message]) -> list[Sent | PostroadError]:
        """Where each is, durably, or why it could not be. Concurrent calls share batches.

        A topic that does not exist is made if the node makes topics on first use.
        """
        deliveries: list[Delivery | PostroadError] = []
        for value, key, headers, timestamp, partition in messages:
            delivery = None
            try:
                if timestamp is None and partition is None:
                    delivery = self.producer.send_now(topic, value, key=key, headers=headers)
                if delivery is None:
                    delivery = await self.producer.send(
                        topic, value, key=key, headers=headers, timestamp=timestamp, partition=partition
                    )
            except PostroadError as error:  # there is no such partition: no reason to stop with the others
                deliveries.append(error)
            else:
                deliveries.append(delivery)
        return await self._delivered(deliveries)

    def publish_now(self, topic: str, message: Message, done: Callable[[Delivery], None]) -> bool:
        """`publish` of one message, if there is nothing to wait for before it is on its way; else False.

        `done` is called when its delivery has a result.
        """
        value, key, headers, _, _ = message
        delivery = self.producer.send_now(topic, value, key=key, headers=headers)
        if delivery is None:
            return False
        self.metrics.published.note(1)
        delivery.then(partial(done, delivery))
        return True

    async def _delivered(self, deliveries: Sequence[Delivery | PostroadError]) -> list[Sent | PostroadError]:
        outcomes: list[Sent | PostroadError] = []
        sent = 0
        for delivery in deliveries:
            try:
                outcomes.append(delivery if isinstance(delivery, PostroadError) else await delivery)
                sent += isinstance(delivery, Delivery)
            except PostroadError as error:
                outcomes.append(error)
        self.metrics.published.note(len(outcomes))
        self.metrics.messages_in.add(sent)
        return outcomes

    async def topic_to_write(self, access: Access, name: str) -> Topic:
        """Made if it is not there and the gateway makes topics on first use.

        Raises TopicAuthorizationFailed."""
        access.check_topic(name, rights.WRITE)
        try:
            return await self.client.topic(name)
        except UnknownTopicOrPartition:
            if not self.http.auto_create:
                raise
        access.check_create_topic(name)
        with contextlib.suppress(TopicAlreadyExists):  # another publisher was faster
            await topics.create(self.client, name)
        return await self.client.retry(lambda: self.client.topic(name))

    # --- out

    async def receive(
        self,
        subscription: str,
        max_messages: int,
        wait_ms: int,
        lock_ms: int | None = None,
        is_gone: IsGone | None = None,
        run_max: int = 1,
        max_bytes: int = RECEIVE_BYTES_MAX,
        access: Access = OPEN,
    ) -> list[Received]:
        """Up to so many, locked for `lock_ms` or as the subscription says. Raises GroupIdNotFound.

        `access`: the caller's, whose rights may end while it waits. Raises TopicAuthorizationFailed,
        GroupAuthorizationFailed.

        They have `max_bytes` at most, or it is a single message.

        Where the subscription keeps the order of keys, up to `run_max` of one key are among them.

        `is_gone`: the caller has hung up; it gets nothing, and what had come for it was not delivered.
        """
        if access.is_guarded:
            receive = partial(self.receive, subscription, max_messages, wait_ms, lock_ms)
            return await self._receive_as(access, subscription, receive, is_gone, run_max, max_bytes)
        info = await self.directory.subscription(subscription)
        if self.closing.is_set():
            return []
        receiver = self._receivers.get(subscription)
        if receiver is None:
            receiver = Receiver(
                self.client,
                subscription,
                lambda: self._topics(subscription),
                self.settler.settle,
                self.memory,
            )
            self._receivers[subscription] = receiver
        lock_ms = info.lock_ms if lock_ms is None else lock_ms
        received = await receiver.receive(max_messages, wait_ms, lock_ms, is_gone, run_max, max_bytes)
        if received and is_gone is not None and is_gone():
            await self.settle([each.receipt for each in received], AckType.RETURN)
            return []
        self.metrics.messages_out.add(len(received))
        return received

    async def _receive_as(
        self,
        access: Access,
        subscription: str,
        receive: Callable[[IsGone, int, int], Awaitable[list[Received]]],
        is_gone: IsGone | None,
        run_max: int,
        max_bytes: int,
    ) -> list[Received]:
        """What comes for somebody who may not have it any more was not delivered, and goes to others."""
        await rights.check_receive(access, self.directory, subscription)
        topics = (await self.directory.subscription(subscription)).topics

        def is_lost() -> bool:
            has_hung_up = is_gone is not None and is_gone()
            return has_hung_up or not rights.may_receive(access, subscription, topics)

        received = await receive(is_lost, run_max, max_bytes)
        try:
            await rights.check_receive(access, self.directory, subscription)
            for topic in {each.message.topic for each in received}:
                access.check_topic(topic, rights.READ)
        except PostroadError:
            if received:
                await self.settle([each.receipt for each in received], AckType.RETURN)
            raise
        return received

    async def settle(
        self,
        receipts: Sequence[Receipt],
        type_: AckType,
        lock_ms: int | None = None,
        delay_ms: int | None = None,
        reason: str = "",
        late: int = NOT_GIVEN,
    ) -> list[PostroadError | None]:
        """For each: None when it is durable, else why nothing was changed. `reason`: of a rejection; `late`:
        what counts when a lock is over."""
        return await self.settler.settle(receipts, type_, lock_ms, delay_ms, reason, late)

    async def _topics(self, subscription: str) -> list[str]:
        return list((await self.directory.subscription(subscription)).topics)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(RECEIVERS_SWEEP_S)
            for name in [name for name, receiver in self._receivers.items() if receiver.idle]:
                await self._receivers.pop(name).close()

    @staticmethod
    def now_ms() -> int:
        return time.time_ns() // 1_000_000
