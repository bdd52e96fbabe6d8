"""Taking a backup of a cluster that goes on meanwhile.

1. All logs are copied as far as they go now. That takes as long as it takes, and nothing waits for it.
2. The cut: no transaction may end for a moment (`broker/transactions/hold`). Meanwhile each node says where
   its logs end: first ledgers and committed offsets, then messages, then the transactions themselves. What is
   done with a message was written after the message, so no offset and no ledger points beyond the messages;
   a transaction is in all of its logs with its end, or open in all of them, and then its coordinator's log,
   which comes last, knows it and will abort it.
3. What has come since the first round is copied, up to the cut. Where compaction or a new leader came in
   between, the cut is made anew.
4. The store's keys and the manifest are stored.

docs/adr/0023 has the reasons. What is stored of a backup that was not finished is noted in `unfinished.json`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, TypeVar

from postroad import __version__
from postroad.backups import contents, manifest, marks
from postroad.backups.copying import Copying, Led
from postroad.backups.cut import Again, StoredTopic, key_of, of_one_moment
from postroad.backups.errors import BackupDamaged, BackupError
from postroad.backups.manifest import LogCopy, LogKey, Manifest, Part, StorePart
from postroad.backups.target import Target
from postroad.client import Client, backup
from postroad.cluster import keys
from postroad.errors import PostroadError, TryAgain, UnsupportedVersion
from postroad.wire.backup import MESSAGES, STATE, VERDICTS, LogFacts, StoreKey

ATTEMPTS: Final = 20  # to find a moment in which everything has a leader and nothing is changed
PAUSE_S: Final = 0.5
HOLD_MS: Final = 5_000  # all nodes answer within milliseconds, or the cut is made anew
NOTE_S: Final = 5.0  # between two notes of what is stored so far
PRUNE_WAIT_S: Final = 120.0  # a prune deletes some hundred parts in a second

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Hears how many bytes were looked at and how many of these had to be stored, so far."""


class Moment(NamedTuple):
    """What a cluster was at the cut."""

    logs: dict[LogKey, Led]
    topics: dict[LogKey, StoredTopic]
    store: list[StoreKey]


class Made(NamedTuple):
    """A backup that was made, and what had to be stored for it."""

    name: str
    manifest: Manifest
    new_bytes: int
    new_parts: int


