"""Sends one subscription's messages to its endpoint: receive, post, settle.

D1 a message is accepted only after a 2xx; whatever else happens it is released, so that it comes again, is
   counted, and ends among the dead letters as the subscription says. With a `reply_topic` it is accepted in
   the transaction that publishes the endpoint's answer: both, or none.
D2 only what can be sent now is received: a dead endpoint holds at most `concurrency` messages, and while its
   breaker is open none at all.
D3 a lock outlives its request. When the gateway dies, locks end and another gateway goes on.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from postroad.client.share_message import AckType
from postroad.errors import (
    GroupAuthorizationFailed,
    MessageTooLarge,
    PostroadError,
    TopicAuthorizationFailed,
)
from postroad.gateway import message_ids
from postroad.gateway.gateway import Gateway
from postroad.gateway.receiver import Received
from postroad.gateway.security.access import Access
from postroad.gateway.transactions import EntryRefused, OutcomeUnknown, ToPublish
from postroad.gateway.webhooks import backoff, request_headers, signature
from postroad.gateway.webhooks.breaker import Breaker
from postroad.gateway.webhooks.deliveries import Deliveries, Delivery
from postroad.gateway.webhooks.hook import Webhook
from postroad.gateway.webhooks.pace import Pace
from postroad.gateway.webhooks.sender import ANSWER_BYTES_MAX, HookAnswer, Sender
from postroad.wire.header_names import IN_REPLY_TO

WAIT_MS: Final = 5_000
LOCK_MARGIN_MS: Final = 15_000  # beyond the request's time: for what comes before and after it
RETRY_S: Final = 1.0
GRACE_S: Final = 4.0  # what is under way when the gateway stops has so long

GONE: Final = 410
BUSY: Final = (429, 503)  # whose Retry-After is obeyed

Disable = Callable[[str], Awaitable[None]]

log = logging.getLogger(__name__)


class Health(NamedTuple):
    """How an endpoint does, as this gateway sees it."""

    state: str
    in_flight: int
    delivered: int
    failed: int
    last_error: str


class Deliverer:
    """`disable` turns the web hook off, with a note why; `deliveries` remembers the last ones."""

    def __init__(
        self,
        gateway: Gateway,
        subscription: str,
        hook: Webhook,
        sender: Sender,
        disable: Disable,
        deliveries: Deliveries,
    ) -> None:
        self._gateway = gateway
        self._subscription = subscription
        self._sender = sender
        self._disable = disable
        self._deliveries = deliveries
        self._hook = hook
        self._breaker = Breaker()
        self._pace = Pace(hook.rate, time.monotonic())
        self._posting: set[asyncio.Task[None]] = set()
        self._freed = asyncio.Event()
        self._receiving: asyncio.Task[list[Received]] | None = None
        self._gone = False
        self._delivered = self._failed = 0
        self._last_error = ""
        self._task = asyncio.create_task(self._run(), name=f"web hook of {subscription}")

    @property
    def health(self) -> Health:
        state = self._breaker.state(time.monotonic())
        return Health(state, len(self._posting), self._delivered, self._failed, self._last_error)

    def change(self, hook: Webhook) -> None:
        """What is under way goes on as it was."""
        if hook == self._hook:
            return
        if hook.url != self._hook.url:
            self._breaker = Breaker()
            self._gone = False
        if hook.rate != self._hook.rate:
            self._pace = Pace(hook.rate, time.monotonic())
        self._hook = hook
        self._freed.set()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """No new messages; what is under way is waited for, then given up and released."""
        self._task.cancel()
        if self._receiving is not None:
            self._receiving.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._posting:
            await asyncio.wait(self._posting, timeout=grace_s)
        for task in self._posting:
            task.cancel()
        await asyncio.gather(*self._posting, return_exceptions=True)

    # --- receiving

    async def _run(self) -> None:
        while not self._gateway.closing.is_set():
            try:
                await self._round()
            except PostroadError as error:
                self._say(error)
                await asyncio.sleep(RETRY_S)

    def _say(self, error: PostroadError) -> None:
        """A denial lasts: it is told once, and shown as the last error."""
        if isinstance(error, (GroupAuthorizationFailed, TopicAuthorizationFailed)):
            if str(error) != self._last_error:
                log.warning("the web hook of %s sends nothing: %s", self._subscription, error)
            self._last_error = str(error)
        else:
            log.info("web hook of %s: %s", self._subscription, error)

    async def _round(self) -> None:
        free = await self._free()
        lock_ms = self._hook.timeout_ms + LOCK_MARGIN_MS
        receiving = self._gateway.receive(self._subscription, free, WAIT_MS, lock_ms, access=self._access())
        self._receiving = asyncio.create_task(receiving, name=f"receive for {self._subscription}")
        await asyncio.wait([self._receiving])
        if self._receiving.cancelled():
            return
        received = self._receiving.result()
        self._pace.take(len(received))
        for each in received:
            task = asyncio.create_task(self._deliver(each, self._hook))
            self._posting.add(task)
            task.add_done_callback(self._posted)

    def _access(self) -> Access:
        """Messages are sent in the name of who has set the web hook up, as long as that may receive them.
        Raises GroupAuthorizationFailed."""
        access = self._gateway.identities.of_owner(self._hook.by)
        if access is None:
            raise GroupAuthorizationFailed("nobody is known in whose name it sends: set it up again")
        return access

    def _hold_off(self) -> None:
        """What waits for messages now must not bring any, if there is nobody to send them to (D2)."""
        nobody = self._gone or not self._breaker.allowed(time.monotonic(), 1)
        if nobody and self._receiving is not None:
            self._receiving.cancel()

    async def _free(self) -> int:
        """How many messages may be received now, at least one (D2)."""
        while True:
            now = time.monotonic()
            limit = 0 if self._gone else self._breaker.allowed(now, self._hook.concurrency)
            free = min(limit - len(self._posting), self._pace.available(now, self._hook.concurrency))
            if free > 0:
                return free
            self._freed.clear()
            await self._wait_for_change(self._wait_s(now, limit))

    def _wait_s(self, now: float, limit: int) -> float | None:
        """Until it is worth looking again; None: until something happens."""
        if self._gone or len(self._posting) >= limit > 0:
            return None
        return max(self._breaker.wait_s(now), self._pace.wait_s(), 0.001)

    async def _wait_for_change(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._freed.wait()
        except TimeoutError:
            pass

    def _posted(self, task: asyncio.Task[None]) -> None:
        self._posting.discard(task)
        self._freed.set()
        if not task.cancelled() and task.exception() is not None:
            log.error(
                "a message of %s will be delivered again", self._subscription, exc_info=task.exception()
            )

    # --- sending

    async def _deliver(self, received: Received, hook: Webhook) -> None:
        began = time.monotonic()
        try:
            answer = await self._post(received, hook)
        except asyncio.CancelledError:
            await self._gateway.settle([received.receipt], AckType.RELEASE, delay_ms=0)
            raise
        took_ms = (time.monotonic() - began) * 1000
        if answer.is_success:
            self._breaker.succeeded()
            failure = await self._accept(received, hook, answer)
            self._note(received, answer, took_ms, failure)
            return
        self._note(received, answer, took_ms, answer.reason)
        self._failed += 1
        self._last_error = answer.reason
        if answer.status == GONE:
            await self._turn_off(received)
        else:
            await self._release(received, answer)

    async def _post(self, received: Received, hook: Webhook) -> HookAnswer:
        message, receipt = received
        message_id = message_ids.write(receipt.topic_id, receipt.partition, receipt.offset)
        body = message.value or b""
        headers = {
            **hook.headers,
            **request_headers.of_message(message, message_id, self._subscription),
            **signature.sign(hook.secret, message_id, int(time.time()), body),
        }
        keep_bytes = ANSWER_BYTES_MAX if hook.reply_topic else 0
        return await self._sender.post(hook.url, body, headers, hook.timeout_ms / 1000, keep_bytes)

    def _note(self, received: Received, answer: HookAnswer, took_ms: float, failure: str) -> None:
        message, receipt = received
        message_id = message_ids.write(receipt.topic_id, receipt.partition, receipt.offset)
        where = message.topic, message.partition, message.offset, message.delivery_count
        now_ms = self._gateway.now_ms()
        self._deliveries.add(
            Delivery(now_ms, message_id, *where, took_ms, answer.status, not failure, failure)
        )

    async def _accept(self, received: Received, hook: Webhook, answer: HookAnswer) -> str:
        """The endpoint has done its work; an answer without a body is not published. What went wrong then."""
        if not hook.reply_topic or (answer.is_whole and not answer.body):
            self._delivered += 1
            await self._settle(received, AckType.ACCEPT)
            return ""
        try:
            if not answer.is_whole:
                raise MessageTooLarge(f"The endpoint's answer has more than {ANSWER_BYTES_MAX:,} bytes.")
            await self._publish_reply(received, hook.reply_topic, answer)
        except OutcomeUnknown as error:  # it comes again if it was not committed, and must not be released
            log.info("the answer to a message of %s may not be published: %s", self._subscription, error)
            return f"the answer may not be published: {error}"
        except (EntryRefused, PostroadError) as error:
            self._failed += 1
            self._last_error = f"the answer could not be published: {error}"
            log.info("a message of %s will be delivered again: %s", self._subscription, self._last_error)
            await self._settle(received, AckType.RELEASE, await self._backoff_ms(received))
            return self._last_error
        self._delivered += 1
        return ""

    async def _publish_reply(self, received: Received, topic: str, answer: HookAnswer) -> None:
        message, receipt = received
        message_id = message_ids.write(receipt.topic_id, receipt.partition, receipt.offset)
        given = [("content-type", answer.content_type), ("content-encoding", answer.content_encoding)]
        told = [(name, value.encode("utf-8", "surrogateescape")) for name, value in given if value]
        headers = [(IN_REPLY_TO, message_id.encode()), *told]
        found = await self._gateway.topic_to_write(self._access(), topic)
        reply = ToPublish(found, answer.body, message.key, headers, None, None)
        await self._gateway.transactions.run([receipt], [reply])

    async def _backoff_ms(self, received: Received, asked_ms: int = 0) -> int | None:
        config = (await self._gateway.directory.subscription(self._subscription)).config
        return backoff.delay_ms(config, received.message.delivery_count, asked_ms, random.random())

    async def _release(self, received: Received, answer: HookAnswer) -> None:
        """It has failed, whatever else the endpoint says; one that is busy may ask for time."""
        asked_s = (answer.retry_after_s or 0.0) if answer.status in BUSY else 0.0
        now = time.monotonic()
        self._breaker.failed(now)
        self._breaker.pause(now, asked_s)
        self._hold_off()
        delay_ms = await self._backoff_ms(received, int(asked_s * 1000))
        await self._settle(received, AckType.RELEASE, delay_ms)

    async def _turn_off(self, received: Received) -> None:
        """The endpoint is gone. If that can't be written down, it is to say so again."""
        self._gone = True
        self._hold_off()
        await self._settle(received, AckType.RELEASE, 0)
        try:
            await self._disable("The endpoint answered 410: it is gone.")
        except BaseException:
            self._gone = False
            raise

    async def _settle(self, received: Received, type_: AckType, delay_ms: int | None = None) -> None:
        (error,) = await self._gateway.settle([received.receipt], type_, delay_ms=delay_ms)
        if error is not None:
            log.info("a message of %s will be delivered again: %s", self._subscription, error)
