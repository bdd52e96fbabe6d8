from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import (
    DuplicateSequence,
    InvalidProducerEpoch,
    NotEnoughReplicas,
    OutOfOrderSequence,
    StorageFailed,
)
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.producers import snapshot_path
from postroad.log.sequence_gaps import PATIENCE_MS
from postroad.wire.batch import CHOSEN_PRODUCERS, NAMED_PRODUCERS, TRANSACTIONAL

from .logs import DIRECTORY, NOW, SMALL, append, batch, open_log, send, stop_at, sync

DAY_MS = 24 * 3_600_000
MAX_SEQUENCE = 0x7FFFFFFF


def produced(
    log: PartitionLog, sequence: int, count: int = 1, epoch: int = 0, producer: int = 9, now_ms: int = NOW
) -> int:
    """Send a batch and say at which offset it is, negative if it was there before."""
    content = batch(count, producer=producer, epoch=epoch, sequence=sequence)
    (appended,) = send(log, content, now_ms=now_ms)
    return -appended.base_offset if appended.duplicate else appended.base_offset


def test_a_repeated_batch_is_answered_with_its_first_offset() -> None:
    log = open_log(MemoryDisk())
    send(log, batch())
    assert [produced(log, sequence, 2) for sequence in (0, 2, 4, 6, 8)] == [1, 3, 5, 7, 9]
    assert [produced(log, sequence, 2) for sequence in (0, 2, 4, 6, 8)] == [-1, -3, -5, -7, -9]
    assert log.end_offset == 11


def test_a_batch_after_a_gap_is_asked_for_again_until_the_gap_was_not_filled_for_long() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0)
    for sequence, after_ms in ((2, 0), (3, 0), (2, PATIENCE_MS - 1)):
        with pytest.raises(NotEnoughReplicas):
            produced(log, sequence, now_ms=NOW + after_ms)
    for sequence in (2, 3):
        with pytest.raises(OutOfOrderSequence):
            produced(log, sequence, now_ms=NOW + PATIENCE_MS)
    assert log.end_offset == 1


def test_a_gap_that_was_filled_gives_the_next_one_its_time() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0)
    with pytest.raises(NotEnoughReplicas):
        produced(log, 2)
    assert [produced(log, sequence) for sequence in (1, 2)] == [1, 2]
    with pytest.raises(NotEnoughReplicas):
        produced(log, 4, now_ms=NOW + PATIENCE_MS)


def test_a_gap_is_waited_for_over_a_clock_that_is_set_back() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0)
    for now_ms in (NOW, NOW - PATIENCE_MS, NOW - 1):
        with pytest.raises(NotEnoughReplicas):
            produced(log, 2, now_ms=now_ms)
    with pytest.raises(OutOfOrderSequence):
        produced(log, 2, now_ms=NOW)


@pytest.mark.parametrize("producer", [CHOSEN_PRODUCERS, NAMED_PRODUCERS])
def test_whoever_chose_its_id_hears_of_a_gap_at_once(producer: int) -> None:
    log = open_log(MemoryDisk())
    produced(log, 0, producer=producer)
    with pytest.raises(OutOfOrderSequence):
        produced(log, 2, producer=producer)


def test_a_batch_older_than_the_last_five_is_known_to_be_a_repetition() -> None:
    log = open_log(MemoryDisk())
    for sequence in range(6):
        produced(log, sequence)
    with pytest.raises(DuplicateSequence):
        produced(log, 0)


