"""Decisions about ledgers: which partitions have one beside their messages."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from postroad.cluster import keys
from postroad.cluster.decision import Decision
from postroad.cluster.image import Image
from postroad.cluster.store import Compare, Put


def add_ledgers(image: Image, topic_id: bytes, indexes: Collection[int]) -> Decision:
    """These partitions have a ledger from now on, on each of their replicas, for as long as they live.

    Nothing is decided where all have one, and where the topic is gone.
    """
    topic = image.topics_by_id.get(topic_id)
    puts = []
    for number, states in () if topic is None else keys.chunks(topic.partitions):
        first = number * keys.PARTITIONS_PER_CHUNK
        after = tuple(
            msgspec.structs.replace(state, ledger=True) if index in indexes else state
            for index, state in enumerate(states, first)
        )
        if topic is not None and after != states:
            puts.append(Put(keys.chunk_key(topic.id_text, number), keys.encode(keys.ChunkValue(after))))
    return Decision([Compare(put.key, image.key_revision(put.key)) for put in puts], puts)
