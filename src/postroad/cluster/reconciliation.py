"""Decisions of the controller: a reconcile over what the image says, not over what has happened.

A controller that begins does the same as one that has been there for long, so it also cleans up after nodes
that died before it. Deciding twice changes nothing more. Each commit compares the controller's key: one that
has lost it, and has not heard yet, can't write.

A leader that lives is left alone. Members of an ISR whose nodes are dead are taken out behind their leader's
back: it counts on them until it reads that they are gone, so it can only be too careful.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from postroad.cluster import keys, partition_rules
from postroad.cluster.chunk_changes import changed_chunks, chunks_with, commits
from postroad.cluster.decision import Decision
from postroad.cluster.image import NO_LEADER, Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import is_controller, may_lead, placeable
from postroad.cluster.placement import replacement

# For each node that was asked: the epoch of its last batch and the end of its log.
LogEnds = Mapping[int, tuple[int, int]]


def reconcile(image: Image, controller: int, topics: Iterable[Topic] | None = None) -> list[Decision]:
    """Elect leaders where there is none that lives, and take the dead out of ISRs; all topics unless told.

    Nothing if the node is not the controller. The entries of the dead are compared, so that a leader that has
    registered anew is left alone. The entry of the elected is not: one that died or restarted meanwhile is in
    the ISR by right, unless its own commit has changed the chunk.
    """
    if image.controller != controller:
        return []

    # Most partitions need nothing, and look like others: whether they do is found out once for all of them.
    whole: set[tuple[int, tuple[int, ...]]] = set()

    def rule(topic: Topic, _: int, state: PartitionState) -> PartitionState:
        if not state.elr and (state.leader, state.isr) in whole:
            return state
        after = _reconciled(image, topic, state)
        if after is state and not state.elr:
            whole.add((state.leader, state.isr))
        return after

    changes = changed_chunks(image.topics.values() if topics is None else topics, rule, _replaced)
    return commits(image, changes, [is_controller(image, controller)])


def elect_unclean(image: Image, controller: int, ends: Mapping[tuple[bytes, int], LogEnds]) -> list[Decision]:
    """Lead partitions (topic id, index) by whoever has most, although it may lack what was committed.

    Only for partitions that nobody can lead otherwise, because an operator said so. Of the replicas that
    were asked and serve, that of the highest epoch and end leads, and all others begin from its log.
    """
    if image.controller != controller:
        return []

    def rule(topic: Topic, index: int, state: PartitionState) -> PartitionState:
        if (topic.id, index) not in ends or any(node in image.nodes for node in _by_right(state)):
            return state
        known = ends[topic.id, index]
        asked = [node for node in state.replicas if node in known and _is_able(image, node)]
        if not asked:
            return state
        chosen = max(asked, key=lambda node: known[node])
        adding = tuple(node for node in state.adding if node != chosen)
        epoch = state.leader_epoch + 1
        return msgspec.structs.replace(
            state, leader=chosen, leader_epoch=epoch, isr=(chosen,), elr=(), adding=adding
        )

    changes = chunks_with(image, ends, rule, lambda before, _: _by_right(before))
    return commits(image, changes, [is_controller(image, controller)])


def heal_internal(image: Image, controller: int, target: int) -> list[Decision]:
    """Add one replica to each partition of the nodes' own topics that has fewer than `target`.

    They are made by the first node, when there is no other. The new replica is the one of a node that holds
    the fewest, of another rack if there is one; it joins the ISR when it has caught up, and only then
    comes the next.
    """
    if image.controller != controller:
        return []
    topics = [topic for topic in image.topics.values() if topic.internal]
    nodes = placeable(image)
    held = {node: sum(node in state.replicas for t in topics for state in t.partitions) for node in nodes}
    racks = {node: entry.rack for node, entry in image.nodes.items()}

    def rule(_: Topic, index: int, state: PartitionState) -> PartitionState:
        if state.adding or state.removing or len(state.replicas) >= target:
            return state
        alive = [node for node in state.replicas if node in image.nodes]
        added = replacement(alive, state.replicas, held, racks)
        if added is None:
            return state
        held[added] += 1
        return msgspec.structs.replace(state, replicas=(*state.replicas, added), adding=(added,))

    return commits(image, changed_chunks(topics, rule), [is_controller(image, controller)])


# --- helpers -----------------------------------------------------------------------------------------


def _is_able(image: Image, node: int) -> bool:
    """Whether the node is there and has said what became of its replicas."""
    entry = image.nodes.get(node)
    return entry is not None and entry.state != keys.STARTING


def _by_right(state: PartitionState) -> tuple[int, ...]:
    """The replicas that have all that is committed."""
    return (*state.isr, *state.elr)


def _reconciled(image: Image, topic: Topic, state: PartitionState) -> PartitionState:
    if not _is_able(image, state.leader):
        state = _with_leader(image, topic, state)
    return _without_dead(image, topic, state) if _is_able(image, state.leader) else state


def _with_leader(image: Image, topic: Topic, state: PartitionState) -> PartitionState:
    able = _electable(image, state)
    if able:
        chosen = next((node for node in able if may_lead(image, node)), able[0])
        return partition_rules.elect(topic, state, chosen)
    dead = state.leader != NO_LEADER and state.leader not in image.nodes
    return partition_rules.depose(state) if dead else state


def _electable(image: Image, state: PartitionState) -> Sequence[int]:
    """Who may lead: the ISR in the order of the replicas, else the ELR, whoever left the ISR first.

    A member of the ISR that is starting comes before the ELR: it says in a moment what it has.
    """
    members = [node for node in state.replicas if node in state.isr and node in image.nodes]
    return [node for node in members or state.elr if _is_able(image, node)]


def _without_dead(image: Image, topic: Topic, state: PartitionState) -> PartitionState:
    dead = {node for node in state.isr if node not in image.nodes}
    rest = partition_rules.leave(topic, state, dead) if dead or state.elr else state
    return state if rest == state else rest


def _replaced(before: PartitionState, after: PartitionState) -> Iterable[int]:
    """Whoever lost the leadership or left the ISR."""
    gone = set(before.isr) - set(after.isr)
    return gone if before.leader in (after.leader, NO_LEADER) else gone | {before.leader}
