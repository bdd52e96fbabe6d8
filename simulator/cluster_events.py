"""What happened to partitions of a cluster: events that a run of many seeds must reach (`sometimes`).

Most are read from what the coordination store says; what it does not say, nodes write to their logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from postroad.cluster import keys, partition_rules
from postroad.cluster.image import NO_LEADER, Image, PartitionChange
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Operation
from simulator.world import World

ELECTED: Final = "cluster: a leader was elected"


class ClusterEvents:
    def __init__(self, world: World, truth: Image) -> None:
        """`truth`: what the store says, always."""
        self._world = world
        self._truth = truth
        self._controller: int | None = None
        self._loaded_by: dict[tuple[str, str, int], int] = {}  # who led when the state was loaded last

    def look(self, changes: Sequence[PartitionChange]) -> None:
        """The truth is another one now, and differs in these partitions."""
        for change in changes:
            self._elected(change)
            self._joined_or_left(change.before, change.after)
        controller = self._truth.controller
        if controller is not None and controller != self._controller:
            if self._controller is not None:
                self._world.sometimes("cluster: the controller moved")
            self._controller = controller

    def refused(self, key: str, operations: Sequence[Operation]) -> None:
        """The store has refused a commit, because this key is not what its sender thought."""
        if not any(operation.key.startswith(keys.PARTITIONS) for operation in operations):
            return
        if key == keys.CONTROLLER:
            self._world.sometimes("cluster: a former controller was refused")
        elif key.startswith(keys.NODES):
            self._world.sometimes("cluster: a joiner that had registered anew was refused")
        elif key.startswith(keys.PARTITIONS):
            self._world.sometimes("cluster: a change of the ISR by who knew less was refused")

    def loaded(self, what: str, topic: str, index: int) -> None:
        """A node begins to serve what it has read from the partition."""
        state = self._truth.topics[topic].partitions[index]
        before = self._loaded_by.get((what, topic, index))
        self._loaded_by[what, topic, index] = state.leader
        if before is None or len(state.replicas) == 1:
            return
        self._world.sometimes(f"cluster: {what} was loaded again")
        if before != state.leader:
            self._world.sometimes(f"cluster: {what} moved to another node")

    # --- helpers

    def _elected(self, change: PartitionChange) -> None:
        before, after = change.before, change.after
        if after.leader == NO_LEADER:
            return
        if after.leader != before.leader:
            self._world.sometimes(ELECTED)
            if after.leader not in before.isr:
                self._world.sometimes("cluster: a leader was elected from the ELR")
            if before.leader != NO_LEADER and before.leader in self._truth.nodes:
                self._world.sometimes("cluster: a leader handed over")
        is_last = len(after.replicas) > 1 and partition_rules.is_last(before, after.leader)
        if is_last and is_later(after, before) and self._starts(after.leader):
            self._world.sometimes("cluster: the last one in sync led on when it had started")

    def _joined_or_left(self, before: PartitionState, after: PartitionState) -> None:
        gone = set(before.isr) - set(after.isr)
        if len(after.isr) > len(before.isr):
            self._world.sometimes("cluster: a replica came into sync")
        if gone:
            self._world.sometimes("cluster: a replica left the ISR")
        for node in sorted(gone - set(after.elr)):
            self._forgotten(node, before)
        if is_later(after, before) and before.leader in after.elr and before.leader in gone:
            self._world.sometimes("cluster: a leader without followers resigned")

    def _forgotten(self, node: int, before: PartitionState) -> None:
        """The node left ISR and ELR while a member: it said so itself, or its ISR had enough others."""
        if self._starts(node):
            self._world.sometimes("cluster: a node left the ISR when it started without its tail")
        elif node in self._truth.nodes and before.leader == node:
            self._world.sometimes("cluster: a leader whose disk failed resigned")

    def _starts(self, node: int) -> bool:
        entry = self._truth.nodes.get(node)
        return entry is not None and entry.state == keys.STARTING


def is_later(state: PartitionState, before: PartitionState) -> bool:
    return state.leader_epoch > before.leader_epoch
