"""Consumer groups and subscriptions: whoever leaves the source goes on at the same message of the target.

G1 a position is never ahead of a message that was not read (`pairs.translate`).
G2 none is moved back, and a group that has members at the target is left alone: it works there, and its
   positions are its own.
G3 what was carried over is not carried over again while it stays the same at the source: who moves a group at
   the target by hand is not overruled. It follows that a group which is set back at the source is not set
   back at the target.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from postroad.client import Client, TopicPartition, groups, offsets, subscriptions
from postroad.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RequestRefused,
    StaleMemberEpoch,
    UnknownMemberId,
)
from postroad.mirrors.notes import Note, Notes
from postroad.mirrors.pairs import Translated
from postroad.wire.subscription_names import TOPICS_CONFIG


class Translating(Protocol):
    """A partition that is mirrored."""

    @property
    def target(self) -> TopicPartition: ...

    async def translate(self, position: int, start: int, end: int) -> Translated:
        """Where one goes on at the target who has read all before `position` at the source. The target's log
        goes from `start` up to `end`."""


Partitions = Mapping[TopicPartition, Translating]
"""By partitions of the source."""

HAS_MEMBERS: Final = (UnknownMemberId, IllegalGeneration, StaleMemberEpoch, FencedMemberEpoch, NonEmptyGroup)


log = logging.getLogger("postroad.mirror")


class Carried(NamedTuple):
    """What became of a group. `again`: at most so many messages that it has read would come again. `refused`:
    why it can't be carried over, as the target says or the source."""

    moved: int = 0
    again: int = 0
    is_active_there: bool = False
    refused: str = ""


class Wanted(NamedTuple):
    """Names, and a pattern that a whole name matches."""

    names: Sequence[str] = ()
    pattern: str | None = None

    def of(self, found: Sequence[str]) -> list[str]:
        matching = [name for name in found if self.pattern is not None and re.fullmatch(self.pattern, name)]
        return sorted({*matching, *(name for name in self.names if name in found)})

    def __bool__(self) -> bool:
        return bool(self.names) or self.pattern is not None


