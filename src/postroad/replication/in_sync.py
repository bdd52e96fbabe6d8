"""Who is in sync: the in-sync replicas (ISR), those that may still be elected (ELR, KIP-966), and their
changes.

While too few replicas are in sync the high watermark stands still. So a replica that leaves then has all that
is committed, and stays electable: it goes to the ELR. As soon as enough are in sync the watermark moves on
without the ELR, which must be empty by then.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class IsrChange(NamedTuple):
    """What a leader asks the coordination store to record, provided that nothing else was recorded
    meanwhile."""

    revision: int  # the commit compares the revision of the partition's key with this
    isr: tuple[int, ...]  # in the order of the replicas
    elr: tuple[int, ...]  # the next leader is looked for in this order
    joiners: tuple[tuple[int, int], ...]  # (node, broker epoch), compared with the node's key (KIP-903)
    resigns: bool  # the same commit ends the leadership: no leader, the next leader epoch


def effective_minimum(min_insync: int, replicas: Collection[int]) -> int:
    """How many replicas must be in sync: no more than there are, or nothing would ever be committed."""
    return min(min_insync, len(replicas))


def elr_after(
    isr: Collection[int], elr: Collection[int], leavers: Collection[int], minimum: int
) -> tuple[int, ...]:
    """The ELR beside these in-sync replicas, after the leavers have left: empty where enough are in sync."""
    if len(isr) >= minimum:
        return ()
    return (*(node for node in elr if node not in isr), *(node for node in leavers if node not in elr))