class Creation:
    def __init__(self, client: Client, target: Target, progress: Progress) -> None:
        self._client = client
        self._target = target
        self._progress = progress
        self._cluster = ""
        self._noted_s = time.monotonic()
        self._seen_bytes = self._new_bytes = self._new_parts = 0
        self._copying = Copying(client, target, {}, self._stored)
        self._mark = marks.Mark(target, marks.CREATE)

    async def run(self) -> Made:
        """Raises BackupError, and PostroadError if the cluster can't be asked."""
        self._cluster = cluster_in(await backup.store(self._client))  # whoever may not ask leaves no mark
        await self._wait_for_prunes()
        beating = asyncio.create_task(self._beat(), name="mark of a backup")
        try:
            return await self._run()
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            await asyncio.to_thread(self._mark.remove)

    async def _wait_for_prunes(self) -> None:
        """No prune is at work, and none begins while our mark is there."""
        deadline = time.monotonic() + PRUNE_WAIT_S
        while True:
            await asyncio.to_thread(self._mark.write)
            if not await asyncio.to_thread(marks.at_work, self._target, marks.PRUNE):
                return
            await asyncio.to_thread(self._mark.remove)  # or two would wait for each other
            if time.monotonic() >= deadline:
                raise BackupError(
                    "backups are being pruned there: give the command again when that has ended, "
                    "or in ten minutes if it was killed"
                )
            await asyncio.sleep(PAUSE_S)

    async def _beat(self) -> None:
        """Ends if the mark can't be written any more: `_finish` finds out."""
        while True:
            await asyncio.sleep(marks.BEAT_MS / 1000)
            await asyncio.to_thread(self._mark.hold)

    async def _run(self) -> Made:
        known = await asyncio.to_thread(last_copies, self._target, self._cluster)
        self._copying = Copying(self._client, self._target, known, self._stored)
        await self._copy_ahead()
        for attempt in range(ATTEMPTS):
            try:
                moment = await self._cut()
                await self._copying.copy_all(moment.logs.values(), _names(moment.topics))
                return await self._finish(moment)
            except (Again, TryAgain) as error:
                if attempt + 1 == ATTEMPTS:
                    raise BackupError(f"the cluster did not come to rest: {error}") from None
                await asyncio.sleep(PAUSE_S)
        raise AssertionError("the last attempt returns or raises")

    # --- 1: what is there

    async def _copy_ahead(self) -> None:
        """What can't be had now is copied after the cut."""
        try:
            moment = await self._look()
            await self._copying.copy_all(moment.logs.values(), _names(moment.topics))
        except (Again, TryAgain):
            return
        finally:
            await asyncio.to_thread(self._note)

    # --- 2: the cut

    async def _cut(self) -> Moment:
        """Raises Again, and what nodes raise, if there was no such moment."""
        name = secrets.token_hex(8)
        nodes = await self._nodes()
        try:
            await _each(nodes, lambda node: backup.hold(self._client, node, name, HOLD_MS))
            moment = await self._look()
            held: list[bool] = await _each(nodes, lambda node: backup.release(self._client, node, name))
        finally:
            await self._let_go(nodes, name)
        if not all(held) or await self._nodes() != nodes:
            raise Again("a node started, stopped or took over meanwhile")
        return moment

    async def _look(self) -> Moment:
        before, nodes = await backup.store(self._client), await self._nodes()
        logs: dict[LogKey, Led] = {}
        for kind in (STATE, MESSAGES, VERDICTS):  # this order is what makes the backup consistent
            found = await _each(nodes, partial(self._logs, kind))
            for node, facts in zip(nodes, found, strict=True):
                logs |= {key_of(each): Led(each, node) for each in facts}
        after = await backup.store(self._client)
        facts_by_key: Mapping[LogKey, LogFacts] = {key: led.facts for key, led in logs.items()}
        topics, store = of_one_moment(before, facts_by_key, after)
        return Moment({key: logs[key] for key in topics}, topics, store)

    async def _logs(self, kind: str, node: int) -> list[LogFacts]:
        return await backup.logs(self._client, node, kind)

    async def _let_go(self, nodes: list[int], name: str) -> None:
        """Whatever went wrong, transactions go on."""
        for node in nodes:
            try:
                await backup.release(self._client, node, name)
            except PostroadError:
                continue  # the hold ends by itself

    async def _nodes(self) -> list[int]:
        self._client.forget()
        return await self._client.nodes()

    # --- 3 and 4

    async def _finish(self, moment: Moment) -> Made:
        content = contents.encode(moment.store)
        part = StorePart(len(content), manifest.sha256_of(content))
        logs = {key: self._copying.copies[key] for key in moment.logs}
        made = self._manifest(logs, part, any(entry.is_sealed for entry in moment.store))
        try:
            manifest.check(made)
        except ValueError as error:
            raise BackupDamaged(f"what was copied does not fit together: {error}") from None
        name = manifest.name_of(made)

        def store() -> None:
            if self._target.size(part.path) != len(content):
                self._target.put(part.path, content)
                self._new_bytes += len(content)
                self._new_parts += 1
            self._mark.check()
            self._target.put(manifest.path_of(name), manifest.encode(made))
            try:
                self._mark.check()
            except BackupError:
                self._target.delete(manifest.path_of(name))  # it may name parts that are gone
                raise
            self._target.delete(manifest.UNFINISHED)

        await asyncio.to_thread(store)
        return Made(name, made, self._new_bytes, self._new_parts)

    def _manifest(self, logs: Mapping[LogKey, LogCopy], store: StorePart | None, sealed: bool) -> Manifest:
        return Manifest(
            version=manifest.VERSION,
            cluster=self._cluster,
            created_ms=time.time_ns() // 1_000_000,
            by=__version__,
            logs=tuple(logs[key] for key in sorted(logs)),
            store=store,
            sealed=sealed,
        )

    def _stored(self, part: Part, new_bytes: int) -> None:
        self._seen_bytes += part.bytes
        self._new_bytes += new_bytes
        self._new_parts += bool(new_bytes)
        self._progress(self._seen_bytes, self._new_bytes)
        if time.monotonic() >= self._noted_s + NOTE_S:
            self._note()

    def _note(self) -> None:
        """What is stored so far, for the next one if this one ends early. Blocks for one small object."""
        self._noted_s = time.monotonic()
        unfinished = self._manifest(self._copying.copies, None, False)
        self._target.put(manifest.UNFINISHED, manifest.encode(unfinished))


async def _each(nodes: list[int], ask: Callable[[int], Awaitable[T]]) -> list[T]:
    """All nodes' answers, in order; the first error if one has none."""
    return list(await asyncio.gather(*(ask(node) for node in nodes)))


def _names(topics: Mapping[LogKey, StoredTopic]) -> dict[LogKey, str]:
    return {key: topic.name for key, topic in topics.items()}


def cluster_in(entries: list[StoreKey]) -> str:
    for entry in entries:
        if entry.key == keys.CLUSTER:
            return keys.decode(entry.key, entry.value, keys.ClusterValue).id
    raise UnsupportedVersion("The node does not say of which cluster it is.")


def last_copies(target: Target, cluster: str) -> dict[LogKey, LogCopy]:
    """What is stored of the cluster's logs: by the last backup, and by one that was not finished. Blocks."""
    found: dict[LogKey, LogCopy] = {}
    for path in _last_manifests(target):
        content = target.get(path)
        if content is None:
            continue
        try:
            known = manifest.decode(path, content)
        except BackupDamaged:
            if path == manifest.UNFINISHED:
                continue  # it only spares work
            raise
        if known.cluster != cluster:
            raise BackupError(
                f"backups of another cluster, {known.cluster}, lie there; each needs a place of its own"
            )
        found |= {log.key: log for log in known.logs}
    return found


def _last_manifests(target: Target) -> list[str]:
    names = manifest.names(target.list(manifest.MANIFESTS))
    return [*(manifest.path_of(name) for name in names[-1:]), manifest.UNFINISHED]
