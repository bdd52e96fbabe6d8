"""Mutants of acknowledgements inside of transactions: what is forgotten, not ended, or ended too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from postroad.broker.replies import Reply
from postroad.broker.subscriptions import pledges as broker_pledges
from postroad.broker.subscriptions.queue import Queue
from postroad.broker.subscriptions.replay import Replay
from postroad.queues.pledges import PRODUCER, Pledges
from postroad.queues.table import Row
from postroad.queues.update import Key, Update
from simulator.mutants.mutant import Mutant


def _forget_pledges(tell: Callable[..., None]) -> Callable[..., None]:
    def told(self: Replay, key: Key, offset: int, update: Update) -> None:
        tell(self, key, offset, msgspec.structs.replace(update, pledged=[]))

    return told


def _end_nothing(_: Callable[..., None]) -> Callable[..., None]:
    def end_transactions(self: Queue, who: object, commit: bool, reply: Reply) -> None:
        reply(None)

    return end_transactions


def _end_any_epoch(_: Callable[..., Any]) -> Callable[..., Any]:
    def of(self: Pledges, producer_id: int, below: int) -> list[Row]:
        return [(*row[:3], below - 1) for row in self.each() if row[PRODUCER] == producer_id]

    return of


def _join_nothing(_: Callable[..., Any]) -> Callable[..., Any]:
    async def join(self: broker_pledges.Pledges, asked: object) -> None:
        """No coordinator hears of it."""

    return join


def _commit_all(end: Callable[..., None]) -> Callable[..., None]:
    def end_transactions(self: Queue, who: object, commit: bool, reply: Reply) -> None:
        end(self, who, True, reply)

    return end_transactions


ALL: Final = (
    Mutant(
        "pledges-forgotten",
        "a node that starts reads its ledgers without the pledges in them",
        Replay,
        "_tell",
        _forget_pledges,
    ),
    Mutant(
        "pledges-not-ended",
        "the end of a transaction leaves what was pledged in it as it is",
        Queue,
        "end_transactions",
        _end_nothing,
    ),
    Mutant(
        "pledges-committed",
        "the end of a transaction makes what was pledged in it done, also if it was aborted",
        Queue,
        "end_transactions",
        _commit_all,
    ),
    Mutant(
        "pledges-of-any-epoch",
        "the end of a transaction ends the producer's pledges, whichever transaction's they are",
        Pledges,
        "of",
        _end_any_epoch,
    ),
    Mutant(
        "pledges-not-joined",
        "messages are pledged in transactions whose coordinators don't know of it",
        broker_pledges.Pledges,
        "_join",
        _join_nothing,
    ),
)
