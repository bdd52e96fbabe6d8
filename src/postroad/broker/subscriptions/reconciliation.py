"""`Reconciliation`: a ledger that was loaded is brought together with the log of its messages.

What the log lost without a new leader epoch (a file was damaged while the node was stopped) is corrected in
the ledger; dying messages are copied; subscriptions that lack their part of the ledger get it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from postroad.broker.subscriptions.ledger_creation import LedgerCreation
from postroad.broker.subscriptions.states import QueueStates
from postroad.errors import ApiError
from postroad.queues.ledger import Ledger
from postroad.queues.update import Update

if TYPE_CHECKING:
    from postroad.broker.node import Node

RETRY_S: Final = 1.0  # after a ledger could not be corrected

log = logging.getLogger(__name__)


class Reconciliation:
    def __init__(self, node: Node, creation: LedgerCreation) -> None:
        self._node = node
        self._creation = creation

    def loaded(self, states: QueueStates, is_new: bool) -> None:
        """The partition's ledger was loaded: its subscriptions can be served now."""
        for ledger in list(states.ledgers()):
            self._reconcile(states, ledger)
        self._creation.partition_loaded(states, is_new)

    def _reconcile(self, states: QueueStates, ledger: Ledger) -> None:
        correction = ledger.ending_at(states.led_from)
        if correction is not None:
            lost = "%s-%d has lost its end: %s goes on at offset %d with what comes next"
            log.warning(lost, states.messages.topic, states.messages.index, ledger.key.group, states.led_from)
            self._correct(states, ledger, correction)
        elif ledger.dying:
            self._node.subscriptions.open_queue(ledger.key)

    def _correct(self, states: QueueStates, ledger: Ledger, correction: Update) -> None:
        """Nobody is served before it is written, or what was lost would be passed over."""
        if not states.knows(ledger.key):
            return  # the partition was resigned

        def done(error: ApiError | None) -> None:
            if error is not None:
                log.debug("a ledger could not be corrected: %s", error)  # its log has said so once
                self._node.loop.call_later(RETRY_S, self._correct, states, ledger, correction)
            elif ledger.dying:
                self._node.subscriptions.open_queue(ledger.key)

        states.correct(ledger, correction, done)
