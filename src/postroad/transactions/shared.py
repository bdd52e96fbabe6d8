"""Transactions that several producers write in: the tasks of a job, on as many machines, as one.

    state            enter                                   finish
    (none)           Ongoing                                 nothing to end
    Empty, Complete  Ongoing                                 commit: refused, if there is something to keep
    Ongoing          of the same run: one producer more      of the same run: Prepare
                     of another: Prepare abort, then anew    of another: refused
    Prepare          later                                   later

A batch has a number, and each try to write it is a run. Each attempt at a task of a run enters, and gets a
producer of its own. At the end the run says whose messages count: those of all other attempts are aborted,
whether they failed, were overtaken, or still write. All of it is one verdict, as with one producer.

S1 a batch is committed once: nobody enters one that is done, and a run that has written it again learns that.
S2 a run ends with its transaction: what was aborted can't be entered again, however late somebody tries.
S3 who enters with another run takes over, as with InitProducerId: the run before is aborted. It is the
   caller's to start the next run only when the one before has been given up.
S4 the epoch of each producer is raised when the transaction is complete, and its marker has the higher one:
   what comes late is refused by partitions (KIP-890) as by the coordinator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from postroad.errors import (
    ConcurrentTransactions,
    InvalidRequest,
    InvalidTransactionState,
    ProducerFenced,
)
from postroad.now import Now
from postroad.transactions.transaction import (
    NONE,
    PREPARED,
    Decision,
    Producer,
    Transaction,
    TransactionState,
    Writers,
    fence,
    next_epoch,
)

DONE: Final = Producer(NONE, NONE)
"""The answer to who enters a batch that was committed."""

WRITERS_MAX: Final = 4_000  # each is in the record, which is written anew whenever somebody enters
RUN_BYTES_MAX: Final = 64


def enter(
    known: Transaction | None, run: str, batch: int, timeout_ms: int, fresh_ids: tuple[int, int], now: Now
) -> Decision:
    """One more producer writes in the run's transaction, which begins if it has not yet; or DONE (S1).

    `fresh_ids` were never used. Raises ConcurrentTransactions, ProducerFenced (S2), InvalidRequest, and
    InvalidTransactionState if a later batch was committed.
    """
    if not run or len(run.encode()) > RUN_BYTES_MAX or batch < 0:
        raise InvalidRequest("A run has a name, of 64 bytes at most, and a batch that is counted from 0.")
    if known is None:
        known = Transaction(
            state=TransactionState.EMPTY,
            producer_id=fresh_ids[0],
            epoch=0,
            timeout_ms=timeout_ms,
            changed_ms=now.wall_ms,
        )
    if known.state in PREPARED:
        raise ConcurrentTransactions()
    writers = known.writers or Writers()
    if batch == writers.done:
        return Decision(DONE)
    if batch < writers.done:
        raise InvalidTransactionState(
            f"Batch {writers.done} was committed already, and {batch} comes before it."
        )
    if run in writers.aborted:
        raise ProducerFenced("The run's transaction was aborted.")
    if known.state is not TransactionState.ONGOING:
        return _begin(known, run, batch, timeout_ms, fresh_ids, now)
    if not _is_of(writers, run, batch):
        return Decision(None, fence(known, now), again=True)
    return _admit(known, writers, fresh_ids[1], now)


def finish(
    known: Transaction | None, run: str, batch: int, kept: Sequence[Producer] | None, now: Now
) -> Decision:
    """The run's transaction commits, with what `kept` wrote and nothing else; or aborts if that is None.

    Where nothing is open there is nothing to abort, nor to commit if nothing is to be kept. Raises
    ConcurrentTransactions, ProducerFenced if it was aborted before, InvalidTransactionState.
    """
    writers = (known.writers if known is not None else None) or Writers()
    if known is not None and known.state in PREPARED:
        raise ConcurrentTransactions()
    is_mine = (writers.run, writers.batch) == (run, batch)
    if known is None or known.state is not TransactionState.ONGOING or not _is_of(writers, run, batch):
        if not kept or (is_mine and batch == writers.done):
            return Decision(None)
        raise ProducerFenced("The transaction was aborted before its commit.")
    if not set(kept or ()) <= set(writers.open):
        raise InvalidTransactionState("Somebody is to be kept who does not write in the transaction.")
    verdict = TransactionState.PREPARE_ABORT if kept is None else TransactionState.PREPARE_COMMIT
    ending = replace(writers, kept=[producer_id for producer_id, _ in kept or ()])
    return Decision(None, replace(known, state=verdict, changed_ms=now.wall_ms, writers=ending))


def _begin(
    known: Transaction, run: str, batch: int, timeout_ms: int, fresh_ids: tuple[int, int], now: Now
) -> Decision:
    writers = replace(known.writers or Writers(), run=run, batch=batch, count=0)
    begun = replace(
        next_epoch(known, fresh_ids[0], NONE),
        state=TransactionState.ONGOING,
        timeout_ms=timeout_ms,
        started_ms=now.wall_ms,
        version=2,
        partitions={},
        groups=[],
    )
    return _admit(begun, writers, fresh_ids[1], now)


def _admit(known: Transaction, writers: Writers, fresh_id: int, now: Now) -> Decision:
    producers = writers.producers
    if writers.count == len(producers):
        producers = [*producers, (fresh_id, 0)]
    if len(producers) > WRITERS_MAX:
        raise InvalidRequest(f"More than {WRITERS_MAX:,} producers can't write in one transaction.")
    entered = replace(writers, producers=producers, count=writers.count + 1)
    return Decision(
        Producer(*producers[writers.count]), replace(known, changed_ms=now.wall_ms, writers=entered)
    )


def _is_of(writers: Writers, run: str, batch: int) -> bool:
    """Whether the open transaction is this run's."""
    return bool(writers.count) and (writers.run, writers.batch) == (run, batch)
