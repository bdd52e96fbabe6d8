"""Mutants of transactions: of their coordinator, of what partitions let in, and of what readers see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from postroad.broker.api import list_offsets
from postroad.broker.partition import Partition
from postroad.broker.subscriptions import queue, scanner
from postroad.broker.transactions.coordination import TransactionCoordination
from postroad.broker.transactions.coordinator import Coordinator
from postroad.broker.transactions.hanging import HangingTransactions
from postroad.errors import InvalidProducerIdMapping, OffsetNotAvailable
from postroad.log.producers import NONE, Producers
from postroad.transactions import transaction
from postroad.transactions.coordinator import Transactions
from postroad.transactions.transaction import Producer, Transaction
from simulator.mutants.mutant import Mutant


def _ignore(*_: object) -> None:
    """Nobody waits for it any more."""


class _HastyLog:
    """A log that calls a verdict committed when it is handed over."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.load = log.load

    def append(self, records: list[Any], done: Callable[[Any], None]) -> None:
        if any(b'"Prepare' in (record.value or b"") for record in records):
            self._log.append(records, _ignore)
            done(None)
        else:
            self._log.append(records, done)


def _mark_first(make: Callable[..., Any]) -> Callable[..., Any]:
    def hasty(self: Coordinator, *arguments: Any) -> None:
        make(self, *arguments)
        self._log = _HastyLog(self._log)  # type: ignore[assignment]

    return hasty


def _forget_ended(_: Callable[..., Any]) -> Callable[..., Any]:
    def stable_offset(self: Producers, watermark: int) -> int:
        return min(watermark, self.first_open_transaction(watermark))

    return stable_offset


def _admit_all(_: Callable[..., Any]) -> Callable[..., Any]:
    return _ignore


def _heal_nothing(_: Callable[..., Any]) -> Callable[..., Any]:
    async def look(_: HangingTransactions) -> None:
        """Leave open what is open."""

    return look


def _take_any_marker(_: Callable[..., Any]) -> Callable[..., Any]:
    def needs_marker(self: Producers, producer_id: int, *_: object) -> bool:
        state = self._states.get(producer_id)
        return state is None or state[4] != NONE

    return needs_marker


def _tell_any_end(_: Callable[..., Any]) -> Callable[..., Any]:
    def check_end(_: object, partition: Partition) -> None:
        if partition.leadership is not None and not partition.leadership.reached_start():
            raise OffsetNotAvailable

    return check_end


def _pass_over_nothing(_: Callable[..., Any]) -> Callable[..., Any]:
    return _ignore


def _end_at_watermark(_: Callable[..., Any]) -> Callable[..., Any]:
    def readable_end(partition: Partition, committed_only: bool) -> int:
        return partition.high_watermark

    return readable_end


def _read_what_is_open(_: Callable[..., Any]) -> Callable[..., Any]:
    return Partition.read


def _know_no_retry(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: False


def _hear_any_epoch(_: Callable[..., Any]) -> Callable[..., Any]:
    def check(known: Transaction | None, who: Producer) -> Transaction:
        if known is None or who.producer_id != known.producer_id:
            raise InvalidProducerIdMapping
        return known

    return check


ALL: Final = (
    Mutant(
        "marker-before-prepare",
        "markers are written, and a commit is answered, before the verdict is durable",
        Coordinator,
        "__init__",
        _mark_first,
    ),
    Mutant(
        "stable-past-marker",
        "a transaction whose marker is not committed counts as ended",
        Producers,
        "stable_offset",
        _forget_ended,
    ),
    Mutant(
        "no-verification",
        "a batch opens a transaction whether its coordinator knows of it or not",
        TransactionCoordination,
        "verify_here",
        _admit_all,
        also=(Mutant("no-healing", "and it stays open", HangingTransactions, "_look", _heal_nothing),),
    ),
    Mutant(
        "no-connection-fence",
        "what comes late by an older connection of a producer is taken",
        Transactions,
        "admit_connection",
        _admit_all,
    ),
    Mutant(
        "end-of-any-epoch",
        "an EndTxn ends what is open, whichever transaction's epoch it has",
        transaction,
        "check",
        _hear_any_epoch,
        also=(Mutant("no-retry", "and is never a repetition", transaction, "_is_retry", _know_no_retry),),
    ),
    Mutant(
        "marker-without-epoch",
        "a marker ends what is open, whatever epochs it has",
        Producers,
        "needs_marker",
        _take_any_marker,
    ),
    Mutant(
        "deliver-aborted",
        "a subscription that waits for transactions delivers what was aborted",
        scanner,
        "aborted_between",
        _pass_over_nothing,
    ),
    Mutant(
        "deliver-open",
        "a subscription that waits for transactions delivers what is open",
        queue,
        "readable_end",
        _end_at_watermark,
        also=(Mutant("read-open", "and reads it", Partition, "read_stable", _read_what_is_open),),
    ),
)

OF_CLUSTERS: Final = (
    Mutant(
        "end-without-lease",
        "a leader that was replaced and has not heard of it says where its log ends",
        list_offsets,
        "_check_end",
        _tell_any_end,
    ),
)
