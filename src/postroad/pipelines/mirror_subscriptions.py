"""Subscriptions that a mirror takes along, as `mirrors.positions` does, by this mirror's map of offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from postroad.client import Client
from postroad.client import TopicPartition as At
from postroad.mirrors.notes import Notes
from postroad.mirrors.pairs import Translated
from postroad.mirrors.positions import Carried, Positions, Wanted
from postroad.pipelines.offset_map import Translation
from postroad.spark.router import TopicPartition


@dataclass(frozen=True)
class MappedPartition:
    """A partition of the source, by where it is at the target."""

    source: TopicPartition
    target: At
    translation: Translation

    async def translate(self, position: int, start: int, end: int) -> Translated:
        """Where one goes on at the target who has read all before `position` at the source.

        At the beginning of the target's log, if nothing before the position is known to be there.
        """
        found = self.translation(self.source, position)
        at = min(end, start if found is None else max(start, found))
        return Translated(at, self.translation.read_behind(self.source, position, at))


@dataclass
class CarriedSubscriptions:
    """Carries over those that are wanted, as often as it is told, from one cluster to the other."""

    source: str
    target: str
    source_id: str
    prefix: str
    wanted: Wanted
    _carried: dict[tuple[str, At], int] = field(default_factory=dict)

    def carry(
        self, translation: Translation, topic_partitions: Mapping[TopicPartition, TopicPartition]
    ) -> dict[str, Carried]:
        """What became of each; `topic_partitions` are the target's by the source's."""
        partitions = {
            At(*source): MappedPartition(source, At(*target), translation)
            for source, target in topic_partitions.items()
        }

        async def work() -> dict[str, Carried]:
            async with Client(self.source) as source, Client(self.target) as target:
                notes = Notes(target, self.source_id, self.prefix)
                await notes.prepare()
                positions = Positions(source, target, notes, self.prefix, self._carried)
                return await positions.carry_subscriptions(self.wanted, partitions)

        return asyncio.run(work()) if self.wanted and partitions else {}
