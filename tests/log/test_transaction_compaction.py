"""Compaction and transactions: aborted records go at once, markers last, and crashes change nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.wire.batch import CONTROL

from .logs import FATES, NOW, Crash, batch, crashed, open_log, read_all, records, send, stop_at, sync
from .test_compaction import COMPACT, DAY_MS, closed, compact
from .transactions import Writer, committed_records, find


def markers(log: PartitionLog) -> list[int]:
    return [header.base_offset for header, _ in read_all(log) if header.attributes & CONTROL]


def newest(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    """What a read_committed consumer ends up with."""
    return {record.key: record.value for record in committed_records(log)}


def test_aborted_records_go_and_supersede_nothing() -> None:
    log, writer = open_log(MemoryDisk(), COMPACT), Writer(1)
    send(log, batch(key=b"k", size=3))
    writer.write(log, key=b"k", size=5)
    writer.end(log, commit=False)
    log.write()
    send(log, batch(key=b"other"))
    assert compact(closed(log))
    assert {record.key: len(record.value or b"") for record in committed_records(log)}[b"k"] == 3
    assert [record.offset for record in records(log) if record.key == b"k"] == [0]


def test_a_marker_goes_after_its_records_and_a_retention() -> None:
    log, writer = open_log(MemoryDisk(), COMPACT), Writer(1)
    writer.write(log, key=b"k")
    writer.end(log, commit=True)
    writer.write(log, key=b"k")
    writer.end(log, commit=True)
    writer.write(log, key=b"new")
    writer.end(log, commit=True)
    log.write()
    send(log, batch(key=b"other"))
    assert markers(log) == [1, 3, 5]
    assert compact(closed(log), NOW)
    assert markers(log) == [1, 3, 5], "readers that are behind hear of the end"
    send(log, batch(key=b"other"))
    assert compact(closed(log), NOW + DAY_MS + 1)
    assert markers(log) == [3, 5], "the first one has no record any more"
    assert set(newest(log)) == {b"k", b"new", b"other"}


def test_the_last_marker_of_a_producer_stays_as_long_as_the_producer_is_known() -> None:
    log, writer = open_log(MemoryDisk(), COMPACT), Writer(1)
    writer.write(log, key=b"k")
    writer.end(log, commit=False)
    log.write()
    send(log, batch(key=b"other"))
    compact(closed(log))
    send(log, batch(key=b"other"))
    compact(closed(log), NOW + DAY_MS + 1)
    assert markers(log) == [1]
    log.producer_states.expire(NOW + 3 * DAY_MS, DAY_MS)
    for days in (3, 5):
        send(log, batch(key=b"other"))
        compact(closed(log), NOW + days * DAY_MS)
    assert markers(log) == []
    assert log.aborted(0, log.stable_offset(log.written_offset)) == []


def test_an_open_transaction_keeps_what_follows_it() -> None:
    log, writer = open_log(MemoryDisk(), COMPACT), Writer(1)
    send(log, batch(key=b"k"))
    writer.write(log, key=b"k")
    log.write()
    send(log, batch(key=b"k"))
    assert not compact(closed(log))


Steps = list[tuple[int, int, int]]


def history(disk: MemoryDisk, steps: Steps) -> PartitionLog:
    log = open_log(disk, COMPACT)
    writers = {number: Writer(number) for number in range(3)}
    for number, key, what in steps:
        if what < 3:
            writers[number].write(log, 1 + what, key=b"key-%d" % key)
        elif what < 5:
            writers[number].end(log, commit=what == 3)
        else:
            send(log, batch(key=b"key-%d" % key, size=key))
        log.write()
    for writer in writers.values():
        writer.end(log, commit=False)
    log.write()
    return closed(log)


@examples(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 5)), max_size=60),
    st.integers(0, 60),
    st.integers(0, len(FATES) - 1),
)
def test_compaction_with_a_crash_keeps_what_was_committed(steps: Steps, operation: int, fate: int) -> None:
    disk = MemoryDisk()
    log = history(disk, steps)
    sync(log)
    expected = newest(log)
    for days in (0, 2, 4):
        stop_at(disk, operation, Crash())
        try:
            compact(log, NOW + days * DAY_MS)
            disk.on_operation = None
        except Crash:
            disk = crashed(disk, FATES[fate])
            log = open_log(disk, COMPACT)
        assert newest(log) == expected
        again = open_log(disk.copy(), COMPACT)
        assert newest(again) == expected
        assert again.producer_states.open == find(again).open == {}


@pytest.mark.parametrize("loss", [".producers", ".nothing"])
def test_a_compacted_log_is_the_same_after_a_restart(loss: str) -> None:
    disk = MemoryDisk()
    log = history(disk, [(n % 3, n % 5, n * 7 % 6) for n in range(200)])
    expected = newest(log)
    compact(log)
    compact(log, NOW + 2 * DAY_MS)
    disk = disk.copy()
    for name in disk.list("data/topic/0"):
        if name.endswith(loss):
            disk.remove(f"data/topic/0/{name}")
    log = open_log(disk, COMPACT)
    assert newest(log) == expected
    assert log.producer_states.open == {}
