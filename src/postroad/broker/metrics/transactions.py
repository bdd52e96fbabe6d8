"""Transactions on a page: those of the transactional ids that this node coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postroad.metrics.page import COUNTER, GAUGE, Page
from postroad.transactions.transaction import PREPARED, TransactionState

if TYPE_CHECKING:
    from postroad.broker.node import Node


def write_transactions(page: Page, node: Node) -> None:
    counts = node.transactions.counts
    started = [
        known.started_ms
        for coordinator in node.transactions.all()
        for known in coordinator.transactions.known.values()
        if known.state is TransactionState.ONGOING or known.state in PREPARED
    ]
    oldest_ms = node.clock.now_ms() - min(started) if started else 0
    for name, kind, meaning, value in (
        ("open", GAUGE, "Transactions that are open or about to end.", len(started)),
        ("oldest_seconds", GAUGE, "The age of the oldest of them.", max(oldest_ms, 0) / 1000),
        ("committed_total", COUNTER, "Transactions that were committed.", counts.committed),
        ("aborted_total", COUNTER, "Transactions that were aborted or timed out.", counts.aborted),
        ("fenced_total", COUNTER, "Requests of producers that were replaced by newer ones.", counts.fenced),
    ):
        page.family(f"postroad_transactions_{name}", kind, meaning).add(value)
