"""The partitions that this node leads, found by their topic's name or id."""

from __future__ import annotations

from collections.abc import Iterator

from postroad.broker.partition import Partition


class Partitions:
    def __init__(self) -> None:
        self._topics: dict[str | bytes, list[Partition]] = {}  # under the name and under the id

    def find(self, topic: str | bytes, index: int) -> Partition | None:
        found = self._topics.get(topic)
        if found is None or not 0 <= index < len(found):
            return None
        return found[index]

    def of(self, topic: str | bytes) -> list[Partition]:
        return self._topics.get(topic, [])

    def add(self, name: str, topic_id: bytes, partitions: list[Partition]) -> None:
        """New partitions of a topic, following those that are there."""
        there = self._topics.setdefault(name, [])
        self._topics[topic_id] = there
        assert [p.index for p in partitions] == [len(there) + n for n in range(len(partitions))]
        there.extend(partitions)

    def remove(self, name: str, topic_id: bytes) -> list[Partition]:
        """They are found no more; the caller closes them."""
        self._topics.pop(topic_id, None)
        return self._topics.pop(name, [])

    def __iter__(self) -> Iterator[Partition]:
        for key, partitions in self._topics.items():
            if isinstance(key, str):
                yield from partitions