def test_a_batch_cut_differently_is_no_repetition() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0, 3)
    with pytest.raises(OutOfOrderSequence):
        produced(log, 0, 2)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0, epoch=1)
    with pytest.raises(NotEnoughReplicas):
        produced(log, 1, epoch=2)
    with pytest.raises(OutOfOrderSequence):
        produced(log, 1, epoch=2, now_ms=NOW + PATIENCE_MS)
    produced(log, 0, epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        produced(log, 1, epoch=1)


def test_sequences_wrap_to_zero() -> None:
    log = open_log(MemoryDisk())
    produced(log, MAX_SEQUENCE - 1, 2)
    assert produced(log, 0) == 2
    assert produced(log, MAX_SEQUENCE - 1, 2) == 0
    assert log.end_offset == 3


def test_an_unknown_producer_may_begin_anywhere() -> None:
    log = open_log(MemoryDisk())
    assert produced(log, 41) == 0


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("batches", [1, 3, 40])
def test_idempotence_survives_a_restart(batches: int, clean: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for sequence in range(batches):
        produced(log, sequence)
    sync(log)
    if clean:
        log.close()
    log = open_log(disk.copy(), clean=clean)
    for sequence in range(max(0, batches - 5), batches):
        assert produced(log, sequence) == -sequence
    assert produced(log, batches) == batches


def test_a_damaged_snapshot_is_not_believed() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for sequence in range(40):
        produced(log, sequence)
    log.close()
    path = snapshot_path(DIRECTORY, 40)
    content = bytearray(disk.content(path))
    content[20] ^= 1
    disk.damage(path, bytes(content))
    assert produced(open_log(disk), 39) == -39


def test_a_failed_write_takes_the_producers_state_back() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    produced(log, 0)
    disk.capacity = 0
    with pytest.raises(StorageFailed):
        produced(log, 1)
    disk.capacity = None
    with pytest.raises(NotEnoughReplicas):
        produced(log, 2)
    assert produced(log, 1) == 1


def test_a_new_producers_failed_batch_must_come_first_again() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    disk.capacity = 0
    with pytest.raises(StorageFailed):
        produced(log, 0)
    disk.capacity = None
    with pytest.raises(NotEnoughReplicas):
        produced(log, 1)
    assert produced(log, 0) == 0


def test_idle_producers_are_forgotten_but_not_in_a_transaction() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0, producer=1)
    send(log, batch(producer=2, epoch=0, sequence=0, attributes=TRANSACTIONAL))
    log.expire(NOW + DAY_MS + 1, log.end_offset)
    assert [(p.producer_id, p.current_txn_start) for p in log.producers()] == [(2, 1)]


def test_named_producers_are_forgotten_after_ten_minutes() -> None:
    log = open_log(MemoryDisk())
    produced(log, 0, producer=1)
    produced(log, 5, producer=NAMED_PRODUCERS + 1)
    log.expire(NOW + 600_000, log.end_offset)
    assert len(log.producers()) == 2
    log.expire(NOW + 600_001, log.end_offset)
    assert [producer.producer_id for producer in log.producers()] == [1]


def test_a_name_that_is_repeated_is_remembered_from_then_on() -> None:
    log = open_log(MemoryDisk())
    send(log, batch())
    assert produced(log, 5, producer=NAMED_PRODUCERS + 1) == 1
    send(log, batch(producer=NAMED_PRODUCERS + 1, epoch=0, sequence=5), now_ms=NOW + 500_000)
    log.expire(NOW + 1_100_000, log.end_offset)
    assert produced(log, 5, producer=NAMED_PRODUCERS + 1) == -1


def test_a_marker_ends_the_transaction() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    send(log, batch(producer=2, epoch=0, sequence=0, attributes=TRANSACTIONAL))
    log.append_marker(2, 0, commit=True, coordinator_epoch=0, now_ms=NOW)
    log.write()
    for again in (log, open_log(disk.copy())):
        (producer,) = again.producers()
        assert (producer.current_txn_start, producer.last_sequence) == (-1, 0)


@examples(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=40), st.integers(0, 60)
)
def test_each_value_sits_at_one_offset_through_failures_and_restarts(
    steps: list[tuple[int, int, bool]], failing: int
) -> None:
    """L3: producers repeat each batch until it is acknowledged; writes fail and the node is killed."""
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, segment_bytes=400))
    sequences, expected = [0, 0, 0], 0
    for number, (producer, count, kill) in enumerate(steps):
        if number == failing:
            stop_at(disk, 0, OSError(errno.ENOSPC, "full"))
            with pytest.raises(StorageFailed):
                produced(log, sequences[producer], count, producer=producer)
            disk.on_operation = None
        if kill:
            log = open_log(disk.copy(), log.settings)
            disk = log.disk  # type: ignore[assignment]
        assert produced(log, sequences[producer], count, producer=producer) == expected
        assert produced(log, sequences[producer], count, producer=producer) == -expected
        sequences[producer] += count
        expected += count
    assert log.end_offset == expected


def test_appending_twice_before_a_write_is_a_repetition_too() -> None:
    log = open_log(MemoryDisk())
    first = append(log, batch(producer=1, epoch=0, sequence=0))
    second = append(log, batch(producer=1, epoch=0, sequence=0))
    log.write()
    assert (first.duplicate, second.duplicate, second.base_offset) == (False, True, 0)
    assert log.end_offset == 1
