"""Decisions about topics: create, widen, delete.

A deletion is durable with its commit, and the topic is gone for every client at once. The directories
follow: the same commit writes `deleted/<id>` with the nodes that hold some, and each node takes itself
out when its own are removed. A crash at any point leaves either the topic or that key, so a node never
has to guess whether a directory may go: one whose topic is neither there nor noted as deleted is kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.cluster import keys, topic_config
from postroad.cluster.decision import Decision
from postroad.cluster.ids import id_text
from postroad.cluster.image import DeletedTopic, Image, Topic
from postroad.cluster.internal_topics import CLIENTS_WRITE, INTERNAL_TOPICS, refuse_internal
from postroad.cluster.keys import PartitionState
from postroad.cluster.placement import place
from postroad.cluster.store import ABSENT, Compare, Delete, Put
from postroad.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicAlreadyExists,
)

# A commit must fit into one request of the store: 100 chunks of some 6 kB, in 128 operations.
PARTITIONS_PER_TOPIC_MAX: Final = 10_000
# Each partition costs its nodes open files and some kilobytes; beyond this a restart takes minutes.
PARTITIONS_MAX: Final = 100_000
DEFAULT: Final = -1  # in a request: as the node's settings say

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")

Assignments = Mapping[int, Sequence[int]]  # the replicas of each partition


def create_topic(
    image: Image,
    name: str,
    topic_id: bytes,
    *,
    nodes: Sequence[int],
    down: Sequence[int] = (),
    partitions: int = DEFAULT,
    replicas: int = DEFAULT,
    assignments: Assignments | None = None,
    config: Mapping[str, str | None] | None = None,
    default_partitions: int = 1,
    default_replicas: int = 1,
    default_min_insync: int = 1,
    internal: bool = False,
) -> Decision:
    """A topic under a fresh id (`ids.make_id`), spread over `nodes` unless assignments are given.

    Where a partition has more replicas than there are `nodes`, which serve, the others lie on nodes that are
    `down` and join when they return.
    A topic of several replicas keeps how many must be in sync among its configs, as the request, the node
    (`default_min_insync`, if above 1) or the rule says: nodes with other settings must agree on it.
    `internal`: it is a node that asks, for one of its own topics. Raises what is wrong with the request.
    """
    assert topic_id not in image.topics_by_id
    assert topic_id not in image.deleted
    check_name(name)
    _check_is_new(image, name, internal)
    if name in CLIENTS_WRITE:
        _check_as_declared(name, partitions, config, assignments)
        config, default_partitions = INTERNAL_TOPICS[name], 1
    texts = topic_config.validate(config or {})
    if assignments is None:
        count = default_partitions if partitions == DEFAULT else partitions
        factor = default_replicas if replicas == DEFAULT else replicas
        _check_count(image, count, count)
        start = int.from_bytes(topic_id[-4:], "big")
        placed = _place(image, nodes, down, range(count), factor, start)
    elif partitions != DEFAULT or replicas != DEFAULT:
        raise InvalidRequest("Give either a replica assignment, or partitions and replication factor.")
    else:
        placed = _placed(assignments, 0, nodes, down)
        _check_count(image, len(placed), len(placed))
    texts = topic_config.with_min_insync(texts, len(placed[0]), default_min_insync)
    return _with_homes(image, _creation(name, topic_id, placed, texts, nodes), placed, down)


def add_partitions(
    image: Image,
    name: str,
    count: int,
    *,
    nodes: Sequence[int],
    down: Sequence[int] = (),
    assignments: Sequence[Sequence[int]] | None = None,
) -> Decision:
    """The topic grows to `count` partitions; `assignments` are those of the new ones, `nodes` and `down` as
    for a new topic."""
    topic = image.topic(name)
    refuse_internal(name, "its partitions are fixed")
    old = len(topic.partitions)
    if count <= old:
        raise InvalidPartitions(f"{name!r} has {old} partitions already; the number can only grow.")
    _check_count(image, count, count - old)
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        start = int.from_bytes(topic.id[-4:], "big")
        placed = _place(image, nodes, down, range(old, count), factor, start)
    else:
        placed = _placed(dict(enumerate(assignments, old)), old, nodes, down)
        if len(placed) != count - old or any(len(replicas) != factor for replicas in placed):
            raise InvalidReplicaAssignment(
                f"{count - old} new partitions of {factor} replicas each must be assigned."
            )
    return _with_homes(image, _growth(image, topic, placed, nodes), placed, down)


def delete_topic(image: Image, name: str, *, internal: bool = False) -> Decision:
    """The topic is gone once this is committed; its nodes then remove their directories.

    `internal`: it is a node that asks, for a topic of its own that it has no use for any more.
    """
    topic = image.topic(name)
    if not internal:
        refuse_internal(name, "it can't be deleted")
    holders = sorted({node for state in topic.partitions for node in state.replicas})
    note = keys.encode(keys.DeletedValue(name, tuple(holders)))
    key, deleted = keys.topic_key(name), keys.deleted_key(topic.id_text)
    chunks = [Delete(keys.chunk_key(topic.id_text, chunk.number)) for chunk in keys.chunks(topic.partitions)]
    return Decision([Compare(key, image.key_revision(key))], [Delete(key), *chunks, Put(deleted, note)])


def finish_deletion(image: Image, topic: DeletedTopic, node: int) -> Decision:
    """The node has removed all that it held of the topic; the last node to do so ends the note too."""
    key = keys.deleted_key(id_text(topic.id))
    left = tuple(holder for holder in topic.nodes if holder != node)
    operation = Put(key, keys.encode(keys.DeletedValue(topic.name, left))) if left else Delete(key)
    return Decision([Compare(key, image.key_revision(key))], [operation])


# --- checks ------------------------------------------------------------------------------------


def name_error(name: str | None) -> InvalidTopic | None:
    """What is wrong with a topic's name, if anything is."""
    try:
        check_name(name or "")
    except InvalidTopic as error:
        return error
    return None


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or name in (".", ".."):
        shown = name if len(name) <= 260 else name[:260] + "…"
        raise InvalidTopic(f"{shown!r} is not a topic name. {InvalidTopic.summary}")


