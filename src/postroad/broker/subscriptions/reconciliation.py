"""`Reconciliation`: ledgers and partitions are brought together again after a restart.

Each ledger meets its partition once both are there: the state was loaded, and the log was opened. What the
log lost is corrected in the ledger, dying messages are copied, and topics that lack their ledger get it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from postroad.broker.partition import Partition
from postroad.broker.subscriptions.ledger_creation import LedgerCreation
from postroad.broker.subscriptions.states import QueueStates
from postroad.errors import ApiError
from postroad.queues.ledger import Ledger
from postroad.queues.update import Update

if TYPE_CHECKING:
    from postroad.broker.node import Node
    from postroad.broker.subscriptions.state_topic import StateTopic

RETRY_S: Final = 1.0  # after a ledger could not be corrected
GROUPS_AT_ONCE: Final = 200  # are looked at when states were loaded; then others have their turn

log = logging.getLogger(__name__)


class Reconciliation:
    def __init__(self, node: Node, states: StateTopic, creation: LedgerCreation) -> None:
        self._node = node
        self._states = states
        self._creation = creation

    def partition_opened(self, partition: Partition) -> None:
        """A partition that was offline is back."""
        for ledger in list(self._states.of_topic(partition.topic_id)):
            if ledger.key.partition == partition.index:
                self._reconcile(ledger, partition)
        self._creation.partition_opened(partition)

    async def loaded(self, states: QueueStates) -> None:
        """A partition of the state was loaded: its groups can be served now."""
        image = self._node.image
        for ledger in list(states.ledgers()):
            partition = self._node.partitions.find(ledger.key.topic_id, ledger.key.partition)
            if ledger.key.topic_id not in image.topics_by_id:  # deleted just before the node stopped
                states.remove(ledger.key, _told)
            elif partition is not None:
                self._reconcile(ledger, partition)
        of_these = [group_id for group_id in image.groups if self._states.find(group_id) is states]
        for count, group_id in enumerate(of_these, 1):
            self._creation.hold_named(group_id, since_start=True)
            if count % GROUPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._creation.retry()

    def _reconcile(self, ledger: Ledger, partition: Partition) -> None:
        """Both are there for the first time since the node was started."""
        states = self._states.find_ready(ledger.key.group)
        if states is None:
            return
        correction = ledger.ending_at(partition.opened_at)
        if correction is not None:
            lost = "%s-%d has lost its end: %s goes on at offset %d with what comes next"
            log.warning(lost, partition.topic, partition.index, ledger.key.group, partition.opened_at)
            self._correct(states, ledger, correction)
        elif ledger.dying and self._node.subscriptions.queue_in_use(ledger.key) is None:
            self._node.subscriptions.open_queue(ledger.key)

    def _correct(self, states: QueueStates, ledger: Ledger, correction: Update) -> None:
        """Nobody is served before it is written, or what was lost would be passed over."""

        def done(error: ApiError | None) -> None:
            if error is not None:
                _told(error)
                self._node.loop.call_later(RETRY_S, self._correct, states, ledger, correction)
            elif ledger.dying:
                self._node.subscriptions.open_queue(ledger.key)

        states.correct(ledger, correction, done)
        self._node.subscriptions.close_queue(ledger.key)


def _told(error: ApiError | None) -> None:
    if error is not None:
        log.debug("a subscription's state could not be written: %s", error)  # its log has said so once
