"""Mutants of subscriptions and of what they keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from postroad.broker.replies import Reply
from postroad.broker.subscriptions.queue import Queue
from postroad.broker.subscriptions.states import Kept, QueueStates
from postroad.broker.subscriptions.subscriptions import Subscriptions
from postroad.errors import ApiError
from postroad.queues.settlement import Settlement
from postroad.queues.update import Key
from simulator.mutants.mutant import Mutant


def _ignore(error: ApiError | None) -> None:
    """Nobody waits for it any more."""


def _answer_first(commit: Callable[..., Any]) -> Callable[..., Any]:
    def answer_first(self: Queue, settlement: Settlement, reply: Reply) -> None:
        reply(None)
        commit(self, settlement, _ignore)

    return answer_first


def _forget_tail(_: Callable[..., Any]) -> Callable[..., Any]:
    def snapshot(self: QueueStates, kept: Kept) -> None:
        if not kept.snapshotting:
            kept.snapshotting = True
            kept.bytes = kept.snapshot_bytes = 0
            self._write_part(kept, self._partition.log.end_offset, kept.ledger.snapshots())

    return snapshot


def _answer_at_once(remove: Callable[..., Any]) -> Callable[..., Any]:
    def answer_at_once(self: QueueStates, key: Key, committed: Reply) -> None:
        remove(self, key, _ignore)
        committed(None)

    return answer_at_once


def _all_is_done(_: Callable[..., Any]) -> Callable[..., Any]:
    def done_below(self: Subscriptions, topic_id: bytes, index: int) -> int | None:
        partition = self._node.partitions.find(topic_id, index)
        return None if partition is None else partition.high_watermark

    return done_below


ALL: Final = (
    Mutant(
        "accept-before-commit",
        "an acknowledgement is answered before it is committed",
        Queue,
        "commit",
        _answer_first,
    ),
    Mutant(
        "snapshot-without-tail",
        "a snapshot stands in for updates that it does not know of",
        QueueStates,
        "_snapshot",
        _forget_tail,
    ),
    Mutant(
        "tombstone-not-awaited",
        "a deletion is answered before it is committed",
        QueueStates,
        "remove",
        _answer_at_once,
    ),
    Mutant(
        "retention-over-unacknowledged",
        "messages are deleted before subscriptions are done with them",
        Subscriptions,
        "done_below",
        _all_is_done,
    ),
)
