"""Mutants of transactions that several producers share: what counts too much, comes back, or comes late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from postroad.broker.transactions import participants
from postroad.broker.transactions.markers import Verdict
from postroad.transactions.transaction import Transaction, TransactionState, Writers
from simulator.mutants.mutant import Mutant


def _keep_all(decide: Callable[..., Any]) -> Callable[..., Any]:
    def verdicts(transaction: Transaction, coordinator_epoch: int) -> list[Verdict]:
        commit = transaction.state is TransactionState.PREPARE_COMMIT
        return [verdict._replace(commit=commit) for verdict in decide(transaction, coordinator_epoch)]

    return verdicts


def _forget_batch(end: Callable[..., Any]) -> Callable[..., Any]:
    def ended(self: Writers, committed: bool) -> Writers:
        done: Writers = end(self, committed)
        return msgspec.structs.replace(done, done=self.done)

    return ended


def _keep_epochs(end: Callable[..., Any]) -> Callable[..., Any]:
    def ended(self: Writers, committed: bool) -> Writers:
        done: Writers = end(self, committed)
        return msgspec.structs.replace(done, producers=self.producers)

    return ended


ALL: Final = (
    Mutant(
        "all-attempts-kept",
        "what failed attempts wrote in a shared transaction is committed with the rest",
        participants,
        "verdicts",
        _keep_all,
    ),
    Mutant(
        "batch-forgotten",
        "a shared transaction does not note that its batch was committed",
        Writers,
        "ended",
        _forget_batch,
    ),
    Mutant(
        "writers-keep-epochs",
        "the producers of a shared transaction write in the next one with the same epochs",
        Writers,
        "ended",
        _keep_epochs,
    ),
)
