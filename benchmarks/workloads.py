"""All workloads, in the order of the report."""

from __future__ import annotations

from benchmarks import gateway, logs, queues, replicated, secured, transactions
from benchmarks.workload import Workload

WORKLOADS: tuple[Workload, ...] = (
    *logs.WORKLOADS,
    *transactions.WORKLOADS,
    *queues.WORKLOADS,
    *gateway.WORKLOADS,
    *replicated.WORKLOADS,
    *secured.WORKLOADS,
)
