"""Mutants of what topics let go of, and of what they keep."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from postroad.broker.topic_changes import TopicChanges
from postroad.cluster.image import Topic
from postroad.log import compaction, retention
from postroad.log.cleaner import KeyMap
from postroad.log.partition_log import PartitionLog
from postroad.log.segment import Segment
from postroad.log.settings import LogSettings
from postroad.log.sync import SyncJob
from postroad.log.writable_log import WritableLog
from postroad.wire.batch import BatchHeader
from postroad.wire.records import Record
from simulator.mutants.mutant import Mutant

EARLY_MS: Final = 5_000


def _drop_newest(is_newest: Callable[..., Any]) -> Callable[..., Any]:
    def is_older(self: KeyMap, record: Record) -> bool:
        return not is_newest(self, record)

    return is_older


def _forget_at_once(clean_batch: Callable[..., Any]) -> Callable[..., Any]:
    def clean(
        batch: memoryview,
        header: BatchHeader,
        keys: KeyMap,
        keep_empty: bool,
        is_new: bool,
        _: int,
        now_ms: int,
    ) -> Any:
        return clean_batch(batch, header, keys, keep_empty, is_new, now_ms, now_ms)

    return clean


def _grow_old_early(is_old: Callable[..., Any]) -> Callable[..., Any]:
    def is_soon_old(segment: Segment, settings: LogSettings, now_ms: int) -> Any:
        return is_old(segment, settings, now_ms + EARLY_MS)

    return is_soon_old


def _keep_start_in_memory(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda log, offset: None


def _leave_checkpoint_unsynced(begin_sync: Callable[..., Any]) -> Callable[..., Any]:
    def begin(self: WritableLog) -> SyncJob | None:
        job: SyncJob | None = begin_sync(self)
        if job is not None:
            job.durable = False
        return job

    return begin


def _leave_deletion_to_itself(delete: Callable[..., Any]) -> Callable[..., Any]:
    async def answer_at_once(self: TopicChanges, topic: Topic) -> None:
        self._topics._node.tasks.start(delete(self, topic), "delete-topic")

    return answer_at_once


def _derive_ids(create: Callable[..., Any]) -> Callable[..., Any]:
    async def create_with_old_id(self: TopicChanges, name: str, **options: Any) -> Any:
        self._random = Random(name)
        return await create(self, name, **options)

    return create_with_old_id


ALL: Final = (
    Mutant("compact-newest", "compaction drops the newest value of a key", KeyMap, "is_newest", _drop_newest),
    Mutant(
        "tombstones-at-once",
        "tombstones go with the second compaction, whenever that is",
        compaction,
        "clean_batch",
        _forget_at_once,
    ),
    Mutant(
        "retention-early",
        "retention goes by a clock that is ahead",
        retention,
        "is_old",
        _grow_old_early,
    ),
    Mutant(
        "start-in-memory",
        "where a log begins is not written down",
        PartitionLog,
        "_save_start",
        _keep_start_in_memory,
    ),
    Mutant(
        "checkpoint-unsynced",
        "a power cut puts closed segments in doubt again",
        WritableLog,
        "begin_sync",
        _leave_checkpoint_unsynced,
    ),
    Mutant(
        "deletion-not-awaited",
        "the deletion of a topic is answered before it is committed",
        TopicChanges,
        "delete",
        _leave_deletion_to_itself,
    ),
    Mutant(
        "ids-used-again",
        "a topic that is made anew has the id, and so the files, of the one before it",
        TopicChanges,
        "create",
        _derive_ids,
    ),
)
