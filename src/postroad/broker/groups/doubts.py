"""Groups whose records in `__consumer_offsets` were damaged: what is assumed of them, and until when.

The safe reading costs duplicates, never messages:

- A committed offset that is lost is the one committed before it. Where the damaged batch seems to have held
  the only one, it is the partition's first offset, or `auto.offset.reset` of the consumer would decide,
  and `latest` passes messages over.
- The members of a KIP-848 group join anew. A classic group is the generation before, which its members
  leave by themselves when they are told so.
- A group or an offset whose deletion is lost is back.

This is written down before anybody is served, and noted as `["damage", offset]`, so that the next start does
not do it again. What a group has committed is in doubt until it commits again, or the node is restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from postroad.broker.doubts import DamagedRange
from postroad.groups import records
from postroad.groups.coordinator import Groups
from postroad.groups.records import OffsetValue, Record
from postroad.now import Now

StartOf = Callable[[str, int], int | None]
"""The first offset of a topic's partition; None if there is no such partition."""

OffsetKey = tuple[str, int]
"""A topic and a partition of it."""

_KIND: Final = "damage"
_encode = msgspec.json.Encoder().encode


class GroupDoubts:
    def __init__(self, groups: Groups) -> None:
        self.offset_keys: dict[str, set[OffsetKey]] = {}  # by group: committed offsets that are in doubt
        self._groups = groups
        self._damaged: list[DamagedRange] = []
        self._noted: set[bytes] = set()  # damage that was dealt with at an earlier start

    @property
    def batches(self) -> int:
        """How many damaged stretches were passed over."""
        return len(self._damaged)

    def damaged(self, damaged: DamagedRange) -> None:
        """`repairs` sees to it when all the rest is known."""
        self._damaged.append(damaged)

    def is_note(self, key: bytes) -> bool:
        """Whether the record is one of ours; it is remembered."""
        if not key.startswith(b'["damage"'):
            return False
        self._noted.add(key)
        return True

    def repairs(self, start_of: StartOf, now: Now) -> list[Record]:
        """All records are applied: what to write to make the state safe. `offset_keys` is known then."""
        fresh = [damaged for damaged in self._damaged if _note(damaged) not in self._noted]
        if not fresh:
            return []
        groups = [group.group_id for group in self._groups.list()]
        for group_id in groups:
            found = self._groups.fetch(group_id, None)
            self.offset_keys[group_id] = {(each.topic, each.partition) for each in found}
        made = [record for group_id in groups for record in self._groups.without_members(group_id)]
        for key in dict.fromkeys(suspect.key for damaged in fresh for suspect in damaged.suspects):
            made += self._begin_anew(key, start_of, now)
        return [*made, *(Record(_note(damaged), b"{}") for damaged in fresh)]

    def told(self, committed: Iterable[Record]) -> None:
        """These records are committed; a new offset ends the doubt about the one before."""
        if not self.offset_keys:
            return
        for record in committed:
            found = _offset_key(record.key)
            if found is not None and found[0] in self.offset_keys:
                doubtful = self.offset_keys[found[0]]
                doubtful.discard(found[1])
                if not doubtful:
                    del self.offset_keys[found[0]]

    def _begin_anew(self, key: bytes, start_of: StartOf, now: Now) -> list[Record]:
        """A committed offset that seems to be nowhere else."""
        found = _offset_key(key)
        if found is None:
            return []
        group_id, offset_key = found
        start = start_of(*offset_key)
        if start is None or self._groups.fetch(group_id, [offset_key])[0].value is not None:
            return []
        self.offset_keys.setdefault(group_id, set()).add(offset_key)
        value = OffsetValue(start, now.wall_ms)
        return [records.encode(records.OFFSET, group_id, *offset_key, value=value)]


def _note(damaged: DamagedRange) -> bytes:
    return _encode((_KIND, damaged.first))


def _offset_key(key: bytes) -> tuple[str, OffsetKey] | None:
    """(group, key) of a committed offset's record; None for any other, and for one that was damaged."""
    try:
        found = records.decode(Record(key, None))
    except (msgspec.MsgspecError, ValueError):
        return None
    if found is None or found.kind != records.OFFSET:
        return None
    match found.rest:
        case str(topic), int(partition):
            return found.group_id, (topic, partition)
    return None
