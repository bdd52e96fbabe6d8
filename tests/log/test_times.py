from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import CorruptMessage
from postroad.log.memory_disk import MemoryDisk
from postroad.log.settings import LOG_APPEND_TIME

from .logs import NOW, SMALL, batch, filled, open_log, records, send, sync


@examples(max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 3)), max_size=40),
    st.integers(0, 60),
    st.booleans(),
)
def test_the_first_record_that_is_not_older_is_found(
    sent: list[tuple[int, int]], start_offset: int, reopened: bool
) -> None:
    """Timestamps in any order, records deleted at the beginning, indexes from memory and from files."""
    disk = MemoryDisk()
    log = open_log(disk)
    for time, count in sent:
        send(log, batch(count, time=NOW + time))
    sync(log)
    log.delete_before(min(start_offset, log.end_offset), log.end_offset)
    if reopened:
        log.close()
        log = open_log(disk, clean=True)
    kept = [record for record in records(log) if record.offset >= log.start_offset]
    for time in range(NOW - 1, NOW + 55):
        expected = next((r for r in kept if r.timestamp >= time), None)
        found = log.offset_for_time(time)
        assert (found and (found.offset, found.timestamp)) == (
            expected and (expected.offset, expected.timestamp)
        )
    newest = max(kept, key=lambda record: record.timestamp, default=None)
    found = log.max_timestamp()
    assert (found and (found.offset, found.timestamp)) == (newest and (newest.offset, newest.timestamp))


def test_an_empty_log_has_no_times() -> None:
    log = open_log(MemoryDisk())
    assert log.offset_for_time(0) is None
    assert log.max_timestamp() is None


def test_the_leader_epoch_comes_with_the_position() -> None:
    log = open_log(MemoryDisk())
    send(log, batch(time=NOW), leader_epoch=3)
    send(log, batch(time=NOW + 1), leader_epoch=4)
    found = log.offset_for_time(NOW + 1)
    assert found is not None
    assert found.leader_epoch == 4


def test_append_times_are_found() -> None:
    log = open_log(MemoryDisk(), replace(SMALL, timestamp_type=LOG_APPEND_TIME))
    for number in range(10):
        send(log, batch(2, time=1), now_ms=NOW + number)
    found = log.offset_for_time(NOW + 5)
    assert found is not None
    assert (found.offset, found.timestamp) == (10, NOW + 5)


def test_a_damaged_batch_is_not_decoded() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=1)
    content = bytearray(disk.content(log.active.path))
    content[-1] ^= 1
    disk.damage(log.active.path, bytes(content))
    with pytest.raises(CorruptMessage):
        open_log(disk).offset_for_time(NOW)