def _check_is_new(image: Image, name: str, internal: bool) -> None:
    if name in INTERNAL_TOPICS and not internal and name not in CLIENTS_WRITE:
        raise InvalidTopic(f"{name!r} is kept by the nodes themselves; choose another name.")
    if name in image.topics:
        raise TopicAlreadyExists(f"Topic {name!r} exists.")
    if image.key_revision(keys.topic_key(name)) != ABSENT:
        raise InvalidTopic(
            f"{name!r} differs only in '.' and '_' from a topic that exists; choose another name."
        )


def _check_as_declared(
    name: str, partitions: int, config: Mapping[str, str | None] | None, assignments: Assignments | None
) -> None:
    if partitions not in (DEFAULT, 1) or config or assignments is not None:
        raise InvalidRequest(f"{name!r} has one partition, and configs that are fixed: leave them out.")


def _check_count(image: Image, count: int, new: int) -> None:
    if not 1 <= count <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidPartitions(f"A topic has 1 to {PARTITIONS_PER_TOPIC_MAX} partitions, not {count}.")
    if image.partition_count + new > PARTITIONS_MAX:
        raise PolicyViolation(
            f"The cluster may have {PARTITIONS_MAX} partitions in all; delete topics first."
        )


def _racks(image: Image) -> dict[int, str]:
    return {node: entry.rack for node, entry in image.nodes.items()}


def _place(
    image: Image, nodes: Sequence[int], down: Sequence[int], partitions: range, factor: int, start: int
) -> list[tuple[int, ...]]:
    """On nodes that serve, as far as there are enough of them.

    Otherwise each partition lies on all of these and on some that are down, in an order as if all served: one
    that returns has its part of the preferred leaders.
    """
    if not 1 <= factor <= len(nodes) + len(down):
        raise InvalidReplicationFactor(
            f"The replication factor must be from 1 to the {len(nodes) + len(down)} nodes that there are, "
            f"not {factor}."
        )
    if not nodes:
        raise InvalidReplicationFactor("No node is running that could lead the partitions.")
    if factor <= len(nodes):
        return place(nodes, partitions, factor, start, _racks(image))
    everywhere = place([*nodes, *down], partitions, len(nodes) + len(down), start, _racks(image))
    return [_with_all(order, nodes, factor) for order in everywhere]


