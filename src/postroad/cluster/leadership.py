"""Decisions of a node about the partitions that it holds: start, change an ISR, hand over, leave.

A leader writes its own ISR and resigns by its own commit; a living leader is replaced in no other way, so it
has stopped serving before its successor begins. Everything else, elections above all, is the controller's
(`reconciliation`). Each decision compares the node's own entry: whatever a process sent before it died has
no effect once its successor has registered.

Decisions come as lists that stay within what a store takes in one commit. They are independent of each
other: one that is refused is decided anew when the image has followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from postroad.cluster import keys, partition_rules, reassignment
from postroad.cluster.chunk_changes import ChunkChange, changed_chunks, chunks_with, commits
from postroad.cluster.decision import Decision
from postroad.cluster.image import NO_LEADER, Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import is_controller, may_join, may_lead, own_entry
from postroad.cluster.partition_rules import Standing
from postroad.cluster.store import Delete
from postroad.errors import (
    ConfigurationError,
    ElectionNotNeeded,
    LeaderNotAvailable,
    PreferredLeaderNotAvailable,
)

# Each move is a short stall for its clients: a node that comes back must not stall all of them at once.
PREFERRED_MOVES_MAX: Final = 50


class Move(msgspec.Struct, frozen=True):
    """A leadership, by its epoch, that its leader hands over; `to` NO_LEADER: the controller elects."""

    topic_id: bytes
    index: int
    leader_epoch: int
    to: int = NO_LEADER


class IsrChange(msgspec.Struct, frozen=True):
    """What a leader, in this epoch, wants of its ISR.

    `joins` are replicas that have caught up, each with the broker epoch that its fetches carried.
    """

    topic_id: bytes
    index: int
    leader_epoch: int
    joins: dict[int, int] = {}
    leaves: frozenset[int] = frozenset()


# --- a node that starts --------------------------------------------------------------------------


def start(
    image: Image, node: int, *, same_boot: bool, clean: bool, is_synced: Callable[[Topic], bool]
) -> list[Decision]:
    """What a starting node commits before it says that it serves; nothing if all is as it left it.

    `clean`: its logs were left by a clean stop. `same_boot`: the machine has not been started since, so what
    was written is still there. Otherwise only topics whose flush is `sync` (`is_synced`) have kept all that
    the node promised. The new boot may be recorded only after the commit, or a start that fails in between
    would be taken for one of the same boot.
    """
    decisions = []
    if image.controller == node:  # its last process was; the key would stay until that one's lease ends
        decisions.append(Decision([is_controller(image, node)], [Delete(keys.CONTROLLER)]))
    intact = clean or same_boot
    lost = {topic.id for topic in image.topics.values() if not (intact or is_synced(topic))}

    def rule(topic: Topic, _: int, state: PartitionState) -> PartitionState:
        if node not in state.replicas:
            return state
        return partition_rules.restart(state, node, lost=topic.id in lost, clean=clean)

    changes = changed_chunks(image.topics.values(), rule)
    return decisions + commits(image, changes, [own_entry(image, node)])


def check_replaceable(image: Image, node: int) -> None:
    """Raise ConfigurationError if a node with an empty data directory would lose what it alone has.

    Where other replicas have all that is committed, it begins anew from theirs.
    """
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if len(state.replicas) > 1 and partition_rules.is_last(state, node):
                raise ConfigurationError(
                    f"This data directory is new, but node {node} is the only one that has all of "
                    f"{topic.name}-{index}. Nothing was changed. Start it with its own data directory."
                )


def begin_anew(image: Image, node: int, partitions: Iterable[tuple[bytes, int]]) -> list[Decision]:
    """The same for some partitions (topic id, index) of a node that runs: their disk has failed, and what
    becomes of their logs is seen when they are opened again."""
    wanted = set(partitions)

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        if (topic.id, index) not in wanted or node not in state.replicas:
            return state
        return partition_rules.restart(state, node, lost=True, clean=False)

    return commits(image, chunks_with(image, sorted(wanted), rule), [own_entry(image, node)])


# --- a leader --------------------------------------------------------------------------------------


def change_isr(image: Image, node: int, wanted: Iterable[IsrChange]) -> list[Decision]:
    """The ISRs that the leader wants. What it no longer leads in that epoch stays as it is.

    A joiner must serve under the broker epoch of its fetch: one that has restarted since may have lost what
    it had promised (KIP-903), and one that stops must not be waited for (KIP-841). The commit compares both.
    """

    by_partition = {(change.topic_id, change.index): change for change in wanted}

    def based_on(before: PartitionState, after: PartitionState) -> Iterable[int]:
        return set(after.isr) - set(before.isr)

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        change = by_partition.get((topic.id, index))
        if change is None or (state.leader, state.leader_epoch) != (node, change.leader_epoch):
            return state
        leaves = change.leaves & set(state.isr) - {node}
        if leaves:
            state = partition_rules.leave(topic, state, leaves)
        joins = [
            joiner
            for joiner, epoch in change.joins.items()
            if joiner in state.replicas and joiner not in state.isr
            if may_join(image, joiner) and image.node_epoch(joiner) == epoch
        ]
        return partition_rules.join(topic, state, joins) if joins else state

    return commits(image, chunks_with(image, by_partition, rule, based_on), [own_entry(image, node)])


def write_again(image: Image, node: int, partitions: Iterable[tuple[bytes, int]]) -> list[Decision]:
    """Give the chunks of these partitions (topic id, index) another revision: what was sent before and
    compares the old one comes too late then."""
    changes = [
        ChunkChange(topic, number, topic.partitions[first : first + keys.PARTITIONS_PER_CHUNK])
        for topic_id, number in sorted({(t, index // keys.PARTITIONS_PER_CHUNK) for t, index in partitions})
        if (topic := image.topics_by_id.get(topic_id)) is not None
        for first in [number * keys.PARTITIONS_PER_CHUNK]
    ]
    return commits(image, changes, [own_entry(image, node)])


def resign(
    image: Image, node: int, moves: Iterable[Move], standing: Standing = Standing.STAYS
) -> list[Decision]:
    """The leader hands over what it has stopped serving. What it no longer leads in that epoch is left out.

    Where the one named can't lead any more, the controller elects. A leader leaves the ISR only if another
    replica can lead: with the last one's data nobody could go on. One that lost its followers `LEAVES`, or
    it would be elected again for ever; it becomes the last member of the ELR.
    """
    by_partition = {(move.topic_id, move.index): move for move in moves}

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        move = by_partition.get((topic.id, index))
        if move is None or (state.leader, state.leader_epoch) != (node, move.leader_epoch):
            return state
        replaceable = is_replaceable(image, state)
        if standing is Standing.FAILED and not replaceable:
            return state
        able = move.to != node and move.to in state.isr and may_lead(image, move.to)
        to = move.to if able else NO_LEADER
        return partition_rules.resign(topic, state, to, standing if replaceable else Standing.STAYS)

    return commits(image, chunks_with(image, by_partition, rule), [own_entry(image, node)])


def is_replaceable(image: Image, state: PartitionState) -> bool:
    """Whether another replica than the leader could be elected now."""
    return any(
        member != state.leader and member in image.nodes and image.nodes[member].state != keys.STARTING
        for member in (*state.isr, *state.elr)
    )


def preferred_moves(image: Image, node: int, limit: int = PREFERRED_MOVES_MAX) -> list[Move]:
    """Leaderships of the node that belong to another: the first of the replicas, in sync and able to lead."""
    moves = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.leader != node or not _has_idle_preferred(image, state):
                continue
            moves.append(Move(topic.id, index, state.leader_epoch, state.replicas[0]))
            if len(moves) >= limit:
                return moves
    return moves


def leaving_moves(image: Image, node: int) -> list[Move]:
    """What the node leads and should not: it is drained, or leaves where the new replicas are in sync."""
    if node in image.drains:
        return drain_moves(image, node)
    moves = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.leader == node and node in state.removing and reassignment.has_arrived(state):
                heir = next(iter(reassignment.heirs(image, state)), NO_LEADER)
                if heir != NO_LEADER:
                    moves.append(Move(topic.id, index, state.leader_epoch, heir))
    return moves


def preferred_move(image: Image, topic: Topic, index: int) -> Move:
    """What ElectLeaders asks of a partition's leader, for the preferred replica.

    Raises ElectionNotNeeded if that one leads, PreferredLeaderNotAvailable if it can't, LeaderNotAvailable
    while there is no leader that could hand over: the controller elects then.
    """
    state = topic.partitions[index]
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise ElectionNotNeeded()
    if state.leader == NO_LEADER:
        raise LeaderNotAvailable()
    if not _has_idle_preferred(image, state):
        raise PreferredLeaderNotAvailable()
    return Move(topic.id, index, state.leader_epoch, preferred)


def _has_idle_preferred(image: Image, state: PartitionState) -> bool:
    preferred = state.replicas[0]
    return state.leader != preferred and preferred in state.isr and may_lead(image, preferred)


# --- a node that stops -------------------------------------------------------------------------------


def drain_moves(image: Image, node: int) -> list[Move]:
    """What a node that stops can hand over, each to the first of the other replicas that can lead."""
    moves = []
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            heir = _heir(image, state) if state.leader == node else NO_LEADER
            if heir != NO_LEADER:
                moves.append(Move(topic.id, index, state.leader_epoch, heir))
    return moves


def _heir(image: Image, state: PartitionState) -> int:
    able = (member for member in state.replicas if member in state.isr and may_lead(image, member))
    return next((member for member in able if member != state.leader), NO_LEADER)


def leave_isrs(image: Image, node: int, only: Collection[tuple[bytes, int]] | None = None) -> list[Decision]:
    """A node that stops leaves the ISRs of partitions that others lead, so that nobody waits for it.

    `only` these partitions (topic id, index): its disk has no room for what their leaders send.
    """

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        if node not in state.isr or state.leader == node or state.leader not in image.nodes:
            return state
        if only is not None and (topic.id, index) not in only:
            return state
        return partition_rules.leave(topic, state, {node})

    changes = changed_chunks(image.topics.values(), rule)
    return commits(image, changes, [own_entry(image, node)])
