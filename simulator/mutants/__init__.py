"""Small faults that are put into the real code on purpose: each must be caught by some check.

Where no seed of a run fails with a mutant in place, the checks can't see what they are there for.
"""

from __future__ import annotations

from typing import Final

from simulator.mutants import (
    groups,
    logs,
    membership,
    moves,
    pledges,
    queues,
    repetitions,
    replication,
    shared,
    topics,
    transactions,
)
from simulator.mutants.mutant import Mutant

_ALL: Final = (
    *logs.ALL,
    *groups.ALL,
    *queues.ALL,
    *membership.ALL,
    *topics.ALL,
    *repetitions.ALL,
    *replication.ALL,
    *moves.ALL,
    *transactions.ALL,
    *pledges.ALL,
    *shared.ALL,
    *transactions.OF_CLUSTERS,
)

MUTANTS: Final[dict[str, Mutant]] = {mutant.name: mutant for mutant in _ALL}
