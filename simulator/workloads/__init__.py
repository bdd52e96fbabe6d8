"""What clients do to a cluster while it is struck by faults, and what they expect of it."""

from __future__ import annotations

from typing import Final

from simulator.workloads.at_most_once import AtMostOnce
from simulator.workloads.compacted import Compacted
from simulator.workloads.damaged import Damaged
from simulator.workloads.groups import Groups
from simulator.workloads.isolated import Isolated
from simulator.workloads.logs import Logs
from simulator.workloads.membership import Membership
from simulator.workloads.moved import Moved
from simulator.workloads.named import Named
from simulator.workloads.nearby import Nearby
from simulator.workloads.queues import Queues
from simulator.workloads.recreated import Recreated
from simulator.workloads.redriven import Redriven
from simulator.workloads.repeated import Repeated
from simulator.workloads.retained import Retained
from simulator.workloads.shared import Shared
from simulator.workloads.taken import Taken
from simulator.workloads.transactions import Transactions
from simulator.workloads.workload import Workload

_KINDS: Final[tuple[type[Workload], ...]] = (
    Logs,
    Groups,
    Queues,
    Membership,
    Retained,
    Compacted,
    Damaged,
    Recreated,
    AtMostOnce,
    Repeated,
    Named,
    Redriven,
    Moved,
    Nearby,
    Transactions,
    Isolated,
    Taken,
    Shared,
)

ALL: Final[dict[str, type[Workload]]] = {kind.name: kind for kind in _KINDS}


def names_for(nodes: int) -> tuple[str, ...]:
    """The workloads that seeds of a run with so many nodes draw from."""
    able = (kind for kind in ALL.values() if (kind.many_nodes if nodes > 1 else kind.one_node))
    return tuple(kind.name for kind in able if kind.is_drawn)
