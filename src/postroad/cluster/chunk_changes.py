"""From changed partition states to commits: a hundred states a key, many keys a commit, within its limits.

A chunk is written on condition that nobody else has written it since the image read it. Where the new ELR is
not empty, the topic's key must not have changed either: it holds min.insync.replicas, and an ELR that was
right for the old minimum would let a replica lead that lacks what was committed under a lower one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import is_not
from typing import Final, NamedTuple, TypeAlias

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image, Topic
from postroad.cluster.keys import PartitionState
from postroad.cluster.store import OPERATIONS_MAX, Compare, Put

# The store's limit holds for compares too. A few stay free for a caller's own, such as a fence.
COMPARES_MAX: Final = OPERATIONS_MAX - 4
# etcd takes 1.5 MiB in a request, keys and all, and its JSON gateway is sent values in base64.
COMMIT_BYTES_MAX: Final = 1024 * 1024

# The state that the topic's partition of this index should have; the same object if it should stay as it is.
StateRule: TypeAlias = Callable[[Topic, int, PartitionState], PartitionState]

# Of a state before and after: the nodes whose entries the change was based on.
BasedOn: TypeAlias = Callable[[PartitionState, PartitionState], Iterable[int]]


class ChunkChange(NamedTuple):
    """The new states of one chunk, and the nodes whose entries must not have changed meanwhile."""

    topic: Topic
    number: int
    states: tuple[PartitionState, ...]
    nodes: frozenset[int] = frozenset()


def on_nobody(before: PartitionState, after: PartitionState) -> Iterable[int]:
    """The change is right whatever has become of other nodes."""
    return ()


def changed_chunks(
    topics: Iterable[Topic], rule: StateRule, based_on: BasedOn = on_nobody
) -> Iterator[ChunkChange]:
    """The chunks of these topics in which the rule changes a state."""
    for topic in topics:
        states = topic.partitions
        ruled = tuple([rule(topic, index, state) for index, state in enumerate(states)])
        if any(map(is_not, states, ruled)):  # cut into chunks only then: most of ten thousand topics stay
            for before, after in zip(keys.chunks(states), keys.chunks(ruled), strict=True):
                yield from _changed_chunk(topic, before, after, based_on)


def chunks_with(
    image: Image,
    partitions: Iterable[tuple[bytes, int]],
    rule: StateRule,
    based_on: BasedOn = on_nobody,
) -> Iterator[ChunkChange]:
    """The same for chunks that hold these partitions (topic id, index), as far as they are still there."""
    wanted = dict.fromkeys((topic_id, index // keys.PARTITIONS_PER_CHUNK) for topic_id, index in partitions)
    for topic_id, number in wanted:
        topic = image.topics_by_id.get(topic_id)
        first = number * keys.PARTITIONS_PER_CHUNK
        if topic is not None:
            before = keys.Chunk(number, topic.partitions[first : first + keys.PARTITIONS_PER_CHUNK])
            ruled = tuple(rule(topic, index, state) for index, state in enumerate(before.states, first))
            yield from _changed_chunk(topic, before, keys.Chunk(number, ruled), based_on)


def _changed_chunk(
    topic: Topic, before: keys.Chunk, after: keys.Chunk, based_on: BasedOn
) -> Iterator[ChunkChange]:
    states = zip(before.states, after.states, strict=True)
    pairs = [(old, new) for old, new in states if old is not new]
    if any(old != new for old, new in pairs):
        nodes = frozenset(node for pair in pairs for node in based_on(*pair))
        yield ChunkChange(topic, before.number, after.states, nodes)


def commits(
    image: Image, changes: Iterable[ChunkChange], conditions: Sequence[Compare] = ()
) -> list[Decision]:
    """As few decisions as the store's limits allow, each with these conditions as well."""
    made: list[Decision] = []
    compares: dict[str, int] = _fresh(conditions)
    puts: list[Put] = []
    size = 0
    for change in changes:
        put, needed = _written(change), _compared(image, change)
        full = len(compares.keys() | needed.keys()) > COMPARES_MAX or size + len(put.value) > COMMIT_BYTES_MAX
        if puts and full:
            made.append(_decision(compares, puts))
            compares, puts, size = _fresh(conditions), [], 0
        compares |= needed
        puts.append(put)
        size += len(put.value)
    if puts:
        made.append(_decision(compares, puts))
    return made


def _fresh(conditions: Sequence[Compare]) -> dict[str, int]:
    return {compare.key: compare.revision for compare in conditions}


def _written(change: ChunkChange) -> Put:
    key = keys.chunk_key(change.topic.id_text, change.number)
    return Put(key, keys.encode(keys.ChunkValue(change.states)))


def _compared(image: Image, change: ChunkChange) -> dict[str, int]:
    needed = [keys.chunk_key(change.topic.id_text, change.number)]
    needed += [keys.node_key(node) for node in sorted(change.nodes)]
    if any(state.elr for state in change.states):
        needed.append(keys.topic_key(change.topic.name))
    return {key: image.key_revision(key) for key in needed}


def _decision(compares: dict[str, int], puts: list[Put]) -> Decision:
    return Decision([Compare(key, revision) for key, revision in compares.items()], puts)
