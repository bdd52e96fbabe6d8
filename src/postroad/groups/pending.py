"""Offsets that a transaction will commit, if it commits: records like those of committed offsets.

The marker of the transaction turns them into committed offsets, or into nothing, with one batch of records.
Meanwhile they are shown to nobody, and whoever insists on stable offsets waits for them (KIP-447).

A commit outside of the transaction that comes after them wins: the order of the log decides, and compaction
keeps it, so a coordinator that reads the log anew comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from postroad.groups import records
from postroad.groups.records import OffsetValue, PendingValue, Record
from postroad.groups.requests import CommitRequest
from postroad.now import Now

OffsetKey = tuple[str, int]  # topic and partition


class PendingOffsets:
    """Those of one group."""

    __slots__ = ("_group_id", "_overtaken", "_values")

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._values: dict[int, dict[OffsetKey, PendingValue]] = {}  # by producer id
        self._overtaken: set[tuple[int, OffsetKey]] = set()  # a later commit counts instead

    def __len__(self) -> int:
        return len(self._values)

    def commit(self, request: CommitRequest, producer_id: int, epoch: int, now: Now) -> list[Record]:
        return [
            records.encode(
                records.PENDING,
                self._group_id,
                producer_id,
                item.topic,
                item.partition,
                value=PendingValue(item.offset, now.wall_ms, epoch, item.leader_epoch, item.metadata),
            )
            for item in request.offsets
        ]

    def apply(self, producer_id: int, topic: str, partition: int, value: PendingValue | None) -> None:
        offset_key = (topic, partition)
        self._overtaken.discard((producer_id, offset_key))
        if value is not None:
            self._values.setdefault(producer_id, {})[offset_key] = value
        elif producer_id in self._values:
            self._values[producer_id].pop(offset_key, None)
            if not self._values[producer_id]:
                del self._values[producer_id]

    def overtaken(self, topic: str, partition: int) -> None:
        """An offset was committed for this partition."""
        for producer_id, values in self._values.items():
            if (topic, partition) in values:
                self._overtaken.add((producer_id, (topic, partition)))

    def has(self, offset_key: OffsetKey) -> bool:
        return any(offset_key in values for values in self._values.values())

    def complete(self, producer_id: int, epoch: int, commit: bool, strict: bool) -> list[Record]:
        """The transaction has ended: its offsets, if it was committed, and tombstones of what was pending.

        Offsets that are committed have the epoch of the marker, or with `strict` the one below it (KIP-890).
        What an older epoch has left here ended without its commit, and never counts.
        """
        made: list[Record] = []
        last = epoch - strict
        for (topic, partition), value in self._values.get(producer_id, {}).items():
            if value.producer_epoch > last:
                continue
            is_overtaken = (producer_id, (topic, partition)) in self._overtaken
            if commit and value.producer_epoch == last and not is_overtaken:
                committed = OffsetValue(value.offset, value.commit_ms, value.leader_epoch, value.metadata)
                made.append(records.encode(records.OFFSET, self._group_id, topic, partition, value=committed))
            made.append(self._tombstone(producer_id, topic, partition))
        return made

    def delete(self, offset_keys: Iterable[OffsetKey] | None = None) -> list[Record]:
        """Tombstones for those of these partitions, or for all."""
        wanted = None if offset_keys is None else set(offset_keys)
        return [
            self._tombstone(producer_id, *offset_key)
            for producer_id, values in self._values.items()
            for offset_key in values
            if wanted is None or offset_key in wanted
        ]

    def producers(self) -> dict[int, int]:
        """Whose transactions have not ended yet, with their epochs."""
        return {
            producer_id: max(value.producer_epoch for value in values.values())
            for producer_id, values in self._values.items()
        }

    def topics(self) -> set[str]:
        return {topic for values in self._values.values() for topic, _ in values}

    def offset_keys(self) -> list[OffsetKey]:
        return [offset_key for values in self._values.values() for offset_key in values]

    def _tombstone(self, producer_id: int, topic: str, partition: int) -> Record:
        return records.encode(records.PENDING, self._group_id, producer_id, topic, partition, value=None)
