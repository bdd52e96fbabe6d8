"""What a decision hands to the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from postroad.cluster.store import Compare, Operation


class Decision(NamedTuple):
    """The arguments of `store.commit`. Without operations there is nothing to do."""

    compares: Sequence[Compare]
    operations: Sequence[Operation]
