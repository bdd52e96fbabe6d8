"""A follower takes its log back, in a thread, and may stop anywhere in between (L2, L12)."""

from __future__ import annotations

import contextlib
import errno
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import StorageFailed
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import PartitionLog
from postroad.log.producers import SUFFIX

from .logs import (
    DIRECTORY,
    NOW,
    SMALL,
    Crash,
    Stored,
    all_kept,
    all_lost,
    append,
    batch,
    crashed,
    open_log,
    send,
    stop_at,
    stored,
    sync,
)

SETTINGS = replace(SMALL, copied=True)


def replica(disk: MemoryDisk, batches: int = 16, synced: int = 10) -> PartitionLog:
    """Several segments and epochs, with gaps as a compacted leader leaves them; a part of it is synced."""
    leader = open_log(MemoryDisk())
    for number in range(2 * batches):
        content = batch(2, producer=5, epoch=0, sequence=2 * number)
        send(leader, content, leader_epoch=number // 6)
    log = open_log(disk, SETTINGS)
    for number, entry in enumerate(stored(leader)[::2]):
        log.append_copy(memoryview(entry.content), 99, NOW)
        log.write()
        if number < synced:
            sync(log)
    return log


def is_beginning(log: PartitionLog, whole: list[Stored]) -> bool:
    survivors = stored(log)
    return survivors == whole[: len(survivors)]


def pick_of(seed: int) -> Pick:
    return (all_lost, all_kept)[seed] if seed < 2 else random.Random(seed).randrange


@examples(max_examples=150)
@given(st.integers(0, 64), st.integers(0, 16), st.integers(0, 40), st.integers(0, 1000))
def test_a_crash_anywhere_in_a_truncation_leaves_a_beginning(
    offset: int, synced: int, operation: int, seed: int
) -> None:
    disk = MemoryDisk()
    log = replica(disk, synced=synced)
    whole, safe = stored(log), log.synced_offset
    stop_at(disk, operation, Crash())
    with contextlib.suppress(Crash):
        log.truncate_to(offset, NOW)
    again = open_log(crashed(disk, pick_of(seed)), SETTINGS)
    assert is_beginning(again, whole)
    assert again.end_offset >= min(offset - 1, safe), "no more is lost than was to go, or never was synced"
    check_state(again)


@examples(max_examples=150)
@given(st.integers(0, 100), st.integers(0, 16), st.integers(0, 40), st.integers(0, 1000))
def test_a_crash_anywhere_in_a_reset_leaves_all_or_nothing(
    offset: int, synced: int, operation: int, seed: int
) -> None:
    disk = MemoryDisk()
    log = replica(disk, synced=synced)
    whole, safe = stored(log), log.synced_offset
    stop_at(disk, operation, Crash())
    with contextlib.suppress(Crash):
        log.reset_to(offset, NOW)
    again = open_log(crashed(disk, pick_of(seed)), SETTINGS)
    if (again.start_offset, again.end_offset) == (offset, offset) and not stored(again):
        assert again.leader_epochs.entries == []
        assert again.producers() == []
    else:
        assert is_beginning(again, whole)
        assert again.end_offset >= safe
    check_state(again)


def check_state(log: PartitionLog) -> None:
    """Epochs and producers are those of the batches that are there; the log goes on and survives."""
    assert all(start < log.end_offset for _, start in log.leader_epochs.entries)
    assert log.start_offset <= log.watermark <= log.end_offset or log.watermark == -1
    survivors = stored(log)
    last = [producer.last_sequence for producer in log.producers()]
    assert last == ([survivors[-1].offset + 1] if survivors else [])
    end = log.end_offset
    send(log, batch(1, size=11), leader_epoch=1000)
    sync(log)
    disk = log.disk
    assert isinstance(disk, MemoryDisk)
    again = open_log(disk.crash(all_lost), SETTINGS)
    assert again.end_offset == end + 1
    assert stored(again)[:-1] == survivors


def test_a_reset_log_keeps_what_is_appended_after_it() -> None:
    disk = MemoryDisk()
    log = replica(disk)
    log.reset_to(7, NOW)
    send(log, batch(3), leader_epoch=100)
    assert stored(open_log(disk.copy(), SETTINGS)) == stored(log)
    sync(log)
    assert stored(open_log(disk.crash(all_lost), SETTINGS)) == stored(log)


def test_a_reset_leaves_what_is_not_the_logs() -> None:
    disk = MemoryDisk()
    log = replica(disk)
    beside = PartitionLog.open(disk, f"{DIRECTORY}/ledger", SMALL, NOW, clean=False)
    send(beside, batch(4))
    sync(beside)
    log.reset_to(500, NOW)
    again = PartitionLog.open(disk.crash(all_lost), f"{DIRECTORY}/ledger", SMALL, NOW, clean=False)
    assert stored(again) == stored(beside)


def test_a_reset_that_can_not_be_finished_takes_the_log_offline() -> None:
    disk = MemoryDisk()
    log = replica(disk)
    stop_at(disk, 2, OSError(errno.EIO, "injected"))
    with pytest.raises(StorageFailed):
        log.reset_to(500, NOW)
    with pytest.raises(StorageFailed):
        log.append_copy(memoryview(b""), 99, NOW)
    disk.on_operation = None
    assert open_log(disk, SETTINGS).end_offset == 500


def test_a_job_that_is_under_way_keeps_everything_else_out() -> None:
    log = replica(MemoryDisk(), synced=3)
    append(log, batch(), leader_epoch=200)
    job = log.begin_truncation(20, NOW)
    assert job is not None
    log.write()  # by the turn in which it was staged: there is nothing any more
    assert log.begin_sync() is None
    assert log.compaction(NOW, log.end_offset) is None
    assert log.expire(NOW, log.end_offset) == []
    with pytest.raises(AssertionError):
        log.append_copy(memoryview(b""), 300, NOW)
    job.run()
    log.finish_truncation(job, None)
    assert log.end_offset <= 20
    sync(log)
    check_state(log)


@pytest.mark.parametrize("reset", [False, True])
def test_a_sync_that_was_overtaken_tells_nothing_of_the_log_before(reset: bool) -> None:
    """Neither its snapshot nor its epochs: they would be believed when the log has grown past them."""
    disk = MemoryDisk()
    log = replica(disk, synced=4)
    job = log.begin_sync()
    assert job is not None
    assert job.snapshot is not None
    assert job.epochs is not None
    if reset:
        log.reset_to(6, NOW)
    else:
        log.truncate_to(6, NOW)
    end = log.end_offset
    before = {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)}
    with contextlib.suppress(FileNotFoundError):
        job.run()
    log.finish_sync(job, None)
    assert {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY)} == before
    assert [name for name in before if name.endswith(SUFFIX) and int(name.split(".")[0]) > end] == []
    for number in range(40):
        send(log, batch(2), leader_epoch=50 + number)
    sync(log)
    again = open_log(disk.copy(), SETTINGS)
    assert again.leader_epochs.entries == log.leader_epochs.entries
    assert again.producers() == log.producers()


def test_a_compaction_that_a_truncation_overtook_is_installed_once() -> None:
    disk = MemoryDisk()
    settings = replace(SETTINGS, cleanup_delete=False, cleanup_compact=True, min_cleanable_dirty_ratio=0.0)
    log = open_log(disk, settings)
    for number in range(40):
        send(log, batch(1, key=b"%d" % (number % 3)))
    log.roll()
    sync(log)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    job.run()
    log.truncate_to(log.end_offset - 1, NOW)
    whole = stored(log)
    log.install(job).run()
    assert stored(log) == whole
    assert stored(open_log(disk.crash(all_lost), settings)) == whole
