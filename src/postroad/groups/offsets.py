"""Committed offsets: how far a group has got in each partition.

Commits of one group may be in flight at once; the log's order is theirs, and the last one that was applied
counts. That is why deleting and expiring must run alone in their group: a tombstone decided while a newer
commit is in flight would be appended after it, and an acknowledged commit would be lost (L14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from postroad.errors import ApiError, OffsetMetadataTooLarge
from postroad.groups import records
from postroad.groups.records import OffsetValue, Record
from postroad.groups.requests import CommitRequest, OffsetToCommit
from postroad.groups.settings import GroupSettings
from postroad.now import Now

OffsetKey = tuple[str, int]  # topic and partition


class Offsets:
    """The offsets of one group."""

    __slots__ = ("_group_id", "_values")

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._values: dict[OffsetKey, OffsetValue] = {}

    def __len__(self) -> int:
        return len(self._values)

    def commit(
        self, request: CommitRequest, settings: GroupSettings, now: Now
    ) -> tuple[list[Record], list[ApiError | None]]:
        """The records, and for each offset of the request None or why it is not among them."""
        committed: list[Record] = []
        errors: list[ApiError | None] = []
        expire_ms = now.wall_ms + request.retention_ms if request.retention_ms >= 0 else -1
        for item in request.offsets:
            if _bytes(item.metadata) > settings.offset_metadata_bytes_max:
                errors.append(OffsetMetadataTooLarge())
                continue
            committed.append(self._record(item, now.wall_ms, expire_ms))
            errors.append(None)
        return committed, errors

    def apply(self, topic: str, partition: int, value: OffsetValue | None) -> None:
        if value is None:
            self._values.pop((topic, partition), None)
        else:
            self._values[topic, partition] = value

    def get(self, topic: str, partition: int) -> OffsetValue | None:
        return self._values.get((topic, partition))

    def offset_keys(self) -> list[OffsetKey]:
        return sorted(self._values)

    def topics(self) -> set[str]:
        return {topic for topic, _ in self._values}

    def delete(self, offset_keys: Iterable[OffsetKey]) -> list[Record]:
        """Tombstones for those that are there."""
        return [
            records.encode(records.OFFSET, self._group_id, topic, partition, value=None)
            for topic, partition in offset_keys
            if (topic, partition) in self._values
        ]

    def expired(
        self, settings: GroupSettings, wall_ms: int, unused_since_ms: Callable[[str, OffsetValue], int | None]
    ) -> list[OffsetKey]:
        """Those whose time is over. `unused_since_ms` says since when nobody reads a topic; None: somebody
        does."""
        return [
            offset_key
            for offset_key, value in self._values.items()
            if _is_over(value, unused_since_ms(offset_key[0], value), settings, wall_ms)
        ]

    def _record(self, item: OffsetToCommit, commit_ms: int, expire_ms: int) -> Record:
        value = OffsetValue(item.offset, commit_ms, item.leader_epoch, item.metadata, expire_ms)
        return records.encode(records.OFFSET, self._group_id, item.topic, item.partition, value=value)


def _is_over(value: OffsetValue, since_ms: int | None, settings: GroupSettings, wall_ms: int) -> bool:
    if since_ms is None:
        return False
    if value.expire_ms >= 0:
        return wall_ms >= value.expire_ms
    return wall_ms - since_ms >= settings.offsets_retention_ms


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
