"""Receives for one subscription: any number of callers wait, few requests are under way.

A pump asks the nodes that lead the subscription's partitions while anybody waits, for as many messages as are
wanted in all. What a node gives is dealt out as it comes, first come, first served. Callers may want
different locks: a fetch asks for the longest that is wanted, and the others get theirs before their messages.

R1 a caller gets no more than it asked for; what nobody takes (any more) is returned at once, not delivered.
R2 each fetch locks in the name of an owner of its own, which the receipts carry.
R3 what is handed out is locked, for as long as the caller asked for.
R4 a caller for whom messages have come is not answered without them because its time is over meanwhile.
R5 a node is asked for no more bytes than the callers take, nor than memory allows; only a batch that is
   larger than that comes all the same, or its messages would never go out.
R6 where several nodes have more than is wanted, they take turns (`turns`).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from postroad.client.client import Client
from postroad.client.metadata import TopicPartition
from postroad.client.share_message import AckType, ShareMessage
from postroad.client.share_session import ShareSession, TopicIdPartition
from postroad.errors import PostroadError, TryAgain, by_code
from postroad.gateway import runs, sizes
from postroad.gateway.leaders import Leaders, Topics
from postroad.gateway.memory import Memory
from postroad.gateway.receipts import OWNER_BYTES, Receipt
from postroad.gateway.turns import Turns
from postroad.gateway.unpacking import unpack
from postroad.wire.share_requests import NOT_GIVEN

SLICE_S: Final = 1.0  # one request waits so long; a longer wait is several
MESSAGES_MAX: Final = 1000  # asked for at once
RECEIVE_BYTES_MAX: Final = 4 << 20  # for one caller, where it does not say less
FETCH_BYTES_MAX: Final = 4 << 20  # asked a node for at once, for all callers
PATIENCE_S: Final = 10.0  # a node that does not answer is waited for so long
GLANCE_S: Final = 0.02  # while a request waits at the node there is nothing: no need to ask again
LOCK_MS_MIN: Final = 1000  # of a fetch: a lock must outlive the way to its caller, and is shortened there
TURN_S: Final = 0.2  # a node whose turn it is answers within that time, or others are asked as well
RETRY_S: Final = 0.1  # a node that fails is left alone for so long
IDLE_S: Final = 30.0  # a pump that nobody needed for so long lets its connections go

log = logging.getLogger(__name__)


IsGone = Callable[[], bool]
"""Whether a caller has hung up: nobody waits for the answer any more."""


class Received(NamedTuple):
    message: ShareMessage
    receipt: Receipt


class ReceiveRequest(NamedTuple):
    max_messages: int
    max_bytes: int
    run_max: int  # messages of one key, where their order counts
    lock_ms: int
    deadline: float  # on the loop's clock
    is_gone: IsGone | None
    future: asyncio.Future[list[Received]]


class Terms(NamedTuple):
    """What a fetch asks for: enough for all callers that wait."""

    messages: int
    max_bytes: int
    wait_ms: int
    lock_ms: int
    run_max: int


class Fetch(NamedTuple):
    task: asyncio.Task[None]
    may_wait: bool  # at the node, until there is something


class Lock(NamedTuple):
    """The lock on all messages of one fetch."""

    ms: int
    ends_at: float  # on the loop's clock; not before that


Settle = Callable[[list[Receipt], AckType, int | None, int | None], Awaitable[list[PostroadError | None]]]


class Receiver:
    """The pump of one subscription. `topics` tells the names of its topics, as they are now."""

    def __init__(
        self, client: Client, subscription: str, topics: Topics, settle: Settle, memory: Memory[Any]
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._leaders = Leaders(client, subscription, topics)
        self._settle = settle
        self._memory = memory
        self._member = os.urandom(12).hex()
        self._requests: deque[ReceiveRequest] = deque()
        self._requested = asyncio.Event()
        self._sessions: dict[int, ShareSession] = {}
        self._under_way: dict[int, Fetch] = {}
        self._turns = Turns()
        self._handing: set[asyncio.Future[object]] = set()
        self._relocking: set[asyncio.Future[list[Received]]] = (
            set()
        )  # of requests whose messages are here (R4)
        self._pump: asyncio.Task[None] | None = None

    async def receive(
        self,
        max_messages: int,
        wait_ms: int,
        lock_ms: int,
        is_gone: IsGone | None = None,
        run_max: int = 1,
        max_bytes: int = RECEIVE_BYTES_MAX,
    ) -> list[Received]:
        """Up to so many, as soon as there are any; none if none came in time. Raises PostroadError.

        They have `max_bytes` at most, or it is a single message.

        Where the subscription keeps the order of keys, up to `run_max` of one key are among them.
        """
        loop = asyncio.get_running_loop()
        wait_s = wait_ms / 1000
        before_us = self._waiting_at_nodes()
        patience_s = max(wait_s, GLANCE_S) if before_us else wait_s + PATIENCE_S
        request = ReceiveRequest(
            max_messages, max_bytes, run_max, lock_ms, loop.time() + wait_s, is_gone, loop.create_future()
        )
        self._requests.append(request)
        self._requested.set()
        if self.idle:
            self._start()
        timer = loop.call_later(patience_s, self._time_out, request, before_us)
        try:
            return await request.future
        except asyncio.CancelledError:
            if not request.future.cancelled() and request.future.exception() is None:
                self._return(request.future.result())  # R1: they came at the same moment
            raise
        finally:
            timer.cancel()

    @property
    def idle(self) -> bool:
        """Nobody waits, and its connections are closed."""
        return self._pump is None or self._pump.done()

    async def close(self) -> None:
        """Whoever waits gets nothing; what is under way is returned when it comes."""
        for request in self._requests:
            if not request.future.done():
                request.future.set_result([])
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        while self._handing:
            await asyncio.gather(*self._handing, return_exceptions=True)

    def _time_out(self, request: ReceiveRequest, waiting: Sequence[asyncio.Task[None]]) -> None:
        """Nothing came in time. But if the fetches that waited at the nodes are over, new ones ask for us."""
        if request.future.done() or request.future in self._relocking:
            return
        if waiting and all(fetch.done() for fetch in waiting):
            waiting = self._waiting_at_nodes()
            patience_s = GLANCE_S if waiting else PATIENCE_S
            asyncio.get_running_loop().call_later(patience_s, self._time_out, request, waiting)
        else:
            request.future.set_result([])

    def _waiting_at_nodes(self) -> list[asyncio.Task[None]]:
        return [fetch.task for fetch in self._under_way.values() if fetch.may_wait]

    # --- the pump

    def _start(self) -> None:
        self._pump = asyncio.create_task(self._run(), name=f"receive {self._subscription}")
        self._pump.add_done_callback(self._ended)

    def _ended(self, pump: asyncio.Task[None]) -> None:
        """Whoever came while it let its connections go is the next one's affair."""
        if pump.cancelled():
            return
        if pump.exception() is not None:
            log.error("receiving for %s failed", self._subscription, exc_info=pump.exception())
        elif any(map(_waits, self._requests)):
            self._start()

    async def _run(self) -> None:
        try:
            while await self._wanted():
                try:
                    await self._round()
                except TryAgain:
                    self._answer_late(list(self._requests))
                    await asyncio.sleep(RETRY_S)
                except PostroadError as error:
                    self._fail(error)
        finally:
            await self._let_go()

    async def _wanted(self) -> bool:
        """Wait until somebody wants something; False if nobody did for a while."""
        while not any(map(_waits, self._requests)):
            self._requests.clear()
            self._requested.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._requested.wait()
            except TimeoutError:
                return False
        return True

    async def _round(self) -> None:
        """Ask the nodes that are not being asked, until one of them has answered."""
        by_node = await self._leaders.by_node()
        requests = [request for request in self._requests if _waits(request)]
        if not requests:
            return
        asking = self._turns.next(by_node, self._under_way, len(requests))
        rivals = [node for node in asking if self._turns.has_rivals(node)]
        for node in asking:
            if node in rivals:  # each is asked for its part of the callers
                asked = _terms(requests[rivals.index(node) :: len(rivals)])._replace(wait_ms=0)
            else:
                asked = _terms(requests)
            fetching = self._fetch(node, by_node[node], asked)
            self._under_way[node] = Fetch(asyncio.create_task(fetching), asked.wait_ms > 0)
        if not self._under_way:
            await asyncio.sleep(RETRY_S)
        else:
            tasks = [fetch.task for fetch in self._under_way.values()]
            done, _ = await asyncio.wait(tasks, timeout=TURN_S, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if not done:
                self._pass_over_slow()
            if not done or self._turns.may_have(by_node, self._under_way):
                return  # nobody is late before those were asked
        self._answer_late(requests)

    def _pass_over_slow(self) -> None:
        """A node whose turn it is and that does not answer has lost it: others are asked."""
        for node in self._under_way:
            self._turns.answered(node, is_full=False)

    async def _fetch(self, node: int, topic_partitions: dict[TopicIdPartition, str], terms: Terms) -> None:
        """Ask a node once, and deal out what comes."""
        reserved = self._memory.reserve_fetch(terms.max_bytes)
        try:
            lock = Lock(terms.lock_ms, asyncio.get_running_loop().time() + terms.lock_ms / 1000)
            asked = terms._replace(max_bytes=reserved)
            received = await self._ask(node, topic_partitions, asked)
            self._turns.answered(node, len(received) >= terms.messages)
            self._deal(received, lock, terms.run_max)
        except TryAgain as error:
            self._turns.answered(node, is_full=False)
            for topic in set(topic_partitions.values()):
                self._leaders.doubt(topic, error)
            await asyncio.sleep(RETRY_S)
        except PostroadError as error:
            self._fail(error)
        finally:
            self._memory.release_fetch(reserved)
            del self._under_way[node]

    async def _ask(
        self, node: int, topic_partitions: dict[TopicIdPartition, str], terms: Terms
    ) -> deque[Received]:
        """What the node has. Raises if it refuses all of the partitions."""
        session = self._sessions.get(node)
        if session is None:
            session = ShareSession(self._client, node, self._subscription, self._member)
            self._sessions[node] = session
        owner = os.urandom(OWNER_BYTES)
        answers = await session.fetch(
            topic_partitions,
            max_records=terms.messages,
            max_wait_ms=terms.wait_ms,
            max_bytes=terms.max_bytes,
            lock_ms=terms.lock_ms,
            owner=owner.hex(),
            run_max=terms.run_max if terms.run_max > 1 else NOT_GIVEN,
        )
        received: deque[Received] = deque()
        refused = 0
        for (topic_id, index), answer in answers:
            if answer.error_code:
                error = by_code(answer.error_code, answer.error_message)
                self._leaders.doubt(topic_partitions[topic_id, index], error)
                refused += 1
                if refused == len(topic_partitions):
                    raise error
                continue
            topic_partition = TopicPartition(topic_partitions[topic_id, index], index)
            messages, left = unpack(topic_partition, answer, terms.max_bytes)
            received += [
                Received(m, Receipt(self._subscription, topic_id, index, m.offset, owner, m.delivery_count))
                for m in messages
            ]
            self._send_back(
                Receipt(self._subscription, topic_id, index, offset, owner, run.delivery_count)
                for run in left
                for offset in range(run.first_offset, run.last_offset + 1)
            )
        return received

    # --- dealing out

    def _deal(self, received: deque[Received], lock: Lock, run_max: int) -> None:
        is_locked = asyncio.get_running_loop().time() < lock.ends_at
        if run_max > 1:
            received = deque(runs.by_key(received))
        while received and self._requests:
            request = self._requests.popleft()
            if not _waits(request):
                continue
            if run_max > 1:
                share, rest, returned = runs.deal(
                    received, request.max_messages, request.run_max, request.max_bytes
                )
                received = deque(rest)
                self._return(returned)
            else:
                share = runs.take(received, request.max_messages, request.max_bytes)
            if request.lock_ms == lock.ms and is_locked:
                request.future.set_result(share)
            else:
                self._relocking.add(request.future)
                self._later(self._hand_relocked(request, share, lock))
        self._return(received)

    async def _hand_relocked(self, request: ReceiveRequest, share: list[Received], lock: Lock) -> None:
        """R3. Where locks can't be renewed one that is longer than asked for has to do."""
        size = sum(sizes.of_message(each.message) for each in share)
        self._memory.hold_fetched(size)
        try:
            errors = await self._relock([each.receipt for each in share], request.lock_ms)
        finally:
            self._memory.release_fetch(size)
            self._relocking.discard(request.future)
        has_to_do = request.lock_ms < lock.ms and asyncio.get_running_loop().time() < lock.ends_at
        held: list[Received] = []
        lost: list[Received] = []
        for each, error in zip(share, errors, strict=True):
            (held if error is None or has_to_do else lost).append(each)
        if not _waits(request):
            lost += held
        elif held:
            request.future.set_result(held)
        else:
            self._requests.appendleft(request)
            self._requested.set()
            asyncio.get_running_loop().call_later(PATIENCE_S, self._time_out, request, ())
        self._return(lost)

    async def _relock(self, receipts: list[Receipt], lock_ms: int) -> list[PostroadError | None]:
        """Without a lock they are released: when that is durable the next receive finds them. A lock that
        ends is noticed only then, and the messages would be missing while it is written down."""
        if lock_ms == 0:
            return await self._settle(receipts, AckType.RELEASE, None, 0)
        return await self._settle(receipts, AckType.RENEW, lock_ms, None)

    def _return(self, share: Iterable[Received]) -> None:
        """Nobody gets them now, and nothing of them is kept: to the node they were not delivered (R1)."""
        self._send_back(each.receipt for each in share)

    def _send_back(self, receipts: Iterable[Receipt]) -> None:
        if those := list(receipts):
            self._later(self._settle(those, AckType.RETURN, None, None))

    def _later(self, work: Awaitable[object]) -> None:
        task = asyncio.ensure_future(work)
        self._handing.add(task)
        task.add_done_callback(self._handed)

    def _handed(self, task: asyncio.Future[object]) -> None:
        self._handing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error(
                "messages of %s come again when their locks end",
                self._subscription,
                exc_info=task.exception(),
            )

    def _answer_late(self, asked: Sequence[ReceiveRequest]) -> None:
        """Those that were asked for, and whose time is over: nothing came. Who came later is not late yet."""
        now = asyncio.get_running_loop().time()
        for request in asked:
            if (
                not request.future.done()
                and request.deadline <= now
                and request.future not in self._relocking
            ):
                request.future.set_result([])
        self._requests = deque(request for request in self._requests if not request.future.done())

    def _fail(self, error: PostroadError) -> None:
        for request in self._requests:
            if not request.future.done():
                request.future.set_exception(error)
        self._requests.clear()

    async def _let_go(self) -> None:
        """A fetch that is under way is seen through, or its messages would be locked for nobody."""
        await self._leaders.close()
        await asyncio.gather(*(fetch.task for fetch in self._under_way.values()), return_exceptions=True)
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()


def _terms(requests: Sequence[ReceiveRequest]) -> Terms:
    wait_s = max(request.deadline for request in requests) - asyncio.get_running_loop().time()
    return Terms(
        messages=min(sum(request.max_messages for request in requests), MESSAGES_MAX),
        max_bytes=min(sum(request.max_bytes for request in requests), FETCH_BYTES_MAX),
        wait_ms=max(int(min(wait_s, SLICE_S) * 1000), 0),
        lock_ms=max(LOCK_MS_MIN, *[request.lock_ms for request in requests]),
        run_max=min(request.run_max for request in requests),
    )


def _waits(request: ReceiveRequest) -> bool:
    """Whether it is to be served. Whoever has hung up waits no longer."""
    if request.future.done():
        return False
    if request.is_gone is None or not request.is_gone():
        return True
    request.future.set_result([])
    return False
