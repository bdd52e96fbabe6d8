"""`Transactions`: every transactional id of one partition of `__transaction_state`: what the broker calls.

The broker's part of the bargain:
- A `Decision` is not done: its transaction is appended as a record, applied with `apply` when it is
  committed, and then its answer leaves. Decisions of one id are kept apart, first come, first served.
- A transaction that is applied in Prepare is the broker's to complete: markers to all of its partitions and
  groups, and when all of them are committed `completed`. Until then requests of that id wait.
- Recovery: `apply` every record from the start of the log, then `resume`, then complete what is prepared.
- The timer: at `next_deadline` call `due`, and for every id that it names decide `expire`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import Final

from postroad.errors import InvalidTransactionTimeout, ProducerFenced, TransactionalIdNotFound
from postroad.now import Now
from postroad.transactions import records, shared, transaction
from postroad.transactions.records import Record
from postroad.transactions.transaction import (
    PREPARED,
    Decision,
    Partition,
    Producer,
    Transaction,
    TransactionState,
)

SWEEP_MS: Final = 3_600_000  # between two looks for ids that nobody uses any more
EXPIRY_MS: Final = 7 * 24 * SWEEP_MS
TIMEOUT_MAX_MS: Final = 900_000


class Transactions:
    def __init__(self, timeout_max_ms: int = TIMEOUT_MAX_MS, expiry_ms: int = EXPIRY_MS) -> None:
        self.timeout_max_ms = timeout_max_ms
        self.expiry_ms = expiry_ms
        self.known: dict[str, Transaction] = {}
        self._spoke: dict[str, int] = {}  # the newest connection that spoke for an id
        self._deadlines: dict[str, int] = {}  # of open transactions, on the monotonic clock
        self._queue: list[tuple[int, str]] = []  # of deadlines, some of them out of date
        self._sweep_at: int | None = None

    # --- hard state

    def apply(self, record: Record, now: Now) -> None:
        """A committed record, live or while the log is read."""
        decoded = records.decode(record)
        if decoded is None:
            return
        transactional_id, found = decoded
        before = self.known.get(transactional_id)
        if found is None:
            self.known.pop(transactional_id, None)
            self._spoke.pop(transactional_id, None)
        else:
            self.known[transactional_id] = found
        if found is None or found.state is not TransactionState.ONGOING:
            self._deadlines.pop(transactional_id, None)
        elif before is None or before.state is not TransactionState.ONGOING:
            self._arm(transactional_id, found, now)

    def resume(self, now: Now) -> list[str]:
        """All records were applied: open transactions have their full time again. Names those to complete."""
        self._sweep_at = now.ms + SWEEP_MS
        for transactional_id, found in self.known.items():
            if found.state is TransactionState.ONGOING:
                self._arm(transactional_id, found, now)
        return [name for name, found in self.known.items() if found.state in PREPARED]

    # --- requests

    def begin(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, fresh_id: int, now: Now
    ) -> Decision:
        """InitProducerId. Raises InvalidTransactionTimeout, and what `transaction.begin` does."""
        self._check_timeout(timeout_ms)
        known = self.known.get(transactional_id)
        return transaction.begin(known, timeout_ms, expected, fresh_id, now)

    def enter(
        self,
        transactional_id: str,
        run: str,
        batch: int,
        timeout_ms: int,
        fresh_ids: tuple[int, int],
        now: Now,
    ) -> Decision:
        """One of several producers is to write in the run's transaction: see `shared.enter`."""
        self._check_timeout(timeout_ms)
        return shared.enter(self.known.get(transactional_id), run, batch, timeout_ms, fresh_ids, now)

    def finish(
        self, transactional_id: str, run: str, batch: int, kept: Sequence[Producer] | None, now: Now
    ) -> Decision:
        """The run's transaction ends: see `shared.finish`."""
        return shared.finish(self.known.get(transactional_id), run, batch, kept, now)

    def add(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Iterable[Partition],
        groups: Iterable[str],
        version: int,
        now: Now,
    ) -> Decision:
        """AddPartitionsToTxn, AddOffsetsToTxn."""
        return transaction.add(self.known.get(transactional_id), who, partitions, groups, version, now)

    def join(
        self,
        transactional_id: str,
        who: Producer,
        partitions: Iterable[Partition],
        groups: Iterable[str],
        now: Now,
    ) -> Decision:
        """Version 2: the first Produce or TxnOffsetCommit to each of them."""
        return transaction.join(self.known.get(transactional_id), who, partitions, groups, now)

    def end(
        self, transactional_id: str, who: Producer, commit: bool, version: int, fresh_id: int, now: Now
    ) -> Decision:
        """EndTxn."""
        return transaction.end(self.known.get(transactional_id), who, commit, version, fresh_id, now)

    def verify(self, transactional_id: str, who: Producer, partitions: Iterable[Partition]) -> set[Partition]:
        """Those of the partitions that are not part of the producer's open transaction."""
        return transaction.verify(self.known.get(transactional_id), who, partitions)

    def completed(self, transactional_id: str, now: Now) -> Decision:
        """All markers are committed; nothing is to be done if that was known."""
        known = self.known.get(transactional_id)
        if known is None or known.state not in PREPARED:
            return Decision(None)
        return Decision(None, transaction.complete(known, now))

    def abort(self, transactional_id: str, now: Now) -> Decision:
        """An operator gives up the open transaction: its producer is fenced.

        Raises TransactionalIdNotFound.
        """
        known = self.known.get(transactional_id)
        if known is None:
            raise TransactionalIdNotFound()
        return Decision(
            None, transaction.fence(known, now) if known.state is TransactionState.ONGOING else None
        )

    def admit_connection(self, transactional_id: str, serial: int) -> None:
        """Note which connection speaks for the id. Raises ProducerFenced if a newer one has spoken.

        A producer gives up its connection before it opens the next, so whatever comes by an older one is
        late: an EndTxn that would end the next transaction (KAFKA-17754). Version 2 has epochs for that.
        Nothing is noted of an id that is not known: anybody may name as many as they like.
        """
        if serial < self._spoke.get(transactional_id, serial):
            raise ProducerFenced("A newer connection speaks for this transactional id.")
        if transactional_id in self.known:
            self._spoke[transactional_id] = serial

    def has_spoken(self, transactional_id: str) -> bool:
        """Whether it is known which connection is the newest that speaks for the id."""
        return transactional_id in self._spoke

    # --- time

    def next_deadline(self) -> int | None:
        """On the monotonic clock, or None."""
        queue = self._queue
        while queue and self._deadlines.get(queue[0][1]) != queue[0][0]:
            heappop(queue)
        found = [at for at in (queue[0][0] if queue else None, self._sweep_at) if at is not None]
        return min(found, default=None)

    def due(self, now: Now) -> list[str]:
        """Transactional ids whose time is over; `expire` must be decided for each."""
        names: list[str] = []
        queue = self._queue
        while queue and queue[0][0] <= now.ms:
            at, transactional_id = heappop(queue)
            if self._deadlines.get(transactional_id) == at:
                del self._deadlines[transactional_id]
                names.append(transactional_id)
        if self._sweep_at is not None and self._sweep_at <= now.ms:
            self._sweep_at = now.ms + SWEEP_MS
            names += [name for name, found in self.known.items() if self._is_unused(found, now)]
        return names

    def expire(self, transactional_id: str, now: Now) -> tuple[Decision, bool]:
        """An open transaction is aborted and its producer fenced; (…, True): the id is to be forgotten."""
        known = self.known.get(transactional_id)
        if known is None:
            return Decision(None), False
        if self._is_unused(known, now):
            return Decision(None), True
        if known.state is not TransactionState.ONGOING or transactional_id in self._deadlines:
            return Decision(None), False
        return Decision(None, transaction.fence(known, now)), False

    def postpone(self, transactional_id: str, now: Now, delay_ms: int) -> None:
        """What was due could not be written: it is due again after the delay."""
        if transactional_id in self.known and self.known[transactional_id].state is TransactionState.ONGOING:
            self._deadlines[transactional_id] = now.ms + delay_ms
            heappush(self._queue, (now.ms + delay_ms, transactional_id))

    def _check_timeout(self, timeout_ms: int) -> None:
        if not 0 < timeout_ms <= self.timeout_max_ms:
            raise InvalidTransactionTimeout(
                f"transaction.timeout.ms is {timeout_ms}; this node allows 1 to {self.timeout_max_ms}."
            )

    def _is_unused(self, found: Transaction, now: Now) -> bool:
        idle = found.state is not TransactionState.ONGOING and found.state not in PREPARED
        return idle and found.changed_ms + self.expiry_ms < now.wall_ms

    def _arm(self, transactional_id: str, found: Transaction, now: Now) -> None:
        at = now.ms + found.timeout_ms
        self._deadlines[transactional_id] = at
        heappush(self._queue, (at, transactional_id))
