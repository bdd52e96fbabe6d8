"""Mutants of the log and of what acknowledges messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from postroad.broker import produce_run
from postroad.broker.commit_waiters import Committed
from postroad.broker.partition import Partition
from postroad.log import recovery
from postroad.log.disk import File
from postroad.log.index import SparseIndex
from postroad.log.producers import Producers
from postroad.log.scan import DamagedBatch, walk, walk_unordered
from postroad.log.segment import Segment
from postroad.log.sync import SyncJob
from postroad.log.writable_log import WritableLog
from simulator.mutants.mutant import Mutant


def _acknowledge_at_once(_: Callable[..., Any]) -> Callable[..., Any]:
    def when_committed(self: Partition, offset: int, call: Committed, deadline_ms: int = 0) -> None:
        call(self.log.failed)

    return when_committed


def _forget_failure(finish_sync: Callable[..., Any]) -> Callable[..., Any]:
    def forget(self: WritableLog, job: SyncJob, _: OSError | None) -> None:
        finish_sync(self, job, None)

    return forget


def _append_again(admit: Callable[..., Any]) -> Callable[..., Any]:
    def always_new(self: Producers, *batch: Any) -> None:
        admit(self, *batch)

    return always_new


def _show_what_is_written(write: Callable[..., Any]) -> Callable[..., Any]:
    def show(self: Partition) -> None:
        write(self)
        self.high_watermark = max(self.high_watermark, self.log.written_offset)
        self._wake_readers()

    return show


def _skip_checksums(_: Callable[..., Any]) -> Callable[..., Any]:
    def headers_only(file: File, position: int, end: int, offset: int) -> Iterator[Any]:
        yield from walk(file, position, end, offset)

    return headers_only


def _never_wait(_: Callable[..., Any]) -> Callable[..., Any]:
    return lambda partition, acks, end: False


def _take_all_entries(_: Callable[..., Any]) -> Callable[..., Any]:
    def valid_entries(self: SparseIndex, entries: object) -> int:
        return len(self.offsets)

    return valid_entries


def _trust_the_index(locate: Callable[..., Any]) -> Callable[..., Any]:
    def trust(self: Segment, offset: int) -> int:
        entry = self.index.before_offset(offset)
        if not entry.position or entry.position >= self.size:
            position: int = locate(self, offset)
            return position
        try:
            for at, header in walk_unordered(self.file, entry.position, self.size):
                if header.last_offset >= offset:
                    return at
        except DamagedBatch:
            return entry.position
        return self.size

    return trust


ALL: Final = (
    Mutant(
        "acknowledge-before-sync",
        "acks=all is answered before the sync",
        Partition,
        "when_committed",
        _acknowledge_at_once,
    ),
    Mutant(
        "forget-failed-sync",
        "a failed sync counts as a good one",
        WritableLog,
        "finish_sync",
        _forget_failure,
    ),
    Mutant(
        "append-again",
        "a producer's repetition is appended again",
        Producers,
        "admit",
        _append_again,
    ),
    Mutant(
        "show-unsynced",
        "the watermark rises above what is synced",
        Partition,
        "write",
        _show_what_is_written,
    ),
    Mutant(
        "serve-torn-tail",
        "recovery takes batches without looking at their checksums",
        recovery,
        "scan",
        _skip_checksums,
    ),
    Mutant(
        "short-way-unchecked",
        "the short way of produce requests does not wait for the commit",
        produce_run,
        "waits_for_commit",
        _never_wait,
    ),
    Mutant(
        "index-trusted",
        "what an index says is taken for true",
        SparseIndex,
        "_valid_entries",
        _take_all_entries,
        also=(Mutant("look-ups", "where an entry leads nobody checks", Segment, "locate", _trust_the_index),),
    ),
)
