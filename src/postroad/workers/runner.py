"""`Runner`: takes messages for one worker, runs them, says what becomes of each, and keeps their locks.

    source ─ feed ─▶ buffer ─▶ slots (as many as may run at once) ─▶ settle ─▶ source
                        └───────── held: the locks are renewed ─────────┘

A slot is a task that lives as long as the runner and goes from message to message: a task for each would cost
more than a small job. What is settled goes in as few requests as can be: what comes while one is under
way goes with the next.

Rules that hold:
1. At most `concurrency` messages run. Beyond them some are held in advance, so that quick jobs don't wait for
   the network: as many as are done in PREFETCH_S, none where jobs are slow, so that other processes get them.
2. What is held is renewed each third of its lock's time, running or not.
3. When a connection was lost, the node has released what is held: what has not begun is given up, for it
   comes again.
4. `stop` ends the feed; what runs is finished, what has not begun is returned as not delivered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import InvalidRecordState, PostroadError, TryAgain
from postroad.workers.backend import Source
from postroad.workers.outcomes import ACCEPTED, AcceptedWith, Rejection, Release, Verdict
from postroad.workers.worker import Worker

WAIT_MS: Final = 500
PREFETCH_MAX: Final = 1000
PREFETCH_S: Final = 0.05
TURN_S: Final = 0.005  # jobs that never wait have the loop for so long; then others get theirs
RETRY_S: Final = 0.5  # after a source that fails
COMMITTED_MAX: Final = 500  # messages in one transaction

log = logging.getLogger("postroad.worker")


Handle = Callable[[ShareMessage], Awaitable[Verdict]]
"""What runs a message, and says what becomes of it."""


class Runner:
    def __init__(self, worker: Worker, source: Source, handle: Handle) -> None:
        self.done = 0  # messages that were run and settled, whatever became of them
        self._worker = worker
        self._source = source
        self._handle = handle
        self._buffer: deque[ShareMessage] = deque()
        self._held: dict[int, ShareMessage] = {}  # by identity
        self._losses = source.losses
        self._running = 0
        self._prefetch = 0
        self._paced = (0.0, 0)  # when messages came last, and how many were done by then
        self._idle: deque[asyncio.Future[None]] = deque()
        self._room = asyncio.Event()
        self._verdicts: dict[Verdict, list[ShareMessage]] = {}
        self._committed: list[tuple[ShareMessage, AcceptedWith]] = []
        self._has_verdicts = asyncio.Event()
        self._all_said = False  # nothing will be added to them any more
        self._stopping = asyncio.Event()
        self._slots: list[asyncio.Task[None]] = []
        self._turn_ends = 0.0

    async def run(self) -> None:
        """Until `stop`, or until the source fails for good; then it raises. All is settled afterwards."""
        name = self._worker.subscription
        self._slots = [
            asyncio.create_task(self._slot(), name=f"worker {name} {number}")
            for number in range(self._worker.concurrency)
        ]
        settling = asyncio.create_task(self._settle_all(), name=f"settle {name}")
        renewing = asyncio.create_task(self._renew_all(), name=f"renew {name}")
        feeding = asyncio.create_task(self._feed(), name=f"feed {name}")
        try:
            stopped = asyncio.create_task(self._stopping.wait())
            await asyncio.wait({feeding, stopped, settling}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            self._stopping.set()
            self._return_buffer()
            await asyncio.wait({feeding})  # what a fetch that is under way brings is returned, too
            self._return_buffer()
            for idle in self._idle:
                _wake(idle)
            slots = await asyncio.gather(*self._slots, return_exceptions=True)
            errors = [each for each in slots if isinstance(each, BaseException)]
            self._all_said = True
            self._has_verdicts.set()
            await settling
            feeding.result()
            for error in errors:
                if not isinstance(error, asyncio.CancelledError):
                    raise error
        finally:
            for task in (feeding, settling, renewing, *self._slots):
                task.cancel()
            await asyncio.gather(feeding, settling, renewing, *self._slots, return_exceptions=True)

    def stop(self) -> None:
        """Take nothing more; `run` ends when what runs has ended."""
        self._stopping.set()
        self._room.set()

    def cancel(self) -> None:
        """The same, but what runs is cancelled and released."""
        self.stop()
        for slot in self._slots:
            slot.cancel()

    # --- taking --------------------------------------------------------------------------------

    async def _feed(self) -> None:
        while not self._stopping.is_set():
            room = self._free()
            if room <= 0:
                await self._wait_for_room()
                continue
            try:
                came = await self._source.take(room, WAIT_MS)
            except TryAgain as error:
                log.warning("%s: can't take messages: %s", self._worker.subscription, error)
                await asyncio.sleep(RETRY_S)
                continue
            if self._source.losses != self._losses:
                self._give_up_buffer()
            if came:
                self._note_pace()
                self._take(came)

    async def _wait_for_room(self) -> None:
        self._room.clear()
        if self._free() > 0 or self._stopping.is_set():
            return
        collecting = asyncio.create_task(self._collect(), name=f"collect {self._worker.subscription}")
        try:
            await self._room.wait()
        finally:
            collecting.cancel()
            await asyncio.gather(collecting, return_exceptions=True)

    async def _collect(self) -> None:
        """Several nodes were asked at once, and others may answer after the first: what they hand out is
        held, too. What is too much goes back at once."""
        self._take(await self._source.collect())
        too_many = len(self._buffer) - self._prefetch - self._worker.concurrency + self._running
        if too_many > 0:
            self._return([self._buffer.pop() for _ in range(too_many)])

    def _free(self) -> int:
        """How many more may be held. With many in advance they come in large parts, not one by one."""
        free = self._worker.concurrency - self._running + self._prefetch - len(self._buffer)
        return free if free > self._prefetch // 2 else 0

    def _note_pace(self) -> None:
        """Rule 1: so many were done since messages came last. Where there was nothing to do that says little,
        and does no harm: there is nothing to hold in advance either."""
        now = time.monotonic()
        since, done = self._paced
        self._paced = (now, self.done)
        self._prefetch = min(PREFETCH_MAX, int((self.done - done) / max(now - since, 1e-6) * PREFETCH_S))

    def _take(self, came: Iterable[ShareMessage]) -> None:
        for message in came:
            self._held[id(message)] = message
            self._buffer.append(message)
        for _ in range(min(len(self._idle), len(self._buffer))):
            _wake(self._idle.popleft())

    def _give_up_buffer(self) -> None:
        """Rule 3. The node refuses most of these returns; what it does not refuse comes again at once."""
        self._losses = self._source.losses
        log.warning("%s: the connection to a node was lost", self._worker.subscription)
        self._return_buffer()

    def _return_buffer(self) -> None:
        messages = list(self._buffer)
        self._buffer.clear()
        self._return(messages)

    def _return(self, messages: list[ShareMessage]) -> None:
        """As if they had not been delivered."""
        for message in messages:
            del self._held[id(message)]
        if messages:
            self._verdicts.setdefault(_RETURNED, []).extend(messages)
            self._has_verdicts.set()

    # --- running -------------------------------------------------------------------------------

    async def _slot(self) -> None:
        buffer = self._buffer
        while True:
            while not buffer or self._stopping.is_set():
                if self._stopping.is_set():
                    return  # also with a message that a last fetch has brought: it is returned
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
            message = buffer.popleft()
            self._running += 1
            try:
                verdict = await self._handle(message)
            except BaseException:
                self._settle(message, Release(0, "CancelledError: the worker was stopped"))
                raise
            finally:
                self._running -= 1
            self._settle(message, verdict)
            if not self._room.is_set() and self._free() > 0:
                self._room.set()
            now = time.monotonic()
            if now > self._turn_ends:
                self._turn_ends = now + TURN_S
                await asyncio.sleep(0)
                self._turn_ends = time.monotonic() + TURN_S

    # --- settling ------------------------------------------------------------------------------

    def _settle(self, message: ShareMessage, verdict: Verdict) -> None:
        del self._held[id(message)]
        self.done += 1
        if isinstance(verdict, AcceptedWith):
            self._committed.append((message, verdict))
        else:
            said = self._verdicts.get(verdict)
            if said is None:
                self._verdicts[verdict] = [message]
            else:
                said.append(message)
        self._has_verdicts.set()

    async def _settle_all(self) -> None:
        """Until nothing more is said."""
        while True:
            while self._verdicts or self._committed:
                verdicts, self._verdicts = self._verdicts, {}
                committed, self._committed = self._committed[:COMMITTED_MAX], self._committed[COMMITTED_MAX:]
                await asyncio.gather(
                    *(self._say(verdict, messages) for verdict, messages in verdicts.items()),
                    *([self._commit(committed)] if committed else ()),
                )
            if self._all_said:
                return
            self._has_verdicts.clear()
            await self._has_verdicts.wait()

    async def _say(self, verdict: Verdict, messages: list[ShareMessage]) -> None:
        if verdict is ACCEPTED:
            refused = await self._source.settle(messages, AckType.ACCEPT)
        elif verdict is _RETURNED:
            await self._source.settle(messages, AckType.RETURN)
            return
        elif isinstance(verdict, Rejection):
            refused = await self._source.settle(messages, AckType.REJECT, reason=verdict.reason)
        else:
            assert isinstance(verdict, Release)
            refused = await self._source.settle(
                messages, AckType.RELEASE, delay_ms=verdict.delay_ms, reason=verdict.reason
            )
        for message, error in refused:
            log.warning(
                "%s: %s was done, but its lock had ended: it may come again (%s)",
                self._worker.subscription,
                where(message),
                error,
            )

    async def _commit(self, done: list[tuple[ShareMessage, AcceptedWith]]) -> None:
        try:
            await self._source.commit([(message, verdict.outgoing) for message, verdict in done])
        except PostroadError as error:
            log.error(
                "%s: a transaction of %d messages was aborted, and they come again: %s",
                self._worker.subscription,
                len(done),
                error,
            )
            released = Release(None, f"the transaction was aborted: {error}")
            await self._source.settle(
                [message for message, _ in done], AckType.RELEASE, reason=released.reason
            )

    # --- locks ---------------------------------------------------------------------------------

    async def _renew_all(self) -> None:
        """Rule 2. What came since the last time is young: it is renewed the next time."""
        before: dict[int, ShareMessage] = {}
        done = self.done
        while True:
            await asyncio.sleep(self._worker.lock_ms / 3000)
            self._return_surplus(self.done - done)
            done = self.done
            held = self._held
            old = [message for number, message in before.items() if held.get(number) is message]
            if old:
                try:
                    await self._renew(old)
                except PostroadError as error:
                    log.warning("%s: can't renew locks: %s", self._worker.subscription, error)
            before = dict(self._held)

    def _return_surplus(self, done: int) -> None:
        """Jobs have become slow: what is held and won't begin soon is there for other processes."""
        surplus = len(self._buffer) - max(done, self._worker.concurrency)
        if surplus > 0:
            self._return([self._buffer.pop() for _ in range(surplus)])

    async def _renew(self, messages: list[ShareMessage]) -> None:
        for message, error in await self._source.settle(messages, AckType.RENEW):
            if not isinstance(error, InvalidRecordState) or id(message) not in self._held:
                continue
            log.warning(
                "%s: the lock on %s has ended: it may come again", self._worker.subscription, where(message)
            )
            if message in self._buffer:
                self._buffer.remove(message)
                del self._held[id(message)]


_RETURNED: Final = Release(-1)
"""As if it had not been delivered."""


def where(message: ShareMessage) -> str:
    return f"{message.topic}/{message.partition}/{message.offset}"


def _wake(idle: asyncio.Future[None]) -> None:
    if not idle.done():
        idle.set_result(None)
