from __future__ import annotations

import contextlib
import errno
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.log.cleaner import KEYS_MAX
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import PartitionLog
from postroad.wire.batch import DELETE_HORIZON, TRANSACTIONAL, read_header, walk
from postroad.wire.records import Record, encode_batch

from .logs import (
    DIRECTORY,
    NOW,
    SMALL,
    Crash,
    all_kept,
    all_lost,
    batch,
    crashed,
    open_log,
    read_all,
    records,
    send,
    stop_at,
    stored,
    sync,
)

DAY_MS = 24 * 3_600_000
COMPACT = replace(
    SMALL,
    segment_bytes=500,
    cleanup_delete=False,
    cleanup_compact=True,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=DAY_MS,
)

Written = list[tuple[int, bytes | None]]
"""(key, value); None deletes the key."""


def put(log: PartitionLog, written: Written, compression: int = 0, now_ms: int = NOW) -> None:
    """All in one batch."""
    content = [Record(i, now_ms, b"key-%d" % key, value) for i, (key, value) in enumerate(written)]
    send(log, memoryview(encode_batch(content, compression=compression)), now_ms=now_ms)


def compact(log: PartitionLog, now_ms: int = NOW, keys_max: int = KEYS_MAX) -> bool:
    job = log.compaction(now_ms, log.end_offset)
    if job is None:
        return False
    job.keys_max = keys_max
    job.run()
    log.install(job).run()
    return True


def closed(log: PartitionLog) -> PartitionLog:
    """Everything so far lies in segments that compaction may touch."""
    log.roll()
    sync(log)
    return log


def state(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """What a consumer knows who reads all of it."""
    known: dict[bytes | None, bytes | None] = {}
    for record in records(log):
        known[record.key] = record.value
    return known


def newest(written: list[Written]) -> dict[bytes, int]:
    """The naive model: the offset of each key's newest record."""
    found, offset = {}, 0
    for group in written:
        for key, _ in group:
            found[b"key-%d" % key] = offset
            offset += 1
    return found


def some_log(disk: MemoryDisk, groups: int = 24) -> tuple[PartitionLog, list[Written]]:
    log, chance = open_log(disk, COMPACT), random.Random(1)
    written: list[Written] = []
    for number in range(groups):
        group: Written = [(chance.randrange(6), b"%d-%d" % (number, i) * 8) for i in range(3)]
        if number % 4 == 3:
            group.append((100 + number, b"only once"))
        written.append(group)
        put(log, group)
    closed(log)
    log.settings = replace(COMPACT, segment_bytes=1300)  # so that two or three become one
    return log, written


FATES: tuple[Pick, ...] = (all_lost, all_kept, *(random.Random(seed).randrange for seed in range(6)))


def test_of_each_key_the_newest_record_stays_at_its_offset() -> None:
    log, written = some_log(MemoryDisk())
    before, end = {record.offset: record for record in records(log)}, log.end_offset
    size = log.size_bytes
    assert compact(log)
    after = records(log)
    assert {record.key: record.offset for record in after} == newest(written)
    assert all(before[record.offset] == record for record in after)
    assert log.end_offset == end
    assert log.size_bytes < size / 2


@examples(max_examples=60)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.none() | st.binary(max_size=60)), min_size=1, max_size=4),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 4),
    st.integers(1, 30),
)
def test_compaction_is_the_naive_model(written: list[Written], compression: int, again: int) -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    for number, group in enumerate(written):
        put(log, group, compression)
        if number == again:
            compact(closed(log))
    before = state(log)
    end = log.end_offset
    compact(closed(log))
    assert state(log) == before
    for found in (log, open_log(disk.copy(), COMPACT), open_log(disk.crash(all_lost), COMPACT)):
        assert {record.key: record.offset for record in records(found)} == newest(written)
        assert len(records(found)) == len(newest(written))
        assert found.end_offset == end


