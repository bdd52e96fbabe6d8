"""What was taken from a queue, and what workers did with it in transactions."""

from __future__ import annotations

from dataclasses import dataclass, field

from simulator.workloads.log_history import Position
from simulator.workloads.transaction_history import TransactionHistory


@dataclass
class TakenHistory:
    transactions: TransactionHistory = field(default_factory=TransactionHistory)
    inputs: list[Position] = field(default_factory=list)  # all messages of the queue, when all was at rest
