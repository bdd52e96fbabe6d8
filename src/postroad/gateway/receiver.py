"""Receives for one subscription: any number of callers wait, few requests are under way.

A pump asks the nodes that lead the subscription's partitions while anybody waits, for as many messages as are
wanted in all, and deals out what comes, first come, first served. Callers may want different locks: it asks
for the longest that is wanted, and shortens those of the others before they get theirs.

R1 a caller gets no more than it asked for; what nobody takes any more is released at once.
R2 each fetch locks in the name of an owner of its own, which the receipts carry.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType, ShareMessage, read_delivery
from postroad.client.share_session import Place, ShareSession
from postroad.errors import PostroadError, TryAgain, by_code
from postroad.gateway.receipts import OWNER_BYTES, Receipt

SLICE_S: Final = 1.0  # one request waits so long; a longer wait is several
MESSAGES_MAX: Final = 1000  # asked for at once
PATIENCE_S: Final = 10.0  # a node that does not answer is waited for so long
GLANCE_S: Final = 0.02  # while a request waits at the node there is nothing: no need to ask again
RETRY_S: Final = 0.1
IDLE_S: Final = 30.0  # a pump that nobody needed for so long lets its connections go

log = logging.getLogger(__name__)


class Received(NamedTuple):
    message: ShareMessage
    receipt: Receipt


class Wish(NamedTuple):
    max_messages: int
    lock_ms: int
    deadline: float  # on the loop's clock
    future: asyncio.Future[list[Received]]


Settle = Callable[[list[Receipt], AckType, int | None], Awaitable[list[PostroadError | None]]]
Topics = Callable[[], Awaitable[list[str]]]


class Receiver:
    """The pump of one subscription. `topics` tells the names of its topics, as they are now."""

    def __init__(self, client: Client, subscription: str, topics: Topics, settle: Settle) -> None:
        self._client = client
        self._subscription = subscription
        self._topics = topics
        self._settle = settle
        self._member = os.urandom(12).hex()
        self._wishes: deque[Wish] = deque()
        self._wished = asyncio.Event()
        self._sessions: dict[int, ShareSession] = {}
        self._under_way: dict[int, asyncio.Task[list[Received]]] = {}
        self._handing: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None

    async def receive(self, max_messages: int, wait_ms: int, lock_ms: int) -> list[Received]:
        """Up to so many, as soon as there are any; none if none came in time. Raises PostroadError."""
        loop = asyncio.get_running_loop()
        wait_s = wait_ms / 1000
        before_us = list(self._under_way.values())
        patience_s = max(wait_s, GLANCE_S) if before_us else wait_s + PATIENCE_S
        wish = Wish(max_messages, lock_ms, loop.time() + wait_s, loop.create_future())
        self._wishes.append(wish)
        self._wished.set()
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._run(), name=f"receive {self._subscription}")
        timer = loop.call_later(patience_s, _lose_patience, wish, before_us)
        try:
            return await wish.future
        except asyncio.CancelledError:
            if not wish.future.cancelled() and wish.future.exception() is None:
                self._later(self._release(wish.future.result()))  # R1: they came at the same moment
            raise
        finally:
            timer.cancel()

    @property
    def idle(self) -> bool:
        """Nobody waits, and its connections are closed."""
        return self._pump is None or self._pump.done()

    async def close(self) -> None:
        """Whoever waits gets nothing; what is under way is released when it comes."""
        for wish in self._wishes:
            if not wish.future.done():
                wish.future.set_result([])
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        await asyncio.gather(*self._handing, return_exceptions=True)

    # --- the pump

    async def _run(self) -> None:
        try:
            while await self._wanted():
                try:
                    await self._round()
                except TryAgain as error:
                    log.info("receiving for %s: %s", self._subscription, error)
                    self._client.forget()
                    self._answer_late(list(self._wishes))
                    await asyncio.sleep(RETRY_S)
                except PostroadError as error:
                    self._fail(error)
        finally:
            await self._let_go()

    async def _wanted(self) -> bool:
        """Wait until somebody wants something; False if nobody did for a while."""
        while not any(not wish.future.done() for wish in self._wishes):
            self._wishes.clear()
            self._wished.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._wished.wait()
            except TimeoutError:
                return False
        return True

    async def _round(self) -> None:
        """Ask the nodes that are not being asked, and deal out what comes first."""
        loop = asyncio.get_running_loop()
        wishes = [wish for wish in self._wishes if not wish.future.done()]
        lock_ms = max(wish.lock_ms for wish in wishes)
        wanted = min(sum(wish.max_messages for wish in wishes), MESSAGES_MAX)
        wait_s = min(max(wish.deadline for wish in wishes) - loop.time(), SLICE_S)
        for node, places in (await self._places()).items():
            if node not in self._under_way:
                fetching = self._fetch(node, places, wanted, max(int(wait_s * 1000), 0), lock_ms)
                self._under_way[node] = asyncio.create_task(fetching)
        if not self._under_way:
            await asyncio.sleep(RETRY_S)
        else:
            await asyncio.wait(self._under_way.values(), return_when=asyncio.FIRST_COMPLETED)
        for node in [node for node, task in self._under_way.items() if task.done()]:
            self._deal(deque(self._under_way.pop(node).result()), lock_ms)
        self._answer_late(wishes)

    async def _places(self) -> dict[int, dict[Place, str]]:
        """By the node that leads them: the partitions of all topics, and their topics' names."""
        found: dict[int, dict[Place, str]] = {}
        for name in await self._topics():
            topic = await self._client.topic(name)
            for index in range(len(topic.partitions)):
                found.setdefault(topic.leader(index), {})[topic.id, index] = name
        return found

    async def _fetch(
        self, node: int, places: dict[Place, str], wanted: int, wait_ms: int, lock_ms: int
    ) -> list[Received]:
        session = self._sessions.get(node)
        if session is None:
            session = ShareSession(self._client, node, self._subscription, self._member)
            self._sessions[node] = session
        owner = os.urandom(OWNER_BYTES)
        answers = await session.fetch(
            places, max_records=wanted, max_wait_ms=wait_ms, lock_ms=lock_ms, owner=owner.hex()
        )
        received: list[Received] = []
        for (topic_id, index), answer in answers:
            if answer.error_code and not received:
                raise by_code(answer.error_code, answer.error_message)
            delivery = read_delivery(TopicPartition(places[topic_id, index], index), answer)
            received += [
                Received(m, Receipt(self._subscription, topic_id, index, m.offset, owner, m.delivery_count))
                for m in delivery.messages
            ]
        return received

    # --- dealing out

    def _deal(self, received: deque[Received], lock_ms: int) -> None:
        while received and self._wishes:
            wish = self._wishes.popleft()
            if wish.future.done():
                continue
            share = [received.popleft() for _ in range(min(wish.max_messages, len(received)))]
            if wish.lock_ms == lock_ms:
                wish.future.set_result(share)
            else:
                self._later(self._shorten(wish, share))
        if received:
            self._later(self._release(list(received)))

    async def _shorten(self, wish: Wish, share: list[Received]) -> None:
        await self._settle([each.receipt for each in share], AckType.RENEW, wish.lock_ms)
        if wish.future.done():
            await self._release(share)
        else:
            wish.future.set_result(share)

    async def _release(self, share: list[Received]) -> None:
        await self._settle([each.receipt for each in share], AckType.RELEASE, None)

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._handing.add(task)
        task.add_done_callback(self._handed)

    def _handed(self, task: asyncio.Task[None]) -> None:
        self._handing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error(
                "messages of %s come again when their locks end",
                self._subscription,
                exc_info=task.exception(),
            )

    def _answer_late(self, asked: Sequence[Wish]) -> None:
        """Those that were asked for, and whose time is over: nothing came. Who came later is not late yet."""
        now = asyncio.get_running_loop().time()
        for wish in asked:
            if not wish.future.done() and wish.deadline <= now:
                wish.future.set_result([])
        self._wishes = deque(wish for wish in self._wishes if not wish.future.done())

    def _fail(self, error: PostroadError) -> None:
        for wish in self._wishes:
            if not wish.future.done():
                wish.future.set_exception(error)
        self._wishes.clear()

    async def _let_go(self) -> None:
        """A fetch that is under way is seen through, or its messages would be locked for nobody."""
        left = await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        self._under_way.clear()
        for received in left:
            if isinstance(received, list) and received:
                await self._release(received)
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


def _lose_patience(wish: Wish, before_us: Sequence[asyncio.Task[list[Received]]] = ()) -> None:
    """Nothing came in time. But if the fetches that were under way are over, we are asked for only now."""
    if wish.future.done():
        return
    if before_us and all(fetch.done() for fetch in before_us):
        asyncio.get_running_loop().call_later(PATIENCE_S, _lose_patience, wish)
    else:
        wish.future.set_result([])