class Positions:
    """Carries groups and subscriptions over, as often as it is told."""

    def __init__(
        self,
        source: Client,
        target: Client,
        notes: Notes,
        prefix: str,
        carried: dict[tuple[str, TopicPartition], int] | None = None,
    ) -> None:
        """`carried`: what was carried over before, by group or subscription (G3); it is kept up to date."""
        self._source = source
        self._target = target
        self._notes = notes
        self._prefix = prefix
        self._carried = {} if carried is None else carried

    async def carry_groups(self, wanted: Wanted, partitions: Partitions) -> dict[str, Carried]:
        if not wanted or not partitions:
            return {}
        listed = [group.group for group in await groups.list_all(self._source) if group.type != "share"]
        return {name: await _tried(self._carry_group, name, partitions) for name in wanted.of(listed)}

    async def _carry_group(self, name: str, partitions: Partitions) -> Carried:
        committed = await groups.committed(self._source, name)
        found = await self._translate(committed, partitions)
        try:
            there = await groups.committed(self._target, name, list(found)) if found else {}
        except GroupIdNotFound:
            there = {}
        forward = self._forward(name, found, there)
        again = _again(found, {**there, **forward})
        try:
            if forward:
                await groups.commit(self._target, name, forward)
        except HAS_MEMBERS:
            return Carried(again=again, is_active_there=True)
        self._note(name, forward)
        return Carried(len(forward), again)

    async def carry_subscriptions(self, wanted: Wanted, partitions: Partitions) -> dict[str, Carried]:
        if not wanted or not partitions:
            return {}
        listed = [group.group for group in await subscriptions.list_all(self._source)]
        return {name: await _tried(self._carry_subscription, name, partitions) for name in wanted.of(listed)}

    async def _carry_subscription(self, name: str, partitions: Partitions) -> Carried:
        note = self._notes.known.get(f"group {name}")
        there = await self._positions_there(name)
        if there is None and note is None:
            # Until all is done, whoever goes on with it knows that its position was nobody's choice.
            await self._notes.put({f"group {name}": {"is_new": True}})
            note = {"is_new": True}
        is_new = note is not None and "is_new" in note
        if there is None and not is_new:
            return Carried()  # deleted at the target
        configs = await self._carry_configs(name, {topic for topic, _ in partitions}, note or {})
        starts = {at: each.start for at, each in (await subscriptions.positions(self._source, name)).items()}
        found = await self._translate(starts, partitions)
        there = await self._positions_there(name) or {}
        if await self._has_members(name):
            return Carried(again=_again(found, there), is_active_there=True)
        if not is_new:  # where nobody leads now it has a position all the same, which may be further
            found = {at: translated for at, translated in found.items() if at in there}
        forward = self._forward(name, found, {} if is_new else there)
        if forward:
            await subscriptions.move(self._target, name, forward)
        self._note(name, forward)
        if note != {"configs": configs}:
            await self._notes.put({f"group {name}": {"configs": configs}})
        return Carried(len(forward), _again(found, {**there, **forward}))

    async def _positions_there(self, name: str) -> dict[TopicPartition, int] | None:
        """None: the target knows no such subscription."""
        if name not in [group.group for group in await subscriptions.list_all(self._target)]:
            return None
        found = await subscriptions.positions(self._target, name)
        return {at: each.start for at, each in found.items()}

    async def _has_members(self, name: str) -> bool:
        try:
            return bool((await subscriptions.describe(self._target, name)).members)
        except GroupIdNotFound:
            return False

    async def _carry_configs(self, name: str, mirrored: set[str], note: Note) -> dict[str, str]:
        """What has changed at the source is so at the target, as with topics' configs. What they are."""
        entries = await subscriptions.config(self._source, name)
        now = {entry.name: entry.value for entry in entries if entry.is_override and entry.value is not None}
        if TOPICS_CONFIG in now:
            held = [topic for topic in now[TOPICS_CONFIG].split(",") if topic in mirrored]
            now[TOPICS_CONFIG] = ",".join(self._prefix + topic for topic in held)
        if not note:
            return now  # both had it before the mirror did
        before: dict[str, str] = note.get("configs", {})
        changes = {key: value for key, value in now.items() if value and before.get(key) != value}
        resets = [key for key in before if key not in now]
        if changes or resets:
            await subscriptions.alter_config(self._target, name, changes, resets)
        return now

    async def _translate(
        self, positions: Mapping[TopicPartition, int], partitions: Partitions
    ) -> dict[TopicPartition, Translated]:
        """By partitions of the target."""
        those = {at: partitions[at] for at in positions if at in partitions}
        there = [each.target for each in those.values()]
        starts = await offsets.earliest(self._target, there)
        ends = await offsets.latest(self._target, there)
        return {
            each.target: await each.translate(positions[at], starts[each.target], ends[each.target])
            for at, each in those.items()
        }

    def _forward(
        self, name: str, found: Mapping[TopicPartition, Translated], there: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        return {
            at: translated.position
            for at, translated in found.items()
            if translated.position > there.get(at, -1)
            and self._carried.get((name, at)) != translated.position
        }

    def _note(self, name: str, forward: Mapping[TopicPartition, int]) -> None:
        self._carried.update({(name, at): position for at, position in forward.items()})


async def _tried(
    carry: Callable[[str, Partitions], Awaitable[Carried]], name: str, partitions: Partitions
) -> Carried:
    """One that is refused holds up no other: it may be of another kind at the target."""
    try:
        return await carry(name, partitions)
    except RequestRefused as error:
        log.warning("%s can't be carried over: %s", name, error)
        return Carried(refused=str(error))


def _again(found: Mapping[TopicPartition, Translated], there: Mapping[TopicPartition, int]) -> int:
    """Messages behind the positions at the target that were read, by the source's positions."""
    count = 0
    for at, translated in found.items():
        last_read = translated.position + translated.again
        count += max(0, last_read - max(translated.position, there.get(at, -1)))
    return count
