"""Copies of logs: committed batches are read from the nodes that lead them and stored as parts.

A log's copy grows part by part. Whatever ends it early, the parts that are stored count: `copies` has them,
and the next attempt, or the next `postroad backup create`, goes on behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from postroad.backups import batches
from postroad.backups.cut import Again, key_of
from postroad.backups.errors import BackupDamaged
from postroad.backups.manifest import LogCopy, LogKey, Part, part_path, sha256_of
from postroad.backups.plan import plan
from postroad.backups.target import Target
from postroad.client import Client, backup
from postroad.wire.backup import LogFacts

PART_BYTES: Final = 16 * 1024 * 1024  # several of them are in memory at a time
READ_BYTES: Final = 4 * 1024 * 1024
AT_A_TIME: Final = 4  # logs

Stored = Callable[[Part, int], None]
"""Hears of each part of this run, and how many bytes had to be stored for it."""


class Led(NamedTuple):
    """A log, and the node that leads it."""

    facts: LogFacts
    node: int


class Copying:
    """Copies of all logs of a cluster, as far as they have come."""

    def __init__(
        self, client: Client, target: Target, known: Mapping[LogKey, LogCopy], stored: Stored
    ) -> None:
        self.copies: dict[LogKey, LogCopy] = dict(known)
        self._client = client
        self._target = target
        self._stored = stored

    async def copy_all(self, logs: Iterable[Led], names: Mapping[LogKey, str]) -> None:
        """All of them as of their ends. Raises Again if one can't be had as it was then any more, and what
        the nodes and the target raise."""
        free = asyncio.Semaphore(AT_A_TIME)

        async def one(led: Led) -> None:
            async with free:
                await self._copy(led, names[key_of(led.facts)])

        tasks = [asyncio.create_task(one(led), name=f"copy {led.facts.log_id.hex()}") for led in logs]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _copy(self, led: Led, name: str) -> None:
        facts, node = led
        key = key_of(facts)
        parts, offset = plan(self.copies.get(key), facts)
        copy = LogCopy(
            topic=name,
            topic_id=key.topic_id,
            index=key.index,
            start=facts.start,
            end=offset if offset < facts.end else facts.end,
            is_ledger=key.is_ledger,
            purged=facts.purged,
            parts=parts,
        )
        self.copies[key] = copy
        reading = _Reading(facts, anew=not parts, offset=offset)
        while reading.offset < facts.end:
            part = await self._next_part(node, reading, str(copy))
            if part is None:
                break
            copy = _with(copy, part)
            self.copies[key] = copy
        start = min(max(facts.start, reading.start), facts.end)
        kept = tuple(part for part in copy.parts if part.next > start)
        self.copies[key] = _changed(copy, start=start, end=facts.end, parts=kept)

    async def _next_part(self, node: int, reading: _Reading, name: str) -> Part | None:
        """Read, check and store the next one; None at the end."""
        content, first, last, epoch = bytearray(), -1, -1, -1
        while len(content) < PART_BYTES and reading.offset < reading.facts.end:
            answer = await backup.read(self._client, node, reading.facts, reading.offset, READ_BYTES)
            reading.check(answer.start, answer.cleaned, answer.purged, name)
            try:
                found = batches.cut(memoryview(answer.records), reading.offset, reading.facts.end)
            except ValueError as error:
                raise BackupDamaged(f"what node {node} sent of {name} is wrong: {error}") from None
            if found is None:
                if answer.start > reading.offset and answer.start < reading.facts.end:
                    reading.offset = answer.start  # retention was faster
                    if content:
                        break
                    continue
                reading.offset = reading.facts.end  # the rest was deleted, or compacted
                break
            first = found.first if first < 0 else first
            content += memoryview(answer.records)[: found.bytes]
            reading.offset, epoch = found.next, found.last_epoch
            last = found.next
        if first < 0:
            return None
        return await self._store(content, first, last, epoch)

    async def _store(self, content: bytearray, first: int, last: int, epoch: int) -> Part:
        def store() -> tuple[str, bool]:
            sha256 = sha256_of(content)
            path = part_path(sha256)
            is_there = self._target.size(path) == len(content)
            if not is_there:
                self._target.put(path, content)
            return sha256, is_there

        sha256, is_there = await asyncio.to_thread(store)
        part = Part(first, last, len(content), sha256, epoch)
        self._stored(part, 0 if is_there else len(content))
        return part


class _Reading:
    """How far one log has been read, and whether what was read fits together."""

    def __init__(self, facts: LogFacts, *, anew: bool, offset: int) -> None:
        self.facts = facts
        self.offset = offset
        self.start = facts.start
        self._purged = facts.purged if anew else 0

    def check(self, start: int, cleaned: int, purged: int, name: str) -> None:
        """Raises Again if compaction has taken what the copy needs.

        Above the end: what it has superseded may lack, and what supersedes it does. Tombstones that are ahead
        and gone: what they deleted was copied before, and would come back.
        """
        self.start = max(self.start, start)
        if cleaned > self.facts.end:
            raise Again(f"{name} was just compacted")
        if purged > max(self.offset, self._purged):
            raise Again(f"{name} has just forgotten what was deleted")


def _with(copy: LogCopy, part: Part) -> LogCopy:
    return _changed(copy, start=copy.start, end=part.next, parts=(*copy.parts, part))


def _changed(copy: LogCopy, start: int, end: int, parts: tuple[Part, ...]) -> LogCopy:
    return LogCopy(
        topic=copy.topic,
        topic_id=copy.topic_id,
        index=copy.index,
        start=start,
        end=max(start, end),
        is_ledger=copy.is_ledger,
        purged=copy.purged,
        parts=parts,
    )
