"""The replicas that lie on this node: opened, given their role, altered and closed as the image says.

A partition's state in the store names its replicas and its leader. What names this node is opened here, in a
thread; whatever else there is of a topic is answered with NOT_LEADER_OR_FOLLOWER. Roles follow the store at
once: they never wait for a log that is being opened, and a log that has been opened takes the role that the
store names at that moment.

What is done to the files of one partition is done one after the other: a partition that moves away and comes
back is closed, perhaps deleted (`strays`), and opened only then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

from postroad.broker.data_directory import DataDirectory
from postroad.broker.inspection import inspector
from postroad.broker.ledger_logs import LedgerLogs
from postroad.broker.log_settings import log_settings
from postroad.broker.partition import FLUSH_SYNC, Partition
from postroad.broker.partitions import TopicPartition
from postroad.broker.tasks import until_done
from postroad.cluster import controller, leadership
from postroad.cluster.controller import Decision
from postroad.cluster.ids import id_text
from postroad.cluster.image import Changes, DeletedTopic, Image, Topic
from postroad.cluster.internal_topics import CLIENTS_WRITE
from postroad.cluster.topic_config import TopicSettings, resolve
from postroad.errors import ApiError, StorageFailed
from postroad.log.partition_log import PartitionLog
from postroad.log.segment_cache import SegmentCache
from postroad.log.settings import LogSettings

if TYPE_CHECKING:
    from postroad.broker.node import Node

REOPEN_S: Final = 5.0  # between two tries to open a log, and the least between two that were begun anew
LEFT_MS: Final = 500  # a follower that has something to fetch does so within milliseconds
TIMEOUTS_S: Final = 0.5  # between two looks for producers that have waited long enough

log = logging.getLogger(__name__)

Opening = asyncio.Task[None]

CONFIGS_KEPT: Final = 1000  # resolved; most topics share a few, and to resolve one takes some 50 µs


class Replicas:
    def __init__(self, node: Node, directory: DataDirectory) -> None:
        self._node = node
        self._directory = directory
        self._me = node.settings.node.id
        self._disk = node.runtime.disk
        self._segment_cache = SegmentCache()  # one for all logs bounds the open files
        self._ledgers = LedgerLogs(node, directory, self._segment_cache)
        # Which task opens its log; None if it could not be opened, and is tried again.
        self._without_ledger: dict[Partition, Opening | None] = {}
        self._jobs: dict[TopicPartition, Opening] = {}  # the last one begun, of files that are worked on
        self._begun_anew_s: dict[TopicPartition, float] = {}  # when, if that was a moment ago
        self._resolved = lru_cache(CONFIGS_KEPT)(self._resolve)

    @property
    def _image(self) -> Image:
        return self._node.image

    # --- as the image says

    def apply(self, changes: Changes, clean: bool) -> list[Opening]:
        """Follow what has changed. What is returned has to be awaited before new partitions can be used."""
        for topic in changes.deleted:
            self._remove(topic)
        opening = [
            task
            for topic in changes.created
            for task in self._open_all(topic, range(len(topic.partitions)), clean)
        ]
        for change in changes.partitions:
            if self._me in change.before.replicas and self._me not in change.after.replicas:
                self._let_go(change.topic, change.index)
        self._node.roles.follow_changes(changes)
        for change in changes.partitions:
            if self._me in change.after.replicas and self._me not in change.before.replicas:
                opening += self._open_all(change.topic, [change.index], clean)
        for before, after in changes.altered:
            self._alter(after)
            opening += self._add_ledgers(after, clean)
            opening += self._open_all(after, range(len(before.partitions), len(after.partitions)), clean)
        return opening

    def _open_all(self, topic: Topic, indexes: Iterable[int], clean: bool) -> list[Opening]:
        """Begin to open those of the topic's partitions that lie on this node."""
        partitions = self._node.partitions
        here = []
        for index in indexes:
            if self._me in topic.partitions[index].replicas:
                partitions.expect(topic.name, topic.id, index)
                here.append(index)
            else:
                partitions.lead_elsewhere(topic.name, topic.id, index)
        settings = self.settings_of(topic)
        open_log = self._opener(topic, clean)
        return [
            self.work_on(
                (topic.id, index),
                partial(self._open, topic, index, settings, open_log, clean),
                "open-partition",
            )
            for index in here
        ]

    def work_on(self, where: TopicPartition, work: Callable[[], Awaitable[None]], name: str) -> Opening:
        """Do something to a partition's files, after whatever was begun before."""
        before = self._jobs.get(where)

        async def run() -> None:
            if before is not None:
                await asyncio.wait([before])
            await work()

        def done(task: Opening) -> None:
            if self._jobs.get(where) is task:
                del self._jobs[where]

        task = self._jobs[where] = self._node.tasks.start(run(), name)
        task.add_done_callback(done)
        return task

    def is_busy(self, where: TopicPartition) -> bool:
        """Whether the partition's files are worked on."""
        return where in self._jobs or self._node.partitions.replica(*where) is not None

    def is_here(self, topic_id: bytes, index: int) -> bool:
        """Whether the coordination store names a replica of the partition on this node."""
        topic = self._image.topics_by_id.get(topic_id)
        return topic is not None and self._me in topic.partitions[index].replicas

    def _opener(self, topic: Topic, clean: bool) -> Callable[[str], PartitionLog]:
        return partial(
            PartitionLog.open,
            self._disk,
            settings=self._log_settings(topic),
            now_ms=self._node.clock.now_ms(),
            clean=clean,
            cache=self._segment_cache,
        )

    async def _open(
        self,
        topic: Topic,
        index: int,
        settings: TopicSettings,
        open_log: Callable[[str], PartitionLog],
        clean: bool,
    ) -> None:
        has_moved = topic.id in self._image.topics_by_id and not self.is_here(topic.id, index)
        if has_moved or self._node.partitions.replica(topic.id, index) is not None:
            return
        path = self._directory.partition_directory(topic.id, index)
        ledger: PartitionLog | None = None
        try:
            opened = await self._node.slow_workers.call(partial(open_log, path))
            if self._has_ledger(topic.id, index):
                ledger = await self._ledgers.open(topic, index, clean)
        except Exception as error:  # whatever it is, the other partitions go on
            log.error(
                "partition %s-%d is offline: its log can't be opened: %s",
                topic.name,
                index,
                error,
                exc_info=None if isinstance(error, (OSError, ApiError)) else error,
            )
            offline = StorageFailed(f"The log can't be opened: {error}")
            self._node.partitions.fail(topic.name, topic.id, index, offline)
        else:
            if not self.is_here(topic.id, index):  # deleted or moved away meanwhile
                logs = [opened] if ledger is None else [opened, ledger]
                await self._discard(logs, topic.id, path)
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
            self._node.partitions.put(made)
            self._node.roles.assume(made)

    def _has_ledger(self, topic_id: bytes, index: int) -> bool:
        topic = self._image.topics_by_id.get(topic_id)
        return topic is not None and topic.partitions[index].ledger

    async def _discard(self, logs: list[PartitionLog], topic_id: bytes, path: str) -> None:
        """Close logs that have no use any more; their directory goes if the topic was deleted."""

        async def remove() -> None:
            await self._node.slow_workers.call(partial(self._disk.remove, path))

        for opened in logs:
            with contextlib.suppress(OSError, ApiError):  # what is not written goes with the rest
                await self._node.slow_workers.call(opened.close)
        if topic_id not in self._image.topics_by_id:
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
            failed = [partition for partition, opening in self._without_ledger.items() if opening is None]
            await asyncio.gather(*(self._begin_ledger(partition, clean=False) for partition in failed))

    async def _reopen(self, name: str, index: int) -> None:
        topic = self._image.topics.get(name)
        if topic is not None:
            await asyncio.gather(*self._open_all(topic, [index], clean=False))

    def begin_anew(self, log: Partition, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """The disk of one of a partition's logs has failed: nobody knows what it has kept.

        So the replica is out of sync, and leads no more, before it is opened again: at once, or after a pause
        if that was done a moment ago. Where it is the only one its reads go on instead, until the node is
        started anew (`Partition.synced`). `meanwhile` is done while the replica is closed, and out of sync.
        """
        partition = self._node.partitions.parent_of(log)
        if partition.leads:
            self._node.roles.stop_leading(partition)
        self._node.roles.fetchers.remove(partition)
        self._node.partitions.drop(partition)
        self._node.partitions.lead_elsewhere(partition.topic, partition.topic_id, partition.index)
        where = partition.topic_id, partition.index
        self.work_on(where, partial(self._begin_anew, partition, meanwhile), "begin-anew")

    async def _begin_anew(
        self, partition: Partition, meanwhile: Callable[[], Awaitable[None]] | None
    ) -> None:
        where = partition.topic_id, partition.index

        def decide(image: Image) -> Decision:
            decisions = leadership.begin_anew(image, self._me, [where])
            return decisions[0] if decisions else Decision([], [])

        async def leave() -> None:
            await self._node.topics.decide(decide)

        await self.close_partition(partition)
        await self._until_ledger_opened(partition)
        await until_done(leave, f"{partition.topic}-{partition.index} can't be reported as out of sync")
        if meanwhile is not None:
            await meanwhile()
        await self._pause_anew(where)
        topic = self._image.topics_by_id.get(partition.topic_id)
        if topic is not None:
            self._open_all(topic, [partition.index], clean=False)

    async def _pause_anew(self, where: TopicPartition) -> None:
        """A disk that goes on failing is tried now and then, not all the time."""
        now_s = self._node.loop.time()
        recent = {at: s for at, s in self._begun_anew_s.items() if now_s - s < REOPEN_S}
        if where in recent and self.is_here(*where):
            await asyncio.sleep(REOPEN_S)
        self._begun_anew_s = recent | {where: self._node.loop.time()}

    async def run_timeouts(self) -> None:
        """For as long as the node lives: nobody waits for replicas longer than it asked for.

        Nor do producers wait for a leader that has lost touch with the cluster, and nobody follows any more.
        """
        while True:
            await asyncio.sleep(TIMEOUTS_S)
            now_ms = self._node.clock.monotonic_ms()
            for partition in self._node.partitions:
                for waiters in (partition.producers, partition.deletions):
                    if waiters.waiting:
                        waiters.expire(now_ms)
                if partition.is_left or partition.producers.waiting:
                    partition.note_left(self._is_left(partition, now_ms))
                    if partition.is_left:
                        self._node.partition_left(partition)

    def _is_left(self, partition: Partition, now_ms: int) -> bool:
        """Whether another may lead, and no follower has fetched for long though there is what to fetch."""
        if self._node.evidence.covers(partition) or partition.leadership is None:
            return False
        heard_ms = partition.leadership.heard_ms()
        return heard_ms is not None and now_ms >= heard_ms + LEFT_MS

    def _partition(
        self, topic: Topic, index: int, opened: PartitionLog, settings: TopicSettings
    ) -> Partition:
        return Partition(
            topic.name,
            topic.id,
            index,
            opened,
            self._node.turn,
            self._node.flusher,
            settings.flush,
            settings.flush_interval_ms,
            inspector(settings.cleanup_compact, settings.compression_type),
            topic.internal and topic.name not in CLIENTS_WRITE,
            settings.min_insync_replicas,
        )

    def _alter(self, topic: Topic) -> None:
        settings = self.settings_of(topic)
        of_logs = self._log_settings(topic)
        for partition in self._node.partitions.replicas_of(topic.id):
            partition.log.settings = of_logs
            partition.inspect = inspector(settings.cleanup_compact, settings.compression_type)
            partition.min_insync_replicas = settings.min_insync_replicas
            partition.change_flush(settings.flush, settings.flush_interval_ms)
            self._node.roles.altered(partition)

    def _add_ledgers(self, topic: Topic, clean: bool) -> list[Opening]:
        """Begin to open the ledgers that the coordination store has begun to name."""
        return [
            self._begin_ledger(partition, clean)
            for partition in self._node.partitions.replicas_of(topic.id)
            if topic.partitions[partition.index].ledger
            and partition.ledger is None
            and self._without_ledger.get(partition) is None
        ]

    def _begin_ledger(self, partition: Partition, clean: bool) -> Opening:
        """Noted at once: a ledger that was opened twice would be written by two logs."""
        opening = self._node.tasks.start(self._add_ledger(partition, clean), "open-ledger")
        self._without_ledger[partition] = opening
        return opening

    async def _add_ledger(self, partition: Partition, clean: bool) -> None:
        """What can't be opened is tried again, by `reopen`."""
        try:
            topic = self._image.topics_by_id[partition.topic_id]
            opened = await self._ledgers.open(topic, partition.index, clean)
        except KeyError:  # deleted meanwhile
            self._without_ledger.pop(partition, None)
            return
        except (OSError, ApiError) as error:
            where = partition.topic, partition.index
            log.error("partition %s-%d: its ledger can't be opened: %s", *where, error)
            if not partition.closed:
                self._without_ledger[partition] = None
            return
        self._without_ledger.pop(partition, None)
        if partition.closed:  # its topic was deleted, it was moved away or begins anew
            path = self._directory.partition_directory(partition.topic_id, partition.index)
            await self._discard([opened], partition.topic_id, path)
        else:
            self._node.partitions.add_ledger(partition, self._ledgers.ledger(partition, opened))
            self._node.roles.ledger_added(partition)

    # --- the end

    def _let_go(self, topic: Topic, index: int) -> None:
        """The partition has moved away: it is closed, and its files are strays from now on."""
        partition = self._node.partitions.replica(topic.id, index)
        if partition is not None:
            if partition.leads:
                self._node.roles.stop_leading(partition)
            self._node.roles.fetchers.remove(partition)
            self._node.partitions.drop(partition)
            self.work_on((topic.id, index), partial(self._close_moved, partition), "close-moved")
        self._node.partitions.lead_elsewhere(topic.name, topic.id, index)
        self._node.strays.look()

    async def _close_moved(self, partition: Partition) -> None:
        await self.close_partition(partition)
        await self._until_ledger_opened(partition)

    async def _until_ledger_opened(self, partition: Partition) -> None:
        """Wait for a ledger that is being opened: two logs in one directory would overwrite each other."""
        opening = self._without_ledger.pop(partition, None)
        if opening is not None:
            await asyncio.wait([opening])

    def _remove(self, topic: Topic) -> None:
        """The topic is gone: nobody finds it any more, and its files go."""
        removed = self._node.partitions.remove(topic.name, topic.id)
        for partition in removed:
            self._without_ledger.pop(partition, None)
        self._node.tasks.start(self._close_deleted(topic, removed), "close-deleted")

    async def _close_deleted(self, topic: Topic, removed: list[Partition]) -> None:
        await asyncio.gather(*(self.close_partition(partition) for partition in removed))
        deleted = self._image.deleted.get(topic.id)
        if deleted is not None:
            await self._finish_deletion(deleted, range(len(topic.partitions)))

    def finish_deletions(self) -> None:
        """Begin to remove, at start, what is left of topics whose deletion a crash has cut short."""
        left: dict[str, list[int]] = {}
        for name, index in self._directory.partitions() if self._image.deleted else ():
            left.setdefault(name, []).append(index)
        for deleted in self._image.deleted.values():
            indexes = left.get(id_text(deleted.id), ())
            self._node.tasks.start(self._finish_deletion(deleted, indexes), "finish-deletion")

    async def _finish_deletion(self, deleted: DeletedTopic, indexes: Iterable[int]) -> None:
        """Remove the directories of these partitions, as far as they are here, then tell the store.

        An error is not the end of it: it is tried again until all of it is gone.
        """
        finish = partial(self._try_deletion, deleted, indexes)
        await until_done(finish, f"deleted topic {id_text(deleted.id)} can't be removed")

    async def _try_deletion(self, deleted: DeletedTopic, indexes: Iterable[int]) -> None:
        for index in indexes:
            path = self._directory.partition_directory(deleted.id, index)
            await self._node.slow_workers.call(partial(self._disk.remove, path))
        node_id = self._node.settings.node.id
        await self._node.topics.decide(
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

    # --- settings

    def is_synced(self, topic: Topic) -> bool:
        """Whether the topic's messages are synced before they are acknowledged."""
        return self.settings_of(topic).flush == FLUSH_SYNC

    def settings_of(self, topic: Topic) -> TopicSettings:
        """What holds for the topic here. Cheap enough to be asked for each partition at each check."""
        return self._resolved(tuple(topic.config.items()), topic.partitions[0].counted)

    def _resolve(self, config: tuple[tuple[str, str], ...], replicas: int) -> TopicSettings:
        return resolve(dict(config), self._node.settings.topic_defaults, replicas)

    def _log_settings(self, topic: Topic) -> LogSettings:
        expiry_ms = self._node.settings.storage.producer_expiry_ms
        return log_settings(self.settings_of(topic), expiry_ms, has_copies(topic))


def has_copies(topic: Topic) -> bool:
    """Whether some partition of the topic has several replicas."""
    return any(len(state.replicas) > 1 for state in topic.partitions)
