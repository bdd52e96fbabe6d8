"""One member's way from what it owns to what it shall own (KIP-848).

    Stable       it owns its target at the epoch that it has.
    Unrevoked    it was told to give partitions up and has not confirmed; its epoch stands until then.
    Unreleased   it has the new epoch, but waits for partitions that others still hold.

A partition goes to its new owner only after the former one has confirmed that it stopped reading it, left,
or was removed; that keeps two members from owning it at once (L14), while all others go on undisturbed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from postroad.groups.requests import Partitions, TopicPartition


class MemberState(StrEnum):
    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


class Current(NamedTuple):
    """What a member owns. `revoking` is still its own, until it says otherwise."""

    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: Partitions
    revoking: Partitions

    @property
    def holds(self) -> Partitions:
        return self.assigned | self.revoking


NOTHING: Partitions = frozenset()
NEWCOMER = Current(0, 0, MemberState.STABLE, NOTHING, NOTHING)


def reconcile(
    current: Current,
    target_epoch: int,
    target: Partitions,
    owned: Partitions | None,
    is_free: Callable[[TopicPartition], bool],
) -> Current:
    """The next step, given what the member says it owns (None: no word of it). The same value if there is
    none."""
    if current.state is MemberState.STABLE and current.epoch == target_epoch:
        return current
    if current.state is MemberState.UNREVOKED and (owned is None or current.revoking & owned):
        return current
    kept = current.assigned & target
    revoking = current.assigned - target
    if revoking and (owned is None or revoking & owned):
        return _moved(current, current.epoch, MemberState.UNREVOKED, kept, revoking)
    wanted = target - kept
    free = frozenset(filter(is_free, wanted))
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED
    return _moved(current, target_epoch, state, kept | free, NOTHING)


def _moved(
    current: Current, epoch: int, state: MemberState, assigned: Partitions, revoking: Partitions
) -> Current:
    previous = current.previous_epoch if epoch == current.epoch else current.epoch
    return Current(epoch, previous, state, assigned, revoking)
