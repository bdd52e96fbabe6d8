"""Images of replicated partitions, made from the states that a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.ids import id_text
from postroad.cluster.image import Image
from postroad.cluster.keys import SERVING, PartitionState
from postroad.cluster.store import Event
from tests.cluster.applied import commit, topic_id

TOPIC = topic_id(1)
THREE = {1: SERVING, 2: SERVING, 3: SERVING}


def state(
    leader: int,
    isr: Sequence[int],
    elr: Sequence[int] = (),
    *,
    epoch: int = 5,
    replicas: Sequence[int] = (1, 2, 3),
    adding: Sequence[int] = (),
) -> PartitionState:
    return PartitionState(leader, epoch, tuple(replicas), tuple(isr), tuple(elr), tuple(adding))


def image_of(
    *states: PartitionState,
    nodes: Mapping[int, str] = THREE,
    controller: int | None = 1,
    config: Mapping[str, str] | None = None,
    name: str = "orders",
    racks: Mapping[int, str] | None = None,
) -> Image:
    """One topic with these states, on nodes that are as told; others are dead."""
    image = Image()
    topic = keys.TopicValue(name, id_text(TOPIC), len(states), dict(config or {}))
    events = [Event(keys.topic_key(name), keys.encode(topic), 1)] if states else []
    for number, chunk in keys.chunks(states):
        events.append(Event(keys.chunk_key(topic.id, number), keys.encode(keys.ChunkValue(chunk)), 1))
    for node, said in nodes.items():
        rack = (racks or {}).get(node, "")
        value = keys.NodeValue(f"host{node}", 9092, f"run{node}", "", said, rack, keys.LEVEL)
        events.append(Event(keys.node_key(node), keys.encode(value), 1))
    if controller is not None:
        events.append(Event(keys.CONTROLLER, keys.encode(keys.ControllerValue(controller)), 1))
    image.apply(events)
    image.check()
    return image


def commit_all(image: Image, decisions: Iterable[Decision]) -> None:
    for decision in decisions:
        commit(image, decision)


def states_of(image: Image, name: str = "orders") -> list[PartitionState]:
    return list(image.topics[name].partitions)


def only_state(image: Image, name: str = "orders") -> PartitionState:
    (found,) = image.topics[name].partitions
    return found