def test_a_crash_after_each_operation_leaves_the_old_or_the_new_records() -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log, written = some_log(disk)
        put(log, [(1, b"last")])
        sync(log)
        written.append([(1, b"last")])
        known = state(log)
        count = stop_at(disk, operation, Crash())
        with contextlib.suppress(Crash):
            compact(log)
        for pick in FATES:
            found = crashed(disk, pick)
            again = open_log(found, COMPACT)
            assert state(again) == known
            offsets = [record.offset for record in records(again)]
            assert offsets == sorted(set(offsets)), "nothing twice"
            assert again.end_offset == log.end_offset
            names = found.list(DIRECTORY)
            assert not [name for name in names if name.endswith((".cleaned", ".swap", ".tmp"))]
            compact(closed(again))
            assert {record.key: record.offset for record in records(again)} == newest(written)
        if count() <= operation:
            return
        operation += 1


def test_a_crash_while_an_interrupted_compaction_is_finished_is_safe_too() -> None:
    disk = MemoryDisk()
    log, written = some_log(disk)
    known = state(log)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    job.run()  # swapped, and then the machine stops
    for operation in range(40):
        found = disk.copy()
        stop_at(found, operation, Crash())
        with contextlib.suppress(Crash):
            open_log(found, COMPACT)
        for pick in FATES:
            again = open_log(crashed(found, pick), COMPACT)
            assert state(again) == known
            assert {record.key: record.offset for record in records(again)} == newest(written)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_error_at_each_operation_leaves_the_log_as_it_was(error: int) -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log, _ = some_log(disk)
        known = state(log)
        count = stop_at(disk, operation, OSError(error, "injected"))
        with contextlib.suppress(OSError):
            compact(log)
        disk.on_operation = None
        assert state(log) == known
        assert log.failed is None
        put(log, [(0, b"goes on")])
        log.close()
        again = open_log(disk.crash(all_lost), COMPACT)
        assert state(again) == {**known, b"key-0": b"goes on"}
        if count() <= operation:
            return
        operation += 1


def test_what_an_error_left_behind_never_brings_old_records_back() -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log, _ = some_log(disk)
        job = log.compaction(NOW, log.end_offset)
        assert job is not None
        count = stop_at(disk, operation, OSError(errno.EIO, "injected"))
        with contextlib.suppress(OSError):
            job.run()
        disk.on_operation = None
        if job.swapped:
            log.install(job).run()
        log.settings = replace(COMPACT, segment_bytes=4000)  # other segments become one than before
        for key in range(6):
            put(log, [(key, None)])
        compact(closed(log))
        compact(closed(log), NOW + 2 * DAY_MS)  # the tombstones go
        known = state(log)
        for pick in FATES:
            again = open_log(disk.crash(pick), COMPACT)
            assert state(again) == known
            offsets = [record.offset for record in records(again)]
            assert offsets == sorted(set(offsets)), "nothing twice"
        if count() <= operation:
            return
        operation += 1


def test_readers_keep_the_old_segments_until_the_job_is_installed() -> None:
    log, _ = some_log(MemoryDisk())
    before = stored(log)
    slice_ = log.read(0, 10_000, log.written_offset)
    assert slice_ is not None
    held = slice_.file.read(slice_.position, slice_.length)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    assert log.compaction(NOW, log.end_offset) is None, "one at a time"
    job.run()
    assert stored(log) == before
    compaction_end = log.install(job)
    after = stored(log)
    assert len(after) < len(before)
    compaction_end.run()
    compaction_end.run()
    assert stored(log) == after
    assert slice_.file.read(slice_.position, slice_.length) == held


def test_tombstones_stay_for_their_time_and_then_go() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    put(log, [(1, b"value"), (2, b"other")])
    put(log, [(1, None)])
    compact(closed(log), NOW)
    assert state(log) == {b"key-2": b"other", b"key-1": None}
    ((header, _),) = ((h, c) for h, c in read_all(log) if h.attributes & DELETE_HORIZON)
    assert header.base_timestamp == NOW + DAY_MS
    put(log, [(3, b"more")])
    compact(closed(log), NOW + DAY_MS - 1)
    assert b"key-1" in state(log)
    put(log, [(4, b"more")])
    compact(closed(log), NOW + DAY_MS)
    assert sorted(state(log)) == [b"key-2", b"key-3", b"key-4"]  # type: ignore[type-var]
    assert [record.timestamp for record in records(log)] == [NOW] * 3


