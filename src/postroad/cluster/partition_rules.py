"""The steps that a partition's state may take: elect, join, leave, resign, restart.

Each was checked in a TLA+ model (docs/spec). Why they lose nothing: a leader counts a message as
committed when every member of its ISR has it, and counts on members that left until it has read that they
did. So a state that was written behind its back has fewer members than it waits for, and each of them has all
that is committed. The ELR has it too, because nothing is committed while the ISR is too small, and the step
that makes the ISR large enough empties the ELR.

Who may take which step, and on what a commit must be conditional, is the business of `leadership` and
`reconciliation`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

import msgspec

from postroad.cluster import topic_config
from postroad.cluster.image import NO_LEADER, Topic
from postroad.cluster.keys import PartitionState


class Standing(Enum):
    """What becomes of a leader that resigns."""

    STAYS = "stays"  # in the ISR: it follows its successor
    LEAVES = "leaves"  # the ISR; it has all that is committed, so it may be elected if too few are left
    FAILED = "failed"  # its log is not to be trusted: it leaves ISR and ELR


def min_insync(topic: Topic, state: PartitionState) -> int:
    """How many replicas must be in sync for anything to be committed, at most as many as there are."""
    return topic_config.min_insync_replicas(topic.config, state.counted)


def elr_after(isr: Collection[int], elr: Sequence[int], gone: Sequence[int], minimum: int) -> tuple[int, ...]:
    """The ELR when `gone` have left and `isr` remains; nothing is kept once the ISR is large enough."""
    if len(isr) >= minimum:
        return ()
    return tuple(node for node in dict.fromkeys((*elr, *gone)) if node not in isr)


def elect(topic: Topic, state: PartitionState, node: int) -> PartitionState:
    """Make a member of the ISR the leader, or one of the ELR, which then is alone in the ISR."""
    if node in state.isr:
        return msgspec.structs.replace(state, leader=node, leader_epoch=state.leader_epoch + 1)
    assert node in state.elr, f"{node} may not lead"
    isr = (node,)
    elr = elr_after(isr, state.elr, state.isr, min_insync(topic, state))
    return msgspec.structs.replace(state, leader=node, leader_epoch=state.leader_epoch + 1, isr=isr, elr=elr)


def depose(state: PartitionState) -> PartitionState:
    """End the leadership without a successor. Followers stop fetching; the ISR says who may be elected."""
    return msgspec.structs.replace(state, leader=NO_LEADER, leader_epoch=state.leader_epoch + 1)


def leave(topic: Topic, state: PartitionState, gone: Collection[int]) -> PartitionState:
    """Take members out of the ISR; the ELR keeps them if too few are left."""
    assert state.leader not in gone
    isr = tuple(node for node in state.isr if node not in gone)
    left = tuple(node for node in state.isr if node in gone)
    elr = elr_after(isr, state.elr, left, min_insync(topic, state))
    return msgspec.structs.replace(state, isr=isr, elr=elr)


def join(topic: Topic, state: PartitionState, joiners: Collection[int]) -> PartitionState:
    """Add replicas to the ISR; one that was being added is a full replica from now on."""
    isr = tuple(node for node in state.replicas if node in state.isr or node in joiners)
    adding = tuple(node for node in state.adding if node not in joiners)
    joined = msgspec.structs.replace(state, isr=isr, adding=adding)
    elr = elr_after(isr, state.elr, (), min_insync(topic, joined))
    return msgspec.structs.replace(joined, elr=elr)


def resign(topic: Topic, state: PartitionState, to: int, standing: Standing) -> PartitionState:
    """The leader hands over `to` another member of the ISR, or to nobody (NO_LEADER)."""
    node = state.leader
    assert to == NO_LEADER or (to in state.isr and to != node)
    resigned = msgspec.structs.replace(state, leader=to, leader_epoch=state.leader_epoch + 1)
    if standing is Standing.STAYS:
        return resigned
    if standing is Standing.LEAVES:
        return leave(topic, resigned, {node})
    return forget(resigned, node)


def forget(state: PartitionState, node: int) -> PartitionState:
    """Take a node out of ISR and ELR: it may lack what is committed."""
    isr = tuple(member for member in state.isr if member != node)
    elr = tuple(member for member in state.elr if member != node)
    return msgspec.structs.replace(state, isr=isr, elr=elr)


def is_last(state: PartitionState, node: int) -> bool:
    """Whether nobody but this node may be elected. The ISR alone would not do: two replicas that lost their
    tails would empty both sets, and nobody could ever lead again."""
    return {*state.isr, *state.elr} == {node}


def restart(state: PartitionState, node: int, *, lost: bool, clean: bool) -> PartitionState:
    """What a starting node makes of one of its partitions, before it serves.

    `lost`: the tail of its log may be gone, so it leaves ISR and ELR, unless nobody else has anything.
    The last one leads on, under a new epoch: what was handed out under the old one may be gone (L2, L13).
    The exception is a partition without other replicas after a clean stop, where nothing can have changed.
    A leader with others resigns in any case: they may have been promised what its log has no longer, and a
    change of the ISR that its last process sent may still be on its way.
    """
    if clean and state.leader == node and state.replicas == (node,):
        return state
    if is_last(state, node):
        return msgspec.structs.replace(
            state, leader=node, leader_epoch=state.leader_epoch + 1, isr=(node,), elr=()
        )
    if state.leader == node:
        state = depose(state)
    return forget(state, node) if lost else state
