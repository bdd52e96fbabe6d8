"""Mutants of subscriptions and of what they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from postroad.broker.replies import Reply
from postroad.broker.subscriptions.dead_letters import DeadLetters
from postroad.broker.subscriptions.queue import Queue
from postroad.broker.subscriptions.replay import Kept
from postroad.broker.subscriptions.states import QueueStates
from postroad.broker.subscriptions.subscriptions import Subscriptions
from postroad.errors import ApiError
from postroad.now import Now
from postroad.queues import intake
from postroad.queues.backlog import Backlog
from postroad.queues.ledger import Ledger
from postroad.queues.locks import Locks
from postroad.queues.settings import Backoff
from postroad.queues.settlement import Settlement
from postroad.queues.share_partition import SharePartition
from postroad.queues.update import Dying, Key
from simulator.mutants.mutant import Mutant

NO_END: Final = 1 << 60


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


def _know_of_no_loss(begin: Callable[..., Any]) -> Callable[..., Any]:
    def begin_so(self: QueueStates, *arguments: Any) -> None:
        begin(self, *arguments)
        self.led_from = NO_END
        self._replay._placed = lambda offset, update: update

    return begin_so


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


def _halve_locks(acquire: Callable[..., Any]) -> Callable[..., Any]:
    def acquire_shortly(
        self: SharePartition, member: str, count: int, now: Now, lock_ms: int | None = None, *more: Any
    ) -> Any:
        given_ms = self.settings.lock_ms if lock_ms is None else lock_ms
        return acquire(self, member, count, now, given_ms // 2, *more)

    return acquire_shortly


def _ask_nobody(_: Callable[..., Any]) -> Callable[..., Any]:
    def is_held(self: Locks, member: int, first: int, last: int, now_ms: int) -> bool:
        return not self.missing(first, last)

    return is_held


def _forget_count(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda ledger, released: None


def _never_wait(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda backoff, deliveries, chance: 0


def _ignore_times(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda wall_ms, now: 0


def _keep_no_lanes(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda backlog, key: None


def _copy_nothing(copies: Callable[..., Any]) -> Callable[..., Any]:
    def without_copies(self: DeadLetters, queue: Queue, dying: Sequence[Dying]) -> Any:
        _, ranges = copies(self, queue, dying)
        return [], ranges

    return without_copies


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
        "ledger-kept",
        "a ledger's records count for messages that took the offsets of lost ones",
        QueueStates,
        "__init__",
        _know_of_no_loss,
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
    Mutant("short-locks", "locks end after half their time", SharePartition, "acquire", _halve_locks),
    Mutant("settled-by-anybody", "members settle what others hold", Locks, "held_by", _ask_nobody),
    Mutant(
        "uncounted-deliveries", "a released message forgets its deliveries", Ledger, "_release", _forget_count
    ),
    Mutant("no-backoff", "failed messages come again at once", Backoff, "delay_ms", _never_wait),
    Mutant("no-delays", "messages come before their time", intake, "_on_our_clock", _ignore_times),
    Mutant("no-order", "messages of one key don't wait for each other", Backlog, "_lane", _keep_no_lanes),
    Mutant("no-letters", "dead messages are done without a letter", DeadLetters, "_copies", _copy_nothing),
)