def test_records_without_a_key_go() -> None:
    log = open_log(MemoryDisk(), COMPACT)
    put(log, [(1, b"value")])
    send(log, batch(2, key=None))
    compact(closed(log))
    assert state(log) == {b"key-1": b"value"}


def test_a_producers_last_batch_stays_if_only_empty() -> None:
    disk = MemoryDisk()
    log = open_log(disk, COMPACT)
    for sequence in range(6):
        send(log, batch(key=b"same", producer=7, epoch=0, sequence=sequence))
    put(log, [(1, b"value")])
    send(log, batch(key=b"same"))
    compact(closed(log))
    assert [record.key for record in records(log)] == [b"key-1", b"same"]
    assert [header.base_sequence for header, _ in read_all(log) if header.producer_id == 7] == [5]
    for name in disk.list(DIRECTORY):
        if name.endswith(".producers"):
            disk.remove(f"{DIRECTORY}/{name}")
    (producer,) = open_log(disk, COMPACT).producers()
    assert (producer.producer_id, producer.last_sequence) == (7, 5)


def test_an_open_transaction_is_not_compacted() -> None:
    log = open_log(MemoryDisk(), COMPACT)
    send(log, batch(key=b"k", producer=1, epoch=0, sequence=0, attributes=TRANSACTIONAL))
    assert log.compaction(NOW, log.end_offset) is None
    assert closed(log).compaction(NOW, log.end_offset) is None


def test_young_records_wait_for_the_lag() -> None:
    log, _ = some_log(MemoryDisk())
    log.settings = replace(COMPACT, min_compaction_lag_ms=1000)
    assert log.compaction(NOW + 999, log.end_offset) is None
    assert log.compaction(NOW + 1000, log.end_offset) is not None


def test_a_log_is_compacted_when_it_is_dirty_enough_or_too_long_ago() -> None:
    log, _ = some_log(MemoryDisk())
    compact(log)
    put(log, [(1, b"x")])
    closed(log)
    log.settings = replace(COMPACT, min_cleanable_dirty_ratio=0.9)
    assert log.compaction(NOW, log.end_offset) is None
    log.settings = replace(log.settings, max_compaction_lag_ms=DAY_MS)
    assert log.compaction(NOW + DAY_MS, log.end_offset) is None
    assert log.compaction(NOW + DAY_MS + 1, log.end_offset) is not None


def test_what_is_not_synced_is_not_compacted() -> None:
    log = open_log(MemoryDisk(), COMPACT)
    for number in range(20):
        put(log, [(1, b"%d" % number * 9)])
    assert len(log.segments) > 2
    assert log.compaction(NOW, log.end_offset) is None
    sync(log)
    assert log.compaction(NOW, log.end_offset) is not None


def test_more_keys_than_fit_into_memory_are_compacted_in_turns() -> None:
    log = open_log(MemoryDisk(), COMPACT)
    for number in range(30):
        put(log, [(number % 15, b"%d" % number * 9)])
    closed(log)
    known, rounds = state(log), 0
    while compact(log, keys_max=4):
        rounds += 1
        assert state(log) == known
    assert rounds > 1
    assert len(records(log)) == 15


def test_a_damaged_batch_stays_as_it_is() -> None:
    disk = MemoryDisk()
    log, _ = some_log(disk)
    log.close()
    path = log.segments[0].path
    content = bytearray(disk.content(path))
    content[70] ^= 1
    disk.damage(path, bytes(content))
    log = open_log(disk, COMPACT)
    damaged = bytes(content[: 12 + int.from_bytes(content[8:12], "big")])
    assert compact(log)
    assert disk.content(path).startswith(damaged)
    found = log.read(0, 1, log.written_offset)
    assert found is not None
    assert not found.verified


def test_closing_cancels_a_compaction_under_way() -> None:
    disk = MemoryDisk()
    log, _ = some_log(disk)
    known = state(log)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    log.close()
    job.run()
    assert not job.swapped
    assert state(open_log(disk, COMPACT)) == known


