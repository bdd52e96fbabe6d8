"""M3: what a node knows is what the store held at that revision; at rest the store names every node once, as
the process that lives, and all nodes know all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from postroad.broker.node import Node
from postroad.cluster.image import Image, NodeEntry
from simulator.service import Service
from simulator.store import StoreServer
from simulator.violation import Violation

TOLD: Final = (
    "revision",
    "cluster_id",
    "nodes",
    "topics",
    "groups",
    "existed",
    "deleted",
    "next_producer_id",
    "receipt_key",
)


class Images:
    def __init__(self, store: StoreServer, services: Sequence[Service]) -> None:
        self._store = store
        self._services = services
        self._truth = Image()
        self._compared: dict[int, int] = {}  # by node id: the revision at which its image was found right

    def look(self) -> Iterator[Violation]:
        """Compare the nodes that have come as far as the store."""
        for service in self._services:
            node, revision = service.node, self._store.revision
            if node is None or not service.serves or node.image.revision != revision:
                self._compared.pop(service.number, None)
            elif self._compared.get(service.number) != revision:
                self._compared[service.number] = revision
                yield from self._compare(service.number, node)

    def check_at_rest(self) -> Iterator[Violation]:
        expected: dict[int, NodeEntry] = {}
        for service in self._services:
            if service.node is None or not service.serves:
                yield self._violation(f"node {service.number} does not serve")
            else:
                expected[service.number] = service.node.registration.me
                yield from self._compare(service.number, service.node)
        truth = self._store_holds()
        if truth.nodes != expected:
            yield self._violation(f"the store names {truth.nodes}; there are {expected}")
        for topic in truth.deleted.values():
            yield self._violation(f"topic {topic.name} is deleted, but not from the disks of {topic.nodes}")

    def _compare(self, number: int, node: Node) -> Iterator[Violation]:
        truth = self._store_holds()
        for name in TOLD:
            known, held = getattr(node.image, name), getattr(truth, name)
            if known != held:
                yield self._violation(
                    f"node {number}: its {name} differ from the store's: {_shown(known, held)}"
                )

    def _store_holds(self) -> Image:
        if self._truth.revision != self._store.revision:
            self._truth = Image()  # not the last one brought up to date: that is what is tested here
            self._truth.catch_up(self._store.list(""))
        return self._truth

    def _violation(self, text: str) -> Violation:
        return Violation("M3", text, self._store.world.now)


def _shown(known: Any, held: Any) -> str:
    """Two values that differ; of large dictionaries only the keys."""
    if not isinstance(held, dict):
        return f"{known!r}, not {held!r}"
    return ", ".join(str(key) for key in {**known, **held} if known.get(key) != held.get(key))