def _with_all(order: Sequence[int], nodes: Sequence[int], factor: int) -> tuple[int, ...]:
    """A partition on all of the nodes and on the first of the others, in this order."""
    others = [node for node in order if node not in nodes][: factor - len(nodes)]
    return tuple(node for node in order if node in nodes or node in others)


def _with_homes(
    image: Image, decision: Decision, placed: Sequence[tuple[int, ...]], down: Sequence[int]
) -> Decision:
    """The decision, if no node that is down and gets a replica has been removed meanwhile."""
    used = sorted({node for replicas in placed for node in replicas} & set(down))
    homes = [Compare(key, image.key_revision(key)) for key in map(keys.directory_key, used)]
    return Decision([*decision.compares, *homes], decision.operations)


def _placed(
    assignments: Assignments, first: int, nodes: Sequence[int], down: Sequence[int]
) -> list[tuple[int, ...]]:
    """The assignment as a list, if it is one: partitions without a gap, replicas that differ and exist."""
    if not assignments or sorted(assignments) != list(range(first, first + len(assignments))):
        raise InvalidReplicaAssignment(f"Partitions must be numbered from {first} on, without a gap.")
    placed = [tuple(assignments[partition]) for partition in sorted(assignments)]
    for replicas in placed:
        if not replicas or len(set(replicas)) != len(replicas) or len(replicas) != len(placed[0]):
            raise InvalidReplicaAssignment(
                "Each partition needs the same number of replicas, each on another node."
            )
        if not set(replicas) <= {*nodes, *down}:
            missing = sorted(set(replicas) - {*nodes, *down})
            raise InvalidReplicaAssignment(f"Unknown nodes: {missing}; running are {sorted(nodes)}.")
        if not set(replicas) & set(nodes):
            raise InvalidReplicaAssignment(f"None of the nodes {sorted(replicas)} is running.")
    return placed


# --- what is written ---------------------------------------------------------------------------


def _creation(
    name: str,
    topic_id: bytes,
    placed: Sequence[tuple[int, ...]],
    config: dict[str, str],
    nodes: Sequence[int],
) -> Decision:
    key = keys.topic_key(name)
    topic = keys.TopicValue(name, id_text(topic_id), len(placed), config)
    chunks = [
        Put(keys.chunk_key(topic.id, number), keys.encode(keys.ChunkValue(states)))
        for number, states in keys.chunks(_new_states(placed, nodes))
    ]
    return Decision([Compare(key, ABSENT)], [Put(key, keys.encode(topic)), *chunks])


def _growth(image: Image, topic: Topic, placed: Sequence[tuple[int, ...]], nodes: Sequence[int]) -> Decision:
    key, states = keys.topic_key(topic.name), topic.partitions + _new_states(placed, nodes)
    value = keys.TopicValue(topic.name, topic.id_text, len(states), topic.config)
    changed = [Put(key, keys.encode(value))]
    for number, chunk in keys.chunks(states):
        if (number + 1) * keys.PARTITIONS_PER_CHUNK > len(topic.partitions):
            changed.append(Put(keys.chunk_key(topic.id_text, number), keys.encode(keys.ChunkValue(chunk))))
    return Decision([Compare(put.key, image.key_revision(put.key)) for put in changed], changed)


def _new_states(placed: Sequence[tuple[int, ...]], nodes: Sequence[int]) -> tuple[PartitionState, ...]:
    """Those that serve are in sync, and the first of them leads."""
    in_sync = [tuple(node for node in replicas if node in nodes) for replicas in placed]
    return tuple(PartitionState(isr[0], 0, all_, isr) for all_, isr in zip(placed, in_sync, strict=True))
