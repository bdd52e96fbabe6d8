"""Mutants of moves: rules without which a partition that moves is led by two nodes, or never moves."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec

from postroad.cluster import chunk_changes, keys, reassignment
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.membership import is_controller
from simulator.mutants.mutant import Mutant


def _replicas_first(complete: Callable[..., Any]) -> Callable[..., Any]:
    def keep_the_isr(topic: Topic, state: PartitionState) -> PartitionState:
        moved: PartitionState = complete(topic, state)
        return msgspec.structs.replace(moved, isr=state.isr)

    return keep_the_isr


def _isr_after_it(finish: Callable[..., Any]) -> Callable[..., Any]:
    def rule(_: Topic, __: int, state: PartitionState) -> PartitionState:
        isr = tuple(node for node in state.isr if node in state.replicas)
        return state if isr == state.isr else msgspec.structs.replace(state, isr=isr)

    def in_two_commits(image: Image, controller: int) -> list[Decision]:
        first: list[Decision] = finish(image, controller)
        if image.controller != controller:
            return first
        changes = chunk_changes.changed_chunks(image.topics.values(), rule)
        return first + chunk_changes.commits(image, changes, [is_controller(image, controller)])

    return in_two_commits


def _lead_at_once(complete: Callable[..., Any]) -> Callable[..., Any]:
    def in_the_same_epoch(topic: Topic, state: PartitionState) -> PartitionState:
        after: PartitionState = complete(topic, state)
        if after.leader in after.replicas or not after.isr:
            return after
        return msgspec.structs.replace(after, leader=after.isr[0])

    return in_the_same_epoch


def _whoever_leads(_: Callable[..., Any]) -> Callable[..., Any]:
    def may_complete(topic: Topic, state: PartitionState) -> bool:
        return reassignment.is_moving(state) and reassignment.has_arrived(state)

    return may_complete


def _only_the_living(evacuate: Callable[..., Any]) -> Callable[..., Any]:
    def forget(
        image: Image, controller: int, lost: Collection[int] = (), limit: int = reassignment.EVACUATIONS_MAX
    ) -> Any:
        seen = Image()
        seen.__dict__.update(image.__dict__)
        seen.drains = {node: None for node in image.drains if node in image.nodes}
        return evacuate(seen, controller, lost, limit)

    return forget


def _without_compares(commits: Callable[..., Any]) -> Callable[..., Any]:
    def any_state(*arguments: Any) -> list[Decision]:
        return [
            Decision([c for c in made.compares if not c.key.startswith(keys.PARTITIONS)], made.operations)
            for made in commits(*arguments)
        ]

    return any_state


ALL: Final = (
    Mutant(
        "isr-outside-replicas",
        "a move ends in two commits: those that leave go from the replicas first, then from the ISR",
        reassignment,
        "complete",
        _replicas_first,
        also=(Mutant("two-commits", "and this is the second", reassignment, "finish", _isr_after_it),),
    ),
    Mutant(
        "move-without-epoch",
        "a move that takes the leader away names another one in the same epoch",
        reassignment,
        "complete",
        _lead_at_once,
        also=(Mutant("not-asked", "and waits for nobody", reassignment, "may_complete", _whoever_leads),),
    ),
    Mutant(
        "drain-forgets-dead",
        "a node that is drained and dead keeps its replicas",
        reassignment,
        "evacuate",
        _only_the_living,
    ),
    Mutant(
        "move-over-changes",
        "a move is written over whatever has become of the partition meanwhile",
        reassignment,
        "commits",
        _without_compares,
    ),
)
