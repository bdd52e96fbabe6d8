"""Partitions that move between nodes: begin, change, cancel and complete.

    replicas 1 2 3 ──begin 4 2 3──▶ replicas 4 2 3 1, adding 4, removing 1, original 1 2 3
                                          │ 4 has caught up: its leader lets it join the ISR
                                          ▼
                                    replicas 4 2 3 1, removing 1
                                          │ 1 leads: it hands over to one that stays, by its own commit
                                          ▼ all that were added are in sync, one that stays leads
                                    replicas 4 2 3

A partition never has fewer replicas in sync than before it began to move: the new ones are added first, and
the old ones go in one commit, out of replicas, ISR and ELR at once, so that the ISR is never outside of the
replicas (KAFKA-9672). Who leaves the ISR behind the leader's back still counts for that leader until it has
read of it, so it can only be too careful. A leader that lives is replaced by nobody but itself: it hands
over when the new replicas are in sync (`leadership.leaving_moves`).

A cancelled move is one to the original replicas. Whoever has begun a move may die: what is left to do stands
in the partition's state, and the controller does it.

A replica that is removed deletes its files. Before that its node takes another broker epoch
(`broker/strays`): its old fetches, which promise what is gone, could otherwise let it join when it is added
again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from postroad.cluster import keys, partition_rules
from postroad.cluster.chunk_changes import changed_chunks, chunks_with, commits
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import is_controller, may_lead, own_entry, placeable
from postroad.cluster.placement import replacement
from postroad.errors import (
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    PolicyViolation,
    UnknownTopicOrPartition,
)

TopicPartition = tuple[bytes, int]

# As many partitions as are copied at a time because a node is drained or lost: each copies all that it has.
EVACUATIONS_MAX: Final = 20


# --- steps of one partition --------------------------------------------------------------------------


def is_moving(state: PartitionState) -> bool:
    return bool(state.adding or state.removing or state.original)


def original(state: PartitionState) -> tuple[int, ...]:
    """The replicas from before the partition began to move."""
    return state.original or tuple(node for node in state.replicas if node not in state.adding)


def added(state: PartitionState) -> tuple[int, ...]:
    """The replicas that the move brings, whether they have joined the ISR or not."""
    before = original(state)
    return tuple(node for node in state.target if node not in before)


def begin(topic: Topic, state: PartitionState, wanted: Sequence[int]) -> PartitionState:
    """The partition is to have these replicas, the preferred leader first; also while it moves elsewhere.

    What was to be added, is not wanted any more and was never in sync goes at once.
    """
    assert wanted
    assert len(set(wanted)) == len(wanted)
    held = [node for node in state.replicas if node not in state.adding]
    removing = tuple(node for node in held if node not in wanted)
    adding = tuple(node for node in wanted if node not in held)
    begun = msgspec.structs.replace(
        state,
        replicas=(*wanted, *removing),
        adding=adding,
        removing=removing,
        original=original(state) if adding or removing else (),
    )
    return partition_rules.leave(topic, begun, ())  # the least that must be in sync may be lower now


def cancel(topic: Topic, state: PartitionState) -> PartitionState:
    """The partition is to have its original replicas again."""
    return begin(topic, state, original(state))


def has_arrived(state: PartitionState) -> bool:
    """Whether all that are added are in sync, so that nobody who leaves is needed any more."""
    return not state.adding and set(added(state)) <= set(state.isr)


def may_complete(topic: Topic, state: PartitionState) -> bool:
    """Whether those that leave may go now: one that stays leads, and enough that stay are in sync."""
    if not is_moving(state) or not has_arrived(state) or state.leader not in state.target:
        return False
    after = complete(topic, state)
    return len(after.isr) >= partition_rules.min_insync(topic, after)


def complete(topic: Topic, state: PartitionState) -> PartitionState:
    """Those that leave are gone, from replicas, ISR and ELR at once."""
    stay = state.target
    isr = tuple(node for node in state.isr if node in stay)
    moved = msgspec.structs.replace(state, replicas=stay, isr=isr, removing=(), original=())
    elr = [node for node in state.elr if node in stay]
    kept = partition_rules.elr_after(isr, elr, (), partition_rules.min_insync(topic, moved))
    return msgspec.structs.replace(moved, elr=kept)


# --- what an operator asks for -----------------------------------------------------------------------


def check(image: Image, topic: Topic, index: int, wanted: Sequence[int] | None) -> None:
    """Raise what is wrong with a request to move one partition; None: to cancel its move."""
    if image.level < keys.MOVES_LEVEL:
        raise PolicyViolation(
            "Some node runs a version that can't move partitions. Update all nodes, then try again."
        )
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(f"{topic.name!r} has no partition {index}.")
    state = topic.partitions[index]
    if wanted is None:
        if not is_moving(state):
            raise NoReassignmentInProgress()
        return
    if not wanted or len(set(wanted)) != len(wanted):
        raise InvalidReplicaAssignment("A partition needs replicas, on nodes that differ.")
    able = placeable(image)
    unable = [node for node in wanted if node not in state.replicas and node not in able]
    if unable:
        raise InvalidReplicaAssignment(
            f"Nodes {unable} can't get replicas: they do not serve, or are being drained. These can: {able}."
        )


def reassign(
    image: Image, node: int, wanted: Mapping[TopicPartition, Sequence[int] | None]
) -> list[Decision]:
    """Begin to move partitions (topic id, index), or cancel their moves (None); asked for at this node.

    Each was checked (`check`). A cancelled move that has ended meanwhile is passed over.
    """

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        if (topic.id, index) not in wanted:
            return state
        replicas = wanted[topic.id, index]
        if replicas is None:
            return cancel(topic, state) if is_moving(state) else state
        return state if tuple(replicas) == state.target else begin(topic, state, replicas)

    return commits(image, chunks_with(image, wanted, rule), [own_entry(image, node)])


def cancel_of(image: Image, node: int, leaving: int) -> list[Decision]:
    """Cancel all moves that take partitions away from a node; asked for at `node`."""
    moves = {
        (topic.id, index): None
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if leaving in state.removing and leaving in original(state)
    }
    return reassign(image, node, moves)


# --- what the controller does ------------------------------------------------------------------------


def finish(image: Image, controller: int) -> list[Decision]:
    """Complete every move that can be."""
    if image.controller != controller:
        return []

    def rule(topic: Topic, _: int, state: PartitionState) -> PartitionState:
        if not is_moving(state) or state.leader not in image.nodes:
            return state
        return complete(topic, state) if may_complete(topic, state) else state

    changes = changed_chunks(image.topics.values(), rule)
    return commits(image, changes, [is_controller(image, controller)])


def evacuate(
    image: Image, controller: int, lost: Collection[int] = (), limit: int = EVACUATIONS_MAX
) -> list[Decision]:
    """Begin to move partitions away from nodes that are drained, dead or alive, and from those that are lost.

    A replica that can be put nowhere else stays, and so does one that nobody can be copied from. At most
    `limit` partitions are copied at a time; a new replica whose node is gone is not copied.
    """
    if image.controller != controller or image.level < keys.MOVES_LEVEL:
        return []
    leaving = {*image.drains, *lost}
    if not leaving:
        return []
    nodes = [node for node in placeable(image) if node not in leaving]
    states = [state for topic in image.topics.values() for state in topic.partitions]
    held = {node: sum(node in state.target for state in states) for node in nodes}
    copying = image.nodes.keys() - leaving
    free = limit - sum(not copying.isdisjoint(each.adding) for each in states if each.leader in image.nodes)
    racks = {node: image.nodes[node].rack for node in image.nodes}

    def rule(topic: Topic, _: int, state: PartitionState) -> PartitionState:
        nonlocal free
        if free <= 0 or state.leader not in image.nodes or not leaving & set(state.target):
            return state
        wanted = _without(state.target, leaving, held, racks)
        if wanted == state.target:
            return state
        free -= 1
        return begin(topic, state, wanted)

    changes = changed_chunks(image.topics.values(), rule)
    return commits(image, changes, [is_controller(image, controller)])


def _without(
    replicas: Sequence[int], leaving: Collection[int], held: dict[int, int], racks: Mapping[int, str]
) -> tuple[int, ...]:
    """The replicas with another node in the place of each that leaves, as far as there are others."""
    wanted = list(replicas)
    for position, node in enumerate(replicas):
        if node not in leaving:
            continue
        stay = [other for other in wanted if other != node]
        chosen = replacement([other for other in stay if other not in leaving], stay, held, racks)
        if chosen is not None:
            wanted[position] = chosen
            held[chosen] += 1
    return tuple(wanted)


def stuck(image: Image, node: int) -> list[tuple[Topic, int]]:
    """Partitions that should leave the node and can't now: there is no other node for them, or nobody that
    runs has what they hold."""
    free = set(placeable(image)) - {node}
    return [
        (topic, index)
        for topic in image.topics.values()
        for index, state in enumerate(topic.partitions)
        if node in state.target and (free <= set(state.target) or not _can_be_copied(image, state))
    ]


def _can_be_copied(image: Image, state: PartitionState) -> bool:
    """Whether anybody runs that leads the partition or may be elected."""
    return any(member in image.nodes for member in (*state.isr, *state.elr))


def heirs(image: Image, state: PartitionState) -> list[int]:
    """Who may lead in the place of a leader that leaves: those that stay, are in sync and able, in order."""
    return [member for member in state.target if member in state.isr and may_lead(image, member)]
