"""Bringing a verdict to all that a transaction has reached: partitions of topics, and groups.

A partition gets a marker; a group turns the transaction's offsets into committed ones, or drops them. Each is
tried until it has been done and is committed: the verdict stands, and nobody may forget it. What does not
exist any more counts as done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.errors import ApiError, InvalidProducerEpoch, TransactionCoordinatorFenced
from postroad.transactions.transaction import Partition as TopicPartition
from postroad.transactions.transaction import Transaction, TransactionState

if TYPE_CHECKING:
    from postroad.broker.node import Node

RETRY_S: Final = 0.1

log = logging.getLogger(__name__)


class Participants:
    def __init__(self, node: Node) -> None:
        self._node = node

    def end(self, transaction: Transaction, coordinator_epoch: int, done: Callable[[], None]) -> Ending:
        """Write the verdict to all of them; `done` is called when all are committed, never before this
        returns."""
        ending = Ending(self._node, transaction, coordinator_epoch, done)
        self._node.loop.call_soon(ending.begin)
        return ending


class Ending:
    """One verdict on its way."""

    def __init__(
        self, node: Node, transaction: Transaction, coordinator_epoch: int, done: Callable[[], None]
    ) -> None:
        self._node = node
        self._transaction = transaction
        self._coordinator_epoch = coordinator_epoch
        self._done = done
        self._commit = transaction.state is TransactionState.PREPARE_COMMIT
        self._left = 0
        self._cancelled = False
        self._timers: set[asyncio.TimerHandle] = set()

    def begin(self) -> None:
        if self._cancelled:
            return
        partitions, groups = sorted(self._transaction.places()), self._transaction.groups
        self._left = 1 + len(partitions) + len(groups)
        for where in partitions:
            self._mark(where)
        for group_id in groups:
            self._complete_offsets(group_id)
        self._finish_one()

    def cancel(self) -> None:
        self._cancelled = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    # --- partitions

    def _mark(self, where: TopicPartition) -> None:
        node, transaction = self._node, self._transaction
        if self._cancelled:
            return
        if where[0] not in node.image.topics_by_id:
            self._finish_one()
            return
        done = partial(self._marked, where)
        try:
            partition = node.partitions.lead(*where)
            appended = partition.append_marker(
                transaction.producer_id,
                transaction.epoch,
                self._commit,
                self._coordinator_epoch,
                node.clock.now_ms(),
                strict=transaction.version > 1,
            )
            if appended:
                node.turn.when_written(_Written(partition, done))
            else:
                partition.when_committed(partition.log.end_offset, done)
        except (InvalidProducerEpoch, TransactionCoordinatorFenced) as error:
            # The partition knows of a later transaction: this one has ended there.
            log.warning("the marker for %s-%d is late: %s", where[0].hex(), where[1], error)
            self._finish_one()
        except ApiError:
            self._again(self._mark, where)

    def _marked(self, where: TopicPartition, error: ApiError | None) -> None:
        if error is None:
            self._finish_one()
        else:
            self._again(self._mark, where)

    # --- groups

    def _complete_offsets(self, group_id: str) -> None:
        if self._cancelled:
            return
        transaction = self._transaction
        try:
            coordinator = self._node.groups.find(group_id)
            reply = partial(self._offsets_completed, group_id)
            coordinator.alone(
                group_id,
                lambda _: coordinator.groups.complete(
                    group_id, transaction.producer_id, transaction.epoch, self._commit, reply
                ),
                reply,
            )
        except ApiError:
            self._again(self._complete_offsets, group_id)

    def _offsets_completed(self, group_id: str, answer: object) -> None:
        if isinstance(answer, ApiError):
            self._again(self._complete_offsets, group_id)
        else:
            self._finish_one()

    # --- the end

    def _again(self, call: Callable[..., None], what: object) -> None:
        if not self._cancelled:
            timer: asyncio.TimerHandle

            def due() -> None:
                self._timers.discard(timer)
                call(what)

            timer = self._node.loop.call_later(RETRY_S, due)
            self._timers.add(timer)

    def _finish_one(self) -> None:
        self._left -= 1
        if not self._left and not self._cancelled:
            self._done()


class _Written:
    """A marker on its way to the disk."""

    __slots__ = ("_partition", "_reply")

    def __init__(self, partition: Partition, reply: Callable[[ApiError | None], None]) -> None:
        self._partition = partition
        self._reply = reply

    def written(self) -> None:
        if self._partition.write_error is not None:
            self._reply(self._partition.write_error)
        else:
            self._partition.when_committed(self._partition.log.written_offset, self._reply)
