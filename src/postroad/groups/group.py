"""One group id: its committed offsets, and the protocol that its members speak.

A group is classic or KIP-848 ("consumer"), never both. An empty group of one kind may become the other: the
first record of the new kind comes with the tombstone of the old one, in one batch. A group with members
changes by `migration.py`; while it does, it is a KIP-848 group, and some members speak the classic protocol.
"""

from __future__ import annotations

from typing import Final

from postroad.errors import NonEmptyGroup, UnknownMemberId
from postroad.groups import records
from postroad.groups.answers import Outcome
from postroad.groups.classic import ClassicGroup
from postroad.groups.consumer import ConsumerGroup
from postroad.groups.deadlines import Deadlines, Timers
from postroad.groups.offsets import Offsets
from postroad.groups.pending import PendingOffsets
from postroad.groups.records import ClassicValue, ConsumerValue, OffsetValue, Record
from postroad.groups.settings import GroupSettings
from postroad.now import Now

SWEEP: Final = "sweep"  # what a deadline is for: look for offsets that are over


class Group:
    def __init__(self, group_id: str, settings: GroupSettings, deadlines: Deadlines) -> None:
        self.group_id = group_id
        self.settings = settings
        self.timers = Timers(deadlines, group_id)
        self.offsets = Offsets(group_id)
        self.pending = PendingOffsets(group_id)
        self.classic: ClassicGroup | None = None
        self.consumer: ConsumerGroup | None = None  # there once it is stored

    @property
    def is_consumer(self) -> bool:
        return self.consumer is not None and (self.classic is None or self.classic.is_idle)

    @property
    def has_members(self) -> bool:
        classic, consumer = self.classic, self.consumer
        return bool(
            (classic is not None and not classic.is_idle) or (consumer is not None and consumer.members)
        )

    @property
    def is_gone(self) -> bool:
        """Neither stored nor alive: the object can be dropped."""
        return self.classic is None and self.consumer is None and not self.offsets and not self.pending

    # --- hard state ---

    def apply_classic(self, value: ClassicValue | None) -> None:
        if value is not None:
            self.ensure_classic().adopt(value)
        elif self.classic is not None:
            self.classic.clear()
            self.classic.forget_pending([*self.classic.pending])
            self.classic = None

    def apply_consumer(self, value: ConsumerValue | None) -> None:
        if value is not None:
            self.ensure_consumer().apply_group(value)
        else:
            self.consumer = None

    # --- which protocol ---

    @property
    def with_consumers(self) -> ConsumerGroup | None:
        """The KIP-848 group, while it has members: classic requests are for it too."""
        return self.consumer if self.consumer is not None and self.consumer.members else None

    @property
    def with_classics(self) -> ClassicGroup | None:
        """The classic group, while it has members or clients that were given an id to join with."""
        alone = self.classic is not None and not self.classic.is_idle and self.with_consumers is None
        return self.classic if alone else None

    def classic_of_member(self) -> ClassicGroup:
        if self.classic is None:
            raise UnknownMemberId
        return self.classic

    def stored_or_blank_consumer(self) -> ConsumerGroup:
        """A blank one counts on where an empty classic group is, so that no identity of a former member ever
        becomes valid again (L14)."""
        if self.consumer is not None:
            return self.consumer
        blank = ConsumerGroup(self.group_id, self.settings, self.timers)
        if self.classic is not None:
            blank.epoch = blank.target_epoch = self.classic.generation
        return blank

    def ensure_classic(self) -> ClassicGroup:
        """A new one counts on where an empty KIP-848 group is, for the same reason."""
        if self.classic is None:
            self.classic = ClassicGroup(self.group_id, self.settings, self.timers)
            if self.consumer is not None:
                self.classic.generation = self.consumer.epoch
        return self.classic

    def ensure_consumer(self) -> ConsumerGroup:
        if self.consumer is None:
            self.consumer = ConsumerGroup(self.group_id, self.settings, self.timers)
        return self.consumer

    def replace_other(self, out: Outcome, *, kind: str) -> None:
        """If the outcome stores a group of this kind, it takes the place of an empty one of the other
        kind."""
        other = records.CONSUMER if kind == records.CLASSIC else records.CLASSIC
        if out.records and self._is_stored(other):
            out.records.insert(0, records.encode(other, self.group_id, value=None))

    def drop_idle_classic(self) -> None:
        """A classic group that was never stored ends with its last member."""
        if self.classic is not None and self.classic.is_idle and self.classic.stored is None:
            self.classic = None

    # --- offsets ---

    def subscribed(self, topic: str) -> bool:
        classic, consumer = self.classic, self.consumer
        return (classic is not None and classic.subscribed(topic)) or (
            consumer is not None and consumer.subscribed(topic)
        )

    def arm_sweep(self, now: Now) -> None:
        if self.timers.get(SWEEP) is None:
            self.timers.set(SWEEP, now.ms + self.settings.offsets_sweep_interval_ms)

    def sweep(self, now: Now, out: Outcome) -> None:
        """Tombstones for offsets that are over, and for an empty group that has none left."""
        expired = self.offsets.expired(self.settings, now.wall_ms, self._unused_since_ms)
        expired = [offset_key for offset_key in expired if not self.pending.has(offset_key)]
        out.records += self.offsets.delete(expired)
        if len(expired) == len(self.offsets) and not self.has_members and not self.pending:
            out.records += self._tombstones()
        self.arm_sweep(now)

    def delete(self) -> list[Record]:
        """Tombstones for all of it; raises NonEmptyGroup while it has members."""
        if self.has_members:
            raise NonEmptyGroup
        offsets = self.offsets.delete(self.offsets.offset_keys())
        return offsets + self.pending.delete() + self._tombstones()

    def _unused_since_ms(self, topic: str, value: OffsetValue) -> int | None:
        if self.subscribed(topic):
            return None
        if self.has_members:
            return value.commit_ms
        return max(value.commit_ms, self._changed_ms())

    def _changed_ms(self) -> int:
        stored = self.classic.stored if self.classic is not None else None
        return max(
            stored.changed_ms if stored is not None else 0,
            self.consumer.changed_ms if self.consumer is not None else 0,
        )

    def _tombstones(self) -> list[Record]:
        return [
            records.encode(kind, self.group_id, value=None)
            for kind in (records.CLASSIC, records.CONSUMER)
            if self._is_stored(kind)
        ]

    def _is_stored(self, kind: str) -> bool:
        if kind == records.CLASSIC:
            return self.classic is not None and self.classic.stored is not None
        return self.consumer is not None

    def check(self) -> None:
        if self.classic is not None:
            self.classic.check()
        if self.consumer is not None:
            self.consumer.check()
        assert not (self._is_stored(records.CLASSIC) and self._is_stored(records.CONSUMER)), "one protocol"
        if self.classic is not None and not self.classic.is_idle:
            assert self.consumer is None or not self.consumer.members, "one protocol"
