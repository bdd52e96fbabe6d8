"""The coordinator of some transactional ids: decide, append, apply, and bring every verdict to its end.

The transactions room decides and never touches a file. Here its decisions become durable: the record of a
decision is appended to a partition of `__transaction_state`, and when it is committed it is applied and the
request answered. One decision of an id at a time.

The order that must hold: a verdict is committed before its first marker is staged, and Complete is appended
when all markers are committed. While markers are under way requests of that id wait, instead of being sent
back to sleep: a step takes a millisecond, and clients sleep for 20 to 100 (KIP-890 has them try again).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from postroad.broker.doubts import DamagedRange
from postroad.broker.partition import Partition
from postroad.broker.record_log import RecordLog, Stored
from postroad.broker.transactions.counts import TransactionCounts
from postroad.broker.turn import Turn
from postroad.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    UnknownServerError,
)
from postroad.now import Now
from postroad.system.clock import Clock
from postroad.system.workers import Workers
from postroad.transactions import records
from postroad.transactions.coordinator import Transactions
from postroad.transactions.records import Record
from postroad.transactions.transaction import PREPARED, Decision, Producer, Transaction, TransactionState

WAIT_S: Final = 5.0  # a request waits so long for markers that are under way
RETRY_S: Final = 0.1  # between two tries to write a record that a verdict needs
EXPIRE_RETRY_MS: Final = 1000

log = logging.getLogger(__name__)

Decide = Callable[[Now], Decision]
Reply = Callable[["Producer | ApiError | None"], None]


class Participants(Protocol):
    def end(self, transaction: Transaction, coordinator_epoch: int, done: Callable[[], None]) -> Ending:
        """Write the verdict to all that the transaction has reached; `done` is called once, later."""


class Ending(Protocol):
    def cancel(self) -> None:
        """Another node goes on with it."""


class Waiting:
    """A request that waits for its id."""

    __slots__ = ("decide", "reply", "timer")

    def __init__(self, decide: Decide, reply: Reply | None) -> None:
        self.decide = decide
        self.reply = reply
        self.timer: asyncio.TimerHandle | None = None


class Coordinator:
    def __init__(
        self,
        partition: Partition,
        transactions: Transactions,
        participants: Participants,
        clock: Clock,
        turn: Turn,
        loop: asyncio.AbstractEventLoop,
        has_evidence: Callable[[], bool] = lambda: True,
        counts: TransactionCounts | None = None,
    ) -> None:
        """`has_evidence`: whether this node certainly coordinates the ids (`broker.evidence`)."""
        self._counts = TransactionCounts() if counts is None else counts
        self.partition = partition
        self.transactions = transactions
        self.loaded = False
        self.connections_before = 0  # those that were accepted before it was loaded
        self._participants = participants
        self._has_evidence = has_evidence
        self._clock = clock
        self._loop = loop
        self._log = RecordLog(partition, clock, turn)
        self._resigned = False
        self._busy: dict[str, deque[Waiting]] = {}  # ids with a decision or markers under way
        self._deciding: dict[str, Waiting] = {}  # whose decision is on its way to the log
        self._endings: dict[str, Ending] = {}
        self._verdicts: set[str] = set()  # ids whose verdict is on its way, or being brought to its end
        self._held: dict[str, None] | None = (
            None  # ids whose verdict waits for the end of a hold, if there is one
        )
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None

    # --- decisions

    def check_loaded(self) -> None:
        if self._resigned:
            raise NotCoordinator()
        if not self.loaded:
            raise CoordinatorLoadInProgress()
        if self.partition.log.failed is not None:  # nobody knows what of the last decisions will stand
            raise CoordinatorNotAvailable(str(self.partition.log.failed))
        if not self._has_evidence():
            raise NotCoordinator("This node has lost touch with the cluster.")

    def decide(
        self, transactional_id: str, decide: Decide, reply: Reply | None, wait_s: float | None = None
    ) -> None:
        """Decide when nothing of this id is under way; `reply` hears the answer or an error.

        It waits for that no longer than `wait_s`, and then hears ConcurrentTransactions."""
        self.check_loaded()
        waiting = self._busy.get(transactional_id)
        request = Waiting(decide, reply)
        if waiting is None:
            self._decide(transactional_id, request)
        else:
            wait_s = WAIT_S if wait_s is None else wait_s
            request.timer = self._loop.call_later(wait_s, self._give_up, transactional_id, request)
            waiting.append(request)

    def _give_up(self, transactional_id: str, request: Waiting) -> None:
        waiting = self._busy.get(transactional_id)
        if waiting is not None and request in waiting:
            waiting.remove(request)
            _tell(request.reply, ConcurrentTransactions())

    def _decide(self, transactional_id: str, request: Waiting) -> None:
        if request.timer is not None:
            request.timer.cancel()
        try:
            decision = request.decide(self._clock.now())
        except ApiError as error:
            _tell(request.reply, error)
            return
        except Exception:  # a defect costs this request, not the id's other requests
            log.exception("a decision of transactional id %r failed", transactional_id)
            _tell(request.reply, UnknownServerError())
            return
        if decision.transaction is None:
            _tell(request.reply, decision.answer)
            return
        self._busy.setdefault(transactional_id, deque())
        if decision.transaction.state in PREPARED:
            if self._held is not None:
                self._busy[transactional_id].appendleft(request)
                self._held[transactional_id] = None
                return
            self._verdicts.add(transactional_id)
        self._deciding[transactional_id] = request
        record = records.encode(transactional_id, decision.transaction)
        self._log.append([record], partial(self._written, transactional_id, record, decision, request))

    def _written(
        self,
        transactional_id: str,
        record: Record,
        decision: Decision,
        request: Waiting,
        error: ApiError | None,
    ) -> None:
        """The record is committed, or could not be."""
        self._deciding.pop(transactional_id, None)
        if self._resigned:
            _tell(request.reply, error or NotCoordinator())
            return
        if error is not None:
            _tell(request.reply, error)
            self._release(transactional_id)
            return
        self.transactions.apply(record, self._clock.now())
        if decision.again:
            self._busy[transactional_id].appendleft(request)
            request.timer = self._loop.call_later(WAIT_S, self._give_up, transactional_id, request)
        else:
            _tell(request.reply, decision.answer)
        if self._is_prepared(transactional_id):
            self._count_verdict(transactional_id)
            self._end(transactional_id)
        else:
            self._release(transactional_id)
        self._set_timer()

    def _count_verdict(self, transactional_id: str) -> None:
        if self.transactions.known[transactional_id].state is TransactionState.PREPARE_COMMIT:
            self._counts.committed += 1
        else:
            self._counts.aborted += 1

    def _release(self, transactional_id: str) -> None:
        """Nothing of the id is under way: those that waited follow, as far as they go."""
        self._verdicts.discard(transactional_id)
        waiting = self._busy.pop(transactional_id, None)
        while waiting and transactional_id not in self._busy:
            self._decide(transactional_id, waiting.popleft())
        if waiting:
            self._busy[transactional_id].extend(waiting)

    def _is_prepared(self, transactional_id: str) -> bool:
        known = self.transactions.known.get(transactional_id)
        return known is not None and known.state in PREPARED

    # --- verdicts

    def _end(self, transactional_id: str) -> None:
        """The verdict is committed: markers, then Complete. The id stays busy until then."""
        self._busy.setdefault(transactional_id, deque())
        self._verdicts.add(transactional_id)
        known = self.transactions.known[transactional_id]
        done = partial(self._complete, transactional_id)
        self._endings[transactional_id] = self._participants.end(known, self.partition.leader_epoch, done)

    def _complete(self, transactional_id: str) -> None:
        """All markers are committed."""
        self._endings.pop(transactional_id, None)
        if not self.loaded:  # another node goes on, or the next start
            return
        decision = self.transactions.completed(transactional_id, self._clock.now())
        assert decision.transaction is not None, "a transaction is completed once"
        record = records.encode(transactional_id, decision.transaction)
        self._log.append([record], partial(self._completed, transactional_id, record))

    def _completed(self, transactional_id: str, record: Record, error: ApiError | None) -> None:
        if not self.loaded:
            return
        if error is not None:  # markers are there, and may be there twice: nothing else is lost but time
            self._loop.call_later(RETRY_S, self._complete, transactional_id)
            return
        self.transactions.apply(record, self._clock.now())
        self._release(transactional_id)

    # --- holds (see `hold`)

    def hold(self) -> None:
        """No verdict is given from now on: whoever asks for one waits."""
        self._held = {} if self._held is None else self._held

    def release(self) -> None:
        """Verdicts are given again, those that waited first."""
        held, self._held = self._held or {}, None
        for transactional_id in held:
            if transactional_id in self._busy:
                self._release(transactional_id)

    @property
    def is_held(self) -> bool:
        return self._held is not None and self.loaded

    @property
    def is_ending(self) -> bool:
        """Whether some transaction's verdict is being written, or brought to all that it has reached."""
        return bool(self._verdicts)

    # --- time

    def _set_timer(self) -> None:
        at = self.transactions.next_deadline()
        if at == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at, self._timer = at, None
        if at is not None:
            delay_ms = max(at - self._clock.monotonic_ms(), 0)
            self._timer = self._loop.call_later((delay_ms + 1) / 1000, self._due)

    def _due(self) -> None:
        self._timer = self._timer_at = None
        for transactional_id in self.transactions.due(self._clock.now()):
            reply = partial(self._expired, transactional_id)
            try:
                self.decide(transactional_id, partial(self._expire, transactional_id), reply)
            except ApiError as error:
                reply(error)
        self._set_timer()

    def _expire(self, transactional_id: str, now: Now) -> Decision:
        decision, forget = self.transactions.expire(transactional_id, now)
        if forget:
            record = records.encode(transactional_id, None)
            self._busy.setdefault(transactional_id, deque())
            self._log.append([record], partial(self._forgotten, transactional_id, record))
        return decision

    def _forgotten(self, transactional_id: str, record: Record, error: ApiError | None) -> None:
        if not self._resigned:
            if error is None:
                self.transactions.apply(record, self._clock.now())
            self._release(transactional_id)

    def _expired(self, transactional_id: str, answer: Producer | ApiError | None) -> None:
        """A time-out that could not be written is tried again."""
        if isinstance(answer, ApiError) and not self._resigned:
            self.transactions.postpone(transactional_id, self._clock.now(), EXPIRE_RETRY_MS)
            self._set_timer()

    # --- start and end

    async def load(self, workers: Workers) -> None:
        """Apply all records of the partition, then serve. Raises what reading them raises; call it again."""
        await self._log.load(self._apply_stored, workers, self._damaged)
        prepared = self.transactions.resume(self._clock.now())
        self.loaded = True
        for transactional_id in prepared:
            self._end(transactional_id)
        self._set_timer()

    def _apply_stored(self, stored: Stored) -> None:
        self.transactions.apply(Record(stored.key, stored.value), self._clock.now())

    def _damaged(self, damaged: DamagedRange) -> None:
        """A lost record leaves the one before it: its producer is fenced or goes on, and what is open times
        out. A verdict that was lost with its record is given anew when its transaction times out."""
        log.error("transactions of offsets %d to %d are lost", damaged.first, damaged.end - 1)

    def close(self) -> None:
        self.loaded = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for ending in self._endings.values():
            ending.cancel()
        self._endings.clear()

    def send_away(self) -> None:
        """Another node may coordinate these ids by now: whoever waits looks for it.

        Decisions that are on their way to the log stay there, and their ids stay busy: nobody knows yet what
        the next one would be about.
        """
        for request in list(self._deciding.values()):
            reply, request.reply = request.reply, None
            _tell(reply, NotCoordinator("Another node may coordinate by now; the outcome is unknown."))
        self._refuse_waiting()

    def resign(self) -> None:
        """Another node coordinates these ids: whoever waits is sent there."""
        self.close()
        self._resigned = True
        self._refuse_waiting()
        self._busy.clear()
        self._verdicts.clear()

    def _refuse_waiting(self) -> None:
        for waiting in self._busy.values():
            refused = list(waiting)
            waiting.clear()
            for request in refused:
                if request.timer is not None:
                    request.timer.cancel()
                _tell(request.reply, NotCoordinator())


def _tell(reply: Reply | None, answer: Producer | ApiError | None) -> None:
    if reply is not None:
        reply(answer)
