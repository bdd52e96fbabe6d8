"""What the coordination store ever said of partitions: who led, who was in sync, and what may be lost.

Acknowledged messages lie on all replicas in sync. A power cut may take what was not synced from one of them;
it leaves the in-sync replicas when it starts, and copies what it lacks. So something is lost only when the
power fails on *all* that may be elected before one of them has come back into sync (`losses`). They may have
become few meanwhile: of two in sync one loses power, and the other one dies before anybody knows of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import Event
from simulator.cluster_events import ClusterEvents, is_later
from simulator.store import StoreServer

Where = tuple[bytes, int]
"""A topic's id and a partition's index."""


class Contradiction(Exception):
    """What the store says can't be: nothing that comes after it says anything."""


class Stated(NamedTuple):
    """A state of a partition, from this moment on."""

    at: float
    state: PartitionState


class ClusterHistory:
    def __init__(self, store: StoreServer) -> None:
        self.listeners: list[
            Callable[[Sequence[Topic]], None]
        ] = []  # hear of topics whose partitions changed
        self.world = store.world
        self.truth = Image()
        self.states: dict[Where, list[Stated]] = {}
        self._revisions: list[int] = []  # in order, with the times below
        self._committed: list[float] = []
        self._names: dict[Where, str] = {}
        self._weak: dict[Where, dict[int, float]] = {}  # when power failed on nodes that were in sync before
        self._losses: dict[str, list[float]] = {}  # by the topic's name
        self._lost: dict[Where, None] = {}
        self._ledger_loads: dict[tuple[str, int], list[float]] = {}
        self.events = ClusterEvents(self.world, self.truth)
        store.observers.append(self._follow)
        store.refusals.append(self.events.refused)

    def now(self, topic_id: bytes, index: int) -> PartitionState | None:
        """What the store says at this moment."""
        topic = self.truth.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions[index]

    def known_until(self, revision: int) -> float:
        """Whoever has read the store up to this revision knows of all that was committed by this moment."""
        after = bisect_right(self._revisions, revision)
        return self._committed[after] if after < len(self._committed) else self.world.now

    def replaced_at(self, where: Where, epoch: int) -> float:
        """When a later epoch than this one began; inf if none has."""
        stated = self.states.get(where, ())
        return next((each.at for each in stated if each.state.leader_epoch > epoch), inf)

    def is_led_anew(self, where: Where, since: float) -> bool:
        """Whether the partition has a later epoch than at that moment."""
        stated = self.states.get(where, [])
        before = [each.state.leader_epoch for each in stated if each.at <= since]
        return bool(before) and stated[-1].state.leader_epoch > before[-1]

    def ledger_loaded(self, topic: str, index: int) -> None:
        """A node begins to serve subscriptions of the partition: all locks are forgotten."""
        self._ledger_loads.setdefault((topic, index), []).append(self.world.now)
        self.events.loaded("a ledger", topic, index)

    def locked_until(self, topic: str, index: int, since: float) -> float:
        """When the partition's ledger was loaded for the first time after that moment."""
        return next((at for at in self._ledger_loads.get((topic, index), ()) if at > since), inf)

    def losses(self, topics: Sequence[str] = ()) -> list[float]:
        """When messages of the topics (of any, if none is named) that were not synced may have been lost."""
        found = [self._losses.get(name, []) for name in topics or self._losses]
        return sorted(moment for moments in found for moment in moments)

    def has_lost(self, topic_id: bytes, index: int) -> bool:
        """Whether the partition may ever have lost something, if it does not sync first."""
        return (topic_id, index) in self._lost

    def lost_power(self, node: int) -> None:
        for topic in self.truth.topics.values():
            for index, state in enumerate(topic.partitions):
                if node not in state.replicas:
                    continue
                self._weak.setdefault((topic.id, index), {})[node] = self.world.now
                self._note_loss((topic.id, index), topic.name, state)

    # --- helpers

    def _note_loss(self, where: Where, name: str, state: PartitionState) -> None:
        """See whether nobody is left who may be elected and has what was acknowledged before a power cut."""
        weak, electable = self._weak.get(where, {}), (*state.isr, *state.elr)
        if not all(member in weak for member in electable):
            return
        self._lost[where] = None
        moment, losses = max(weak[member] for member in electable), self._losses.setdefault(name, [])
        if moment not in losses:
            self.world.sometimes("cluster: the power failed on all that were in sync")
            losses.append(moment)

    def _follow(self, revision: int, events: Sequence[Event]) -> None:
        self._revisions.append(revision)
        self._committed.append(self.world.now)
        try:
            changes = self.truth.apply(events, revision)
        except AssertionError as error:
            raise Contradiction(*error.args) from error
        for topic in changes.created:
            self._state_all(topic, range(len(topic.partitions)))
        for before, after in changes.altered:
            self._state_all(after, range(len(before.partitions), len(after.partitions)))
        for change in changes.partitions:
            self._state(change.topic, change.index, change.after)
        self.events.look(changes.partitions)
        if changes.partitions:
            for listen in self.listeners:
                listen([change.after for change in changes.altered])

    def _state_all(self, topic: Topic, indexes: range) -> None:
        for index in indexes:
            self._state(topic, index, topic.partitions[index])

    def _state(self, topic: Topic, index: int, state: PartitionState) -> None:
        where = topic.id, index
        self._names[where] = topic.name
        stated = self.states.setdefault(where, [])
        joined = state.isr if not stated else [node for node in state.isr if node not in stated[-1].state.isr]
        is_truth = bool(stated) and state.isr == (state.leader,) and is_later(state, stated[-1].state)
        for node in joined:
            self._weak.get(where, {}).pop(node, None)
        self._note_loss(where, topic.name, state)
        if is_truth:  # whatever the last one has is what there is
            self._weak.get(where, {}).pop(state.leader, None)
        stated.append(Stated(self.world.now, state))
