"""The steps that chance takes with `replication_model`, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from postroad.cluster import membership
from postroad.cluster.image import NO_LEADER
from postroad.cluster.partition_rules import Standing
from tests.cluster.replication_model import NODES, TOPICS, Replica, Replication

Pick = Callable[[Sequence[Any]], Any]
Step = Callable[[Replication, Pick], None]


def _node(model: Replication, pick: Pick) -> Replica:
    found: Replica = pick(list(model.nodes.values()))
    return found


def _learn_late(model: Replication, pick: Pick) -> None:
    node = _node(model, pick)
    if node.image.revision < model.store.revision:
        model.learn(node, pick(range(node.image.revision + 1, model.store.revision + 1)))


def _deliver(model: Replication, pick: Pick) -> None:
    if model.pending:
        model.deliver(pick(range(len(model.pending))))


def _all_learn(model: Replication, pick: Pick) -> None:
    for node in model.nodes.values():
        model.learn(node)


def _govern(model: Replication, pick: Pick) -> None:
    """A node that is up claims the controller's key if it is free, and does a controller's work."""
    node = _node(model, pick)
    if node.running != "up":
        return
    model.learn(node)
    if membership.claim_controller(node.image, node.id, node.lease).operations:
        model.claim(node)
        model.deliver(len(model.pending) - 1)
        model.learn(node)
    model.reconcile(node)


def _fetch(model: Replication, pick: Pick) -> None:
    """Everybody fetches, twice: the second fetch tells that the first was written."""
    topic = pick(TOPICS)
    for node in list(model.nodes.values()) * 2:
        model.send_fetch(node, topic)
        model.handle_fetch(node)


def _start(model: Replication, pick: Pick) -> None:
    node = _node(model, pick)
    model.restart(node)
    model.finish_start(node)


def _produce(model: Replication, pick: Pick) -> None:
    """Whoever takes itself for the leader appends, of both topics."""
    for node in model.nodes.values():
        for topic in list(node.leads):
            model.produce(node, topic)


def _change_isr(model: Replication, pick: Pick) -> None:
    leaders = [(node, topic) for node in model.nodes.values() for topic in node.leads]
    if leaders:
        node, topic = pick(leaders)
        model.change_isr(node, topic, pick(node.state(topic).replicas))


def _resign(model: Replication, pick: Pick) -> None:
    node, topic = _node(model, pick), pick(TOPICS)
    model.resign(node, topic, pick((NO_LEADER, *NODES)), pick(list(Standing)))


def _cut_power(model: Replication, pick: Pick) -> None:
    if model.damaged and pick((True, True, True, False)):  # seldom: nothing is promised of `os` then
        return
    model.cut_power(_node(model, pick), lambda length: int(pick(range(length + 1))))


def _end_lease(model: Replication, pick: Pick) -> None:
    model.end_lease(_node(model, pick))


# The second number says how often chance takes it: what moves things on comes before what breaks them.
STEPS: dict[str, tuple[Step, int]] = {
    "learn": (lambda model, pick: model.learn(_node(model, pick)), 6),
    "all learn": (_all_learn, 8),
    "govern": (_govern, 12),
    "learn late": (_learn_late, 2),
    "deliver": (_deliver, 12),
    "produce": (_produce, 8),
    "sync": (lambda model, pick: model.sync(_node(model, pick)), 6),
    "fetch": (_fetch, 12),
    "send fetch": (lambda model, pick: model.send_fetch(_node(model, pick), pick(TOPICS)), 3),
    "handle fetch": (lambda model, pick: model.handle_fetch(_node(model, pick), pick((True, False))), 3),
    "change isr": (_change_isr, 10),
    "resign": (_resign, 1),
    "leave": (lambda model, pick: model.leave_isrs(_node(model, pick)), 1),
    "claim": (lambda model, pick: model.claim(_node(model, pick)), 1),
    "reconcile": (lambda model, pick: model.reconcile(_node(model, pick)), 4),
    "minimum": (lambda model, pick: model.change_minimum(pick((1, 2, 3))), 1),
    "kill": (lambda model, pick: model.kill(_node(model, pick)), 3),
    "cut power": (_cut_power, 2),
    "end lease": (_end_lease, 3),
    "declare dead": (lambda model, pick: model.declare_dead(_node(model, pick), _node(model, pick)), 3),
    "register": (lambda model, pick: model.register(_node(model, pick)), 5),
    "start": (_start, 6),
    "restart": (lambda model, pick: model.restart(_node(model, pick)), 2),
    "finish start": (lambda model, pick: model.finish_start(_node(model, pick)), 4),
}


def run(
    seed: int,
    steps: int = 120,
    model: Replication | None = None,
    kinds: Mapping[str, tuple[Step, int]] = STEPS,
) -> None:
    """Take steps by chance, then heal. Raises Violation, or AssertionError where an image does."""
    random = Random(seed)
    model = model or Replication()
    names, weights = list(kinds), [weight for _, weight in kinds.values()]
    for name in random.choices(names, weights, k=steps):
        kinds[name][0](model, random.choice)
        model.check()
    model.heal()
