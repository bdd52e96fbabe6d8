"""M1: a node that serves and reaches the store is registered, and knows what the store holds, within a bound.
M2: no two processes hold one node id.

Both are looked at several times each virtual second, from the store's truth and from inside the nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from postroad.broker.node import Node
from postroad.cluster import keys
from postroad.cluster.store import NO_LEASE
from simulator.service import Service
from simulator.store import StoreServer
from simulator.violation import Violation
from simulator.world import World

LOOK_S: Final = 0.25
SLACK_S: Final = 1.0  # for the requests themselves, and for the time between two looks
FOLLOW_S: Final = 5.0  # a watch that broke is begun anew well within this time


class Registrations:
    """`look` says what is wrong at this moment; it must be called every `LOOK_S` seconds."""

    def __init__(
        self,
        world: World,
        store: StoreServer,
        services: Sequence[Service],
        others: Callable[[], Sequence[Node]],
    ) -> None:
        """`others` answers nodes that live in processes beside the services."""
        self._world = world
        self._store = store
        self._services = services
        self._others = others
        self._since: dict[int, float] = {}  # by node id: all is well between it and the store
        self._lost: dict[int, str] = {}  # by node id: the incarnation that serves but is not registered
        self._revisions: deque[tuple[float, int]] = deque()  # of the store; the first is older than FOLLOW_S

    def look(self) -> Iterator[Violation]:
        now = self._world.now
        self._revisions.append((now, self._store.revision))
        while len(self._revisions) > 1 and self._revisions[1][0] <= now - FOLLOW_S:
            self._revisions.popleft()
        for service in self._services:
            yield from self._look_at(service)
        yield from self._two_of_one_id()

    # --- one node

    def _look_at(self, service: Service) -> Iterator[Violation]:
        node, number = service.node, service.number
        if node is None or not service.serves:
            self._since.pop(number, None)
            self._lost.pop(number, None)
            return
        mine, held = node.registration.me.incarnation, self.holder(number)
        self._note_loss(number, mine, held)
        if not self._reaches_store(service) or held not in (None, mine):
            self._since.pop(number, None)
            return
        well_s = self._world.now - self._since.setdefault(number, self._world.now)
        if held is None and well_s > self._bound_s(node):
            yield self._violation("M1", f"node {number} is not registered after {well_s:.1f} s")
        if well_s > FOLLOW_S and node.image.revision < self._revisions[0][1]:
            yield self._violation("M1", f"node {number} does not follow the store")

    def _reaches_store(self, service: Service) -> bool:
        """Nothing keeps the node from being registered."""
        machine, store, faults = service.machine, self._store, self._store.faults
        return (
            machine.process is not None
            and machine.process.paused_until <= self._world.now
            and store.receives_from(machine.host)
            and store.reaches(machine.host)
            and not (faults.request_lost or faults.request_late or faults.answer_lost or faults.watch_lag_s)
            and machine.drive.slowness == 1.0
        )

    def _bound_s(self, node: Node) -> float:
        """A renewal may have been lost just before all was well; the next one follows."""
        return node.settings.cluster.lease_length_ms / 1000 / 3 + self._store.faults.patience_s + SLACK_S

    def _note_loss(self, number: int, mine: str, held: str | None) -> None:
        if held == mine:
            if self._lost.pop(number, None) == mine:
                self._world.sometimes("membership: a lease was lost and regained")
        else:
            self._lost[number] = mine
            if held is not None:
                self._world.sometimes("membership: another process had the id of a node that was away")

    # --- all of them

    def holder(self, number: int) -> str | None:
        """The incarnation that the store names for a node id."""
        entry = self._store.get(keys.node_key(number))
        return None if entry is None else keys.decode(entry.key, entry.value, keys.NodeValue).incarnation

    def _two_of_one_id(self) -> Iterator[Violation]:
        holding: dict[int, str] = {}
        for node in [*(service.node for service in self._services), *self._others()]:
            if node is None or not self._holds(node):
                continue
            me = node.registration.me
            if me.id in holding:
                yield self._violation("M2", f"{holding[me.id]} and {me.host} are both node {me.id}")
            holding[me.id] = me.host

    def _holds(self, node: Node) -> bool:
        """The process takes itself for registered, and its lease lives."""
        registration = getattr(node, "registration", None)  # it has none before it has opened the store
        return (
            registration is not None
            and registration.lease != NO_LEASE
            and self._store.is_alive(registration.lease)
        )

    def _violation(self, invariant: str, text: str) -> Violation:
        return Violation(invariant, text, self._world.now)
