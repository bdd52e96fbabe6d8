"""Topics on this node: follows the coordination store and keeps the open partitions equal to it.

Nothing here decides: `cluster.controller` does, purely; the decision is committed to the store; the
store's watch brings it back as events; the image takes them; and the partitions that this node
should have are opened, changed or closed. A request such as CreateTopics waits until its own
revision has come round (`reach`), so that what it created can be used when it is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from postroad.broker.data_directory import DataDirectory
from postroad.broker.inspection import inspector
from postroad.broker.ledger_logs import LedgerLogs
from postroad.broker.log_settings import log_settings
from postroad.broker.partition import Partition
from postroad.broker.tasks import until_done
from postroad.cluster import controller, keys
from postroad.cluster.controller import Decision
from postroad.cluster.ids import id_text
from postroad.cluster.image import Changes, DeletedTopic, Image, Topic
from postroad.cluster.store import Compare, Snapshot, Store
from postroad.cluster.topic_config import TopicSettings, resolve
from postroad.errors import ApiError, HistoryCompacted, RequestTimedOut, StorageFailed, StoreUnavailable
from postroad.log.partition_log import PartitionLog
from postroad.log.segment_cache import SegmentCache
from postroad.log.settings import LogSettings

if TYPE_CHECKING:
    from postroad.broker.node import Node

DECISIONS_MAX: Final = 20  # others got in between that often: something is wrong
DECISION_TIMEOUT_S: Final = 30.0  # all attempts together; clients wait about as long
REACH_TIMEOUT_S: Final = 30.0
AWAY_S: Final = 1.0  # a store that was unavailable is not asked for decisions for so long
FOLLOW_RETRY_S: Final = 0.5
REOPEN_S: Final = 5.0

log = logging.getLogger(__name__)


class Topics:
    def __init__(self, node: Node, store: Store, directory: DataDirectory) -> None:
        self.image = Image()
        self._node = node
        self._store = store
        self._directory = directory
        self._disk = node.runtime.disk
        self._segment_cache = SegmentCache()  # one for all logs bounds the open files
        self._ledgers = LedgerLogs(node, directory, self._segment_cache)
        self._without_ledger: dict[Partition, bool] = {}  # its log is being opened, or (False) could not be
        self._applied = 0  # the store's revision up to which partitions are open
        self._away_until = 0.0  # on the loop's clock
        self._reached: list[tuple[int, asyncio.Future[None]]] = []

    # --- decisions

    async def decide(
        self,
        make: Callable[[Image], Decision],
        *,
        urgent: bool = False,
        done: Callable[[Image], bool] | None = None,
    ) -> None:
        """Decide on the image, commit, and wait until this node has followed. Raises what `make` raises.

        `urgent`: the decision frees space, so it may use the reserve of a full disk. `done` tells whether a
        commit whose outcome is unknown took effect; it may be left out if `make` then decides on nothing.
        Raises StoreUnavailable if the outcome can't be found out, RequestTimedOut if that takes too long.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._away_until:  # a request that changes many topics waits for one of them only
            raise StoreUnavailable()
        try:
            async with asyncio.timeout(DECISION_TIMEOUT_S):
                await self._decide(make, urgent, done)
        except StoreUnavailable:
            self._away_until = loop.time() + AWAY_S
            raise
        except TimeoutError:
            raise RequestTimedOut("The coordination store did not take the change in time.") from None

    async def _decide(
        self, make: Callable[[Image], Decision], urgent: bool, done: Callable[[Image], bool] | None
    ) -> None:
        unknown = False  # an earlier attempt may have happened
        for _ in range(DECISIONS_MAX):
            if unknown and done is not None and done(self.image):
                return
            seen = self._applied
            compares, operations = make(self.image)
            if not operations:
                return
            try:
                revision = await self.commit(Decision([*compares, self._fence()], operations), urgent=urgent)
            except StoreUnavailable:
                unknown = True
                await self._fence_off()
                continue
            if revision is not None:
                await self.reach(revision)
                return
            await self.reach(seen + 1)  # somebody was faster: decide anew on what came of it
        raise RequestTimedOut("The coordination store changed under every attempt. Try again.")

    async def _fence_off(self) -> None:
        """A request that is late must not take effect any more: what it creates may be deleted by then.

        The image then shows what came of it. Raises StoreUnavailable if nobody can say.
        """
        for _ in range(DECISIONS_MAX):
            await self._read_anew()  # raises if the store is away, and not just an answer lost
            with contextlib.suppress(StoreUnavailable):
                await self._node.registration.fence()
                await self._read_anew()
                return
        raise StoreUnavailable()

    def _fence(self) -> Compare:
        """A compare that holds until this node's entry is written anew (`Registration.fence`)."""
        key = keys.node_key(self._node.settings.node.id)
        return Compare(key, self.image.key_revision(key))

    async def _read_anew(self) -> None:
        """Wait until the image shows what the store holds now. Raises StoreUnavailable if nobody can say."""
        snapshot = await self._store.list("")
        await self.reach(snapshot.revision)

    async def commit(self, decision: Decision, *, urgent: bool) -> int | None:
        """The store's answer; on a full disk an urgent decision is tried again with the reserve."""
        try:
            return await self._store.commit(*decision)
        except StorageFailed:
            if not (urgent and self._directory.reserve.spend()):
                raise
            return await self._store.commit(*decision)

    async def reach(self, revision: int) -> None:
        """Wait until everything up to this revision is applied, partitions opened and all."""
        if self._applied >= revision:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reached.append((revision, future))
        try:
            await asyncio.wait_for(future, REACH_TIMEOUT_S)
        except TimeoutError:
            raise RequestTimedOut("The node has not followed the coordination store in time.") from None

    # --- following

    async def catch_up(self, snapshot: Snapshot, clean: bool) -> None:
        """Take a list of the whole store, and open what this node should have."""
        await self._apply(self.image.catch_up(snapshot), clean)
        self._arrived(snapshot.revision)

    async def follow(self) -> None:
        """Apply each change of the store as it comes, for as long as the node lives.

        A store that can't be reached is tried again: what this node has is served meanwhile.
        """
        behind = troubled = False
        while True:
            try:
                if behind:
                    await self.catch_up(await self._store.list(""), clean=True)
                    behind = False
                async for events in self._store.watch("", self._applied):
                    troubled = False
                    await self._apply(self.image.apply(events), clean=True)
                    self._arrived(self.image.revision)
                return
            except HistoryCompacted:
                log.warning("fell behind the coordination store; reading it anew")
                behind = True
            except StoreUnavailable as error:
                if not troubled:
                    log.warning("the coordination store can't be followed; trying on: %s", error)
                troubled = True
                await asyncio.sleep(FOLLOW_RETRY_S)

    def _arrived(self, revision: int) -> None:
        self._applied = revision
        waiting, self._reached = self._reached, []
        for wanted, future in waiting:
            if wanted > revision:
                self._reached.append((wanted, future))
            elif not future.done():
                future.set_result(None)

    async def _apply(self, changes: Changes, clean: bool) -> None:
        for topic in changes.deleted:
            await self._close(topic)
        await asyncio.gather(
            *(self._open(topic, range(len(topic.partitions)), clean) for topic in changes.created)
        )
        for before, after in changes.altered:
            await self._alter(before, after, clean)
        self._node.topics_changed(changes)

    # --- opening, altering, closing

    async def _open(self, topic: Topic, indexes: Iterable[int], clean: bool) -> None:
        settings, indexes = self.settings_of(topic), list(indexes)
        for index in indexes:
            self._node.partitions.expect(topic.name, topic.id, index)
        open_log = partial(
            PartitionLog.open,
            self._disk,
            settings=self._log_settings(settings),
            now_ms=self._node.clock.now_ms(),
            clean=clean,
            cache=self._segment_cache,
        )
        await asyncio.gather(*(self._open_one(topic, index, settings, open_log, clean) for index in indexes))

    async def _open_one(
        self,
        topic: Topic,
        index: int,
        settings: TopicSettings,
        open_log: Callable[[str], PartitionLog],
        clean: bool,
    ) -> None:
        path = self._directory.partition_directory(topic.id, index)
        made: Partition | StorageFailed
        ledger: PartitionLog | None = None
        try:
            opened = await self._node.slow_workers.call(partial(open_log, path))
            if self._has_ledger(topic.id, index):
                ledger = await self._ledgers.open(topic.id, index, clean)
        except Exception as error:  # whatever it is, the other partitions go on
            log.error(
                "partition %s-%d is offline: its log can't be opened: %s",
                topic.name,
                index,
                error,
                exc_info=None if isinstance(error, (OSError, ApiError)) else error,
            )
            made = StorageFailed(f"The log can't be opened: {error}")
        else:
            if topic.id not in self.image.topics_by_id:  # deleted meanwhile (`reopen`)
                logs = [opened] if ledger is None else [opened, ledger]
                self._node.tasks.start(self._discard(logs, path), "discard-log")
                return
            made = self._partition(topic, index, opened, settings)
            made.ledger = None if ledger is None else self._ledgers.ledger(made, ledger)
            report = opened.recovery
            if report.reason:
                log.warning(
                    "partition %s-%d: %d bytes that were never acknowledged as synced were cut: %s",
                    topic.name,
                    index,
                    report.cut_bytes,
                    report.reason,
                )
        self._node.partitions.put(topic.name, topic.id, index, made)

    def _has_ledger(self, topic_id: bytes, index: int) -> bool:
        topic = self.image.topics_by_id.get(topic_id)
        return topic is not None and topic.partitions[index].ledger

    async def _discard(self, logs: list[PartitionLog], path: str) -> None:
        async def remove() -> None:
            await self._node.slow_workers.call(partial(self._disk.remove, path))

        for opened in logs:
            with contextlib.suppress(OSError, ApiError):  # what is not written goes with the rest
                await self._node.slow_workers.call(opened.close)
        await until_done(remove, f"{path} of a deleted topic can't be removed")

    async def reopen(self) -> None:
        """For as long as the node lives: partitions that are offline are tried again."""
        while True:
            await asyncio.sleep(REOPEN_S)
            for name, index in self._node.partitions.offline():
                try:
                    await self._reopen(name, index)
                except Exception:  # the others are tried all the same, and this one again
                    log.exception("partition %s-%d could not be opened again", name, index)
            failed = [partition for partition, is_opening in self._without_ledger.items() if not is_opening]
            await asyncio.gather(*(self._add_ledger(partition, clean=False) for partition in failed))

    async def _reopen(self, name: str, index: int) -> None:
        topic = self.image.topics.get(name)
        if topic is not None:
            await self._open(topic, [index], clean=False)
            self._node.groups.partition_opened(name, index)
            self._node.subscriptions.partition_opened(name, index)

    def _partition(
        self, topic: Topic, index: int, opened: PartitionLog, settings: TopicSettings
    ) -> Partition:
        return Partition(
            topic.name,
            topic.id,
            index,
            opened,
            topic.partitions[index].leader_epoch,
            self._node.turn,
            self._node.flusher,
            settings.flush,
            settings.flush_interval_ms,
            inspector(settings.cleanup_compact, settings.compression_type),
            topic.internal,
            settings.min_insync_replicas,
        )

    async def _alter(self, before: Topic, after: Topic, clean: bool) -> None:
        settings = self.settings_of(after)
        of_logs = self._log_settings(settings)
        for partition in self._node.partitions.of(after.id):
            for each in partition.with_ledger():
                each.lead(after.partitions[partition.index].leader_epoch)
            partition.log.settings = of_logs
            partition.inspect = inspector(settings.cleanup_compact, settings.compression_type)
            partition.min_insync_replicas = settings.min_insync_replicas
            partition.change_flush(settings.flush, settings.flush_interval_ms)
        await self._add_ledgers(after, clean)
        if len(after.partitions) > len(before.partitions):
            await self._open(after, range(len(before.partitions), len(after.partitions)), clean)

    async def _add_ledgers(self, topic: Topic, clean: bool) -> None:
        """Open the ledgers that the coordination store has begun to name."""
        partitions = [p for p in self._node.partitions.of(topic.id) if topic.partitions[p.index].ledger]
        await asyncio.gather(*(self._add_ledger(each, clean) for each in partitions if each.ledger is None))

    async def _add_ledger(self, partition: Partition, clean: bool) -> None:
        """What can't be opened is tried again, by `reopen`."""
        if self._without_ledger.get(partition):
            return
        self._without_ledger[partition] = True
        try:
            opened = await self._ledgers.open(partition.topic_id, partition.index, clean)
        except (OSError, ApiError) as error:
            where = partition.topic, partition.index
            log.error("partition %s-%d: its ledger can't be opened: %s", *where, error)
            self._without_ledger[partition] = False
            return
        self._without_ledger.pop(partition, None)
        if partition.closed:  # its topic was deleted meanwhile
            path = self._directory.partition_directory(partition.topic_id, partition.index)
            self._node.tasks.start(self._discard([opened], path), "discard-log")
        else:
            self._node.partitions.add_ledger(partition, self._ledgers.ledger(partition, opened))

    async def _close(self, topic: Topic) -> None:
        """The topic is gone: nobody finds it any more, and its files go."""
        for partition in self._node.partitions.remove(topic.name, topic.id):
            self._without_ledger.pop(partition, None)
            await self.close_partition(partition)
        if topic.id in self.image.deleted:
            self._node.tasks.start(self.finish_deletion(self.image.deleted[topic.id]), "finish-deletion")

    async def finish_deletion(self, deleted: DeletedTopic) -> None:
        """Remove the directories, then tell the store; also at start, where a crash came between.

        An error is not the end of it: it is tried again until all of it is gone.
        """
        name = id_text(deleted.id)
        await until_done(partial(self._finish_deletion, deleted), f"deleted topic {name} can't be removed")

    async def _finish_deletion(self, deleted: DeletedTopic) -> None:
        name = id_text(deleted.id)
        for found, index in self._directory.partitions():
            if found == name:
                path = self._directory.partition_directory(deleted.id, index)
                await self._node.slow_workers.call(partial(self._disk.remove, path))
        node_id = self._node.settings.node.id
        await self.decide(
            lambda image: (
                controller.finish_deletion(image, image.deleted[deleted.id], node_id)
                if deleted.id in image.deleted
                else Decision([], [])
            ),
            urgent=True,
        )

    async def close_partition(self, partition: Partition) -> bool:
        """Write, sync and close the partition's logs. False if that failed: they are closed all the same."""
        return all(await asyncio.gather(*(self._close_log(each) for each in partition.with_ledger())))

    async def _close_log(self, partition: Partition) -> bool:
        try:
            partition.close()
            await asyncio.sleep(0)  # what was staged before is written now, by the turn and not by the thread
            await self._node.housekeeping.stop_compaction(partition)
            await partition.quiet()
            await self._node.slow_workers.call(partition.log.close)
        except (OSError, ApiError) as error:
            log.error("partition %s-%d could not be closed: %s", partition.topic, partition.index, error)
            return False
        except Exception:  # the others are closed all the same
            log.exception("partition %s-%d could not be closed", partition.topic, partition.index)
            return False
        return partition.log.failed is None

    def _log_settings(self, settings: TopicSettings) -> LogSettings:
        return log_settings(settings, self._node.settings.storage.producer_expiry_ms)

    def settings_of(self, topic: Topic) -> TopicSettings:
        return resolve(topic.config, self._node.settings.topic_defaults)
