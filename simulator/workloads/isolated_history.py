"""What was written in transactions and beside them, and what a subscription that waits for them delivered."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simulator.workloads.transaction_history import Attempt, TransactionHistory

PLAIN = b"plain:"  # what a value begins with that was written outside of transactions


@dataclass
class IsolatedHistory:
    transactions: TransactionHistory = field(default_factory=TransactionHistory)
    delivered: Counter[bytes] = field(default_factory=Counter)
    found: list[bytes] = field(default_factory=list)  # by a read_committed reader when all was at rest

    def attempt_of(self, value: bytes) -> Attempt | None:
        """The transaction that wrote it; None if none did."""
        return None if value.startswith(PLAIN) else self.transactions.attempt_of(value)