def test_closing_finishes_a_compaction_that_is_not_installed() -> None:
    disk = MemoryDisk()
    log, written = some_log(disk)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    job.run()
    log.close()
    assert {r.key: r.offset for r in records(open_log(disk, COMPACT))} == newest(written)


def test_compaction_and_retention_go_together() -> None:
    disk = MemoryDisk()
    log, _ = some_log(disk)
    log.settings = replace(COMPACT, cleanup_delete=True, retention_ms=DAY_MS)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    assert log.expire(NOW + 2 * DAY_MS, log.end_offset) == [], "not while they are being compacted"
    job.run()
    compaction_end = log.install(job)
    assert log.expire(NOW + 2 * DAY_MS, log.end_offset) == [], "nor before they have their names"
    compaction_end.run()
    assert log.expire(NOW + 2 * DAY_MS, log.end_offset) != []
    assert state(log) == {}


@pytest.mark.parametrize("place", [8, 11, 16, 23])  # length, format, last offset: a walk can't pass it
def test_a_batch_without_a_header_does_not_keep_the_rest_from_being_compacted(place: int) -> None:
    disk = MemoryDisk()
    log, _ = some_log(disk)
    log = closed(log)
    path = log.segments[1].path
    content = bytearray(disk.content(path))
    for byte in range(place, place + 3):
        content[byte] ^= 0xA5
    first = next(walk(memoryview(disk.content(path))))[1]
    disk.damage(path, bytes(content))
    log = open_log(disk, COMPACT)
    damaged = bytes(content[: first.size])
    assert compact(log)
    assert not compact(log), "all is compacted, and it is not tried again and again"
    kept = b"".join(disk.content(f"{DIRECTORY}/{name}") for name in disk.list(DIRECTORY) if ".log" in name)
    assert damaged in kept, "C4: it stays byte for byte"
    search = log.damage_at(first.base_offset)
    search.run()
    beyond = log.pass_over(search)
    following = log.read(beyond, 1000, log.written_offset)
    assert following is not None
    log.verify(following)
    assert read_header(following.file.read(following.position, 61)).base_offset == beyond


@pytest.mark.parametrize("operation", ["remove", "rename", "sync_directory"])
def test_an_error_while_old_files_go_is_made_up_for_and_the_log_is_compacted_again(operation: str) -> None:
    disk = MemoryDisk()
    closed(some_log(disk)[0])
    log = open_log(disk, COMPACT)
    job = log.compaction(NOW, log.end_offset)
    assert job is not None
    job.run()
    compaction_end = log.install(job)

    def refuse(asked: str, _: str) -> None:
        if asked == operation:
            raise OSError(errno.EIO, "once")

    disk.on_operation = refuse
    with pytest.raises(OSError, match="once"):
        compaction_end.run()
    disk.on_operation = None
    assert log.compaction(NOW, log.end_offset) is None, "two at once would get into each other's way"
    unfinished = log.unfinished_compaction
    assert unfinished is compaction_end
    unfinished.run()
    assert log.unfinished_compaction is None
    put(log, [(0, b"newer")])
    log.roll()
    sync(log)
    assert compact(log), "it goes on"
    assert state(log)[b"key-0"] == b"newer"
    assert state(open_log(disk.copy(), COMPACT)) == state(log)


@examples(max_examples=60)
@given(st.integers(0, 40))
def test_what_is_not_committed_is_neither_compacted_nor_supersedes_anything(below: int) -> None:
    log = open_log(MemoryDisk(), COMPACT)
    for number in range(40):
        put(log, [(number % 4, b"%d" % number)])
    before = {record.offset: record for record in records(closed(log))}
    job = log.compaction(NOW, below)
    if job is not None:
        job.run()
        log.install(job).run()
    after = {record.offset: record for record in records(log)}
    assert all(after[offset] == record for offset, record in before.items() if offset >= below)
    newest = {record.key: record for offset, record in sorted(before.items()) if offset < below}
    assert all(after.get(record.offset) == record for record in newest.values())
