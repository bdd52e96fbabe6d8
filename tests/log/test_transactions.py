"""Transactions in one log: what opens and ends them, up to where they are stable, and which were aborted."""

from __future__ import annotations

import pytest

from postroad.errors import (
    InvalidProducerEpoch,
    InvalidTransactionState,
    StorageFailed,
    TransactionCoordinatorFenced,
)
from postroad.log.aborted import AbortedTransaction, aborted_path
from postroad.log.checked_file import with_checksum
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.producers import OpensTransaction, Producers, snapshot_path
from postroad.wire.batch import TRANSACTIONAL, read_header

from .logs import DIRECTORY, NOW, append, batch, open_log, read_all, send, sync
from .transactions import Writer, committed_records, find


def aborted(log: PartitionLog) -> list[tuple[int, int, int]]:
    found = log.aborted(log.start_offset, log.stable_offset(log.written_offset))
    return [(entry.producer_id, entry.first, entry.marker) for entry in found]


def test_what_is_open_is_not_stable() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    send(log, batch())
    writer.write(log, 3)
    log.write()
    send(log, batch())
    assert log.stable_offset(log.written_offset) == 1
    writer.end(log, commit=True)
    log.write()
    assert log.stable_offset(log.written_offset) == 6
    assert len(committed_records(log)) == 5


def test_a_transaction_is_not_stable_before_its_marker_is_committed() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    writer.write(log, 2)
    writer.end(log, commit=False)
    log.write()
    assert log.stable_offset(2) == 0, "the marker at 2 may still be lost"
    assert log.stable_offset(3) == 3
    assert aborted(log) == [(1, 0, 2)]


def test_an_open_transaction_is_kept_when_a_higher_epoch_comes() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    writer.write(log)
    newer = Writer(1, epoch=1)
    with pytest.raises(InvalidTransactionState):
        newer.write(log)
    plain = batch(producer=1, epoch=1, sequence=0)
    with pytest.raises(InvalidTransactionState):
        append(log, plain)
    log.write()
    assert log.stable_offset(1) == 0


def test_a_plain_batch_does_not_come_in_between() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    writer.write(log)
    with pytest.raises(InvalidTransactionState):
        append(log, batch(producer=1, epoch=0, sequence=1))
    assert log.end_offset == 1


def test_a_batch_that_opens_a_transaction_is_announced() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    content = batch(producer=1, epoch=0, sequence=0, attributes=TRANSACTIONAL)
    log.begin_epoch(0)
    with pytest.raises(OpensTransaction):
        log.append(content, read_header(content), 0, NOW, may_open=False)
    assert log.end_offset == 0
    writer.write(log)
    second = batch(producer=1, epoch=0, sequence=1, attributes=TRANSACTIONAL)
    assert log.append(second, read_header(second), 0, NOW, may_open=False).base_offset == 1


def test_an_old_epoch_is_refused_before_anybody_asks_about_its_transaction() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1, epoch=3)
    writer.end(log, commit=False)
    old = batch(producer=1, epoch=2, sequence=0, attributes=TRANSACTIONAL)
    with pytest.raises(InvalidProducerEpoch):
        log.append(old, read_header(old), 0, NOW, may_open=False)


def test_a_marker_needs_a_higher_epoch_but_may_be_repeated() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    writer.write(log)
    with pytest.raises(InvalidProducerEpoch):
        log.append_marker(1, 0, True, 0, NOW, strict=True)
    assert log.append_marker(1, 1, True, 0, NOW, strict=True)
    assert not log.append_marker(1, 1, True, 0, NOW, strict=True), "a repetition"
    assert log.end_offset == 2
    with pytest.raises(InvalidProducerEpoch):
        log.append_marker(1, 0, True, 0, NOW)


def test_a_marker_of_an_older_coordinator_is_refused() -> None:
    log, writer = open_log(MemoryDisk()), Writer(1)
    writer.write(log)
    log.append_marker(1, 0, True, 5, NOW)
    writer.write(log)
    with pytest.raises(TransactionCoordinatorFenced):
        log.append_marker(1, 0, False, 4, NOW)


def test_a_marker_fences_also_where_nothing_was_written() -> None:
    log = open_log(MemoryDisk())
    Writer(1, epoch=1).end(log, commit=False)
    with pytest.raises(InvalidProducerEpoch):
        Writer(1, epoch=0).write(log)


def test_a_marker_that_could_not_be_written_is_written_when_it_comes_again() -> None:
    disk = MemoryDisk()
    log, writer = open_log(disk), Writer(1)
    writer.write(log)
    log.write()
    disk.capacity = 0
    writer.end(log, commit=False)
    Writer(2, epoch=1).end(log, commit=False)
    with pytest.raises(StorageFailed):
        log.write()
    disk.capacity = None
    assert log.stable_offset(1) == 0
    assert writer.end(log, commit=False)
    assert Writer(2, epoch=1).end(log, commit=False)
    log.write()
    assert aborted(log) == [(1, 0, 1)]
    assert log.stable_offset(log.written_offset) == 3


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("lost", [(), (".aborted",), (".producers",), (".producers", ".aborted")])
def test_a_restart_knows_what_was_aborted(clean: bool, lost: tuple[str, ...]) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    writers = [Writer(number) for number in range(3)]
    for number in range(60):
        writer = writers[number % 3]
        writer.write(log)
        if number % 4 == 3:
            writer.end(log, commit=number % 8 == 3)
        log.write()
        sync(log)
    expected, found = aborted(log), find(log)
    assert len(expected) > 4
    assert len(log.segments) > 3
    if clean:
        log.close()
    disk = disk.copy()
    if lost == (".aborted",):  # a file that is missing says that nothing was aborted: damage is not that
        for name in disk.list(DIRECTORY):
            if name.endswith(lost):
                disk.damage(f"{DIRECTORY}/{name}", b"damaged")
    elif lost:
        for name in disk.list(DIRECTORY):
            if name.endswith(lost):
                disk.remove(f"{DIRECTORY}/{name}")
    log = open_log(disk, clean=clean)
    assert aborted(log) == expected
    assert log.stable_offset(log.written_offset) == found.stable_offset(log.written_offset)


def test_a_transaction_that_began_before_the_range_is_listed() -> None:
    log = open_log(MemoryDisk())
    first, second = Writer(1), Writer(2)
    first.write(log)
    for _ in range(40):
        second.write(log)
        log.write()
    second.end(log, commit=False)
    first.end(log, commit=False)
    log.write()
    assert [entry.producer_id for entry in log.aborted(20, 21)] == [1, 2]
    assert [entry.producer_id for entry in log.aborted(41, 42)] == [1, 2]
    assert [entry.producer_id for entry in log.aborted(42, 43)] == [1]
    assert log.aborted(43, 43) == []


def test_a_truncated_log_has_the_transactions_that_it_still_knows() -> None:
    log = open_log(MemoryDisk())
    writer = Writer(1)
    for number in range(30):
        writer.write(log)
        writer.end(log, commit=number % 2 == 0)
        log.write()
    sync(log)
    log.truncate_to(31, NOW)
    found = find(log)
    assert found.open == {1: 30}
    assert log.stable_offset(log.written_offset) == 30
    assert [entry[2] for entry in aborted(log)] == [entry.marker for entry in found.ended if not entry.commit]


def test_a_follower_knows_what_its_leader_does() -> None:
    leader, follower = open_log(MemoryDisk()), open_log(MemoryDisk())
    writers = [Writer(number) for number in range(3)]
    for number in range(60):
        writers[number % 3].write(leader)
        if number % 5 == 4:
            writers[number % 3].end(leader, commit=False)
        leader.write()
    for _, content in read_all(leader):
        follower.append_copy(memoryview(bytearray(content)), 0, NOW)
        follower.write()
    assert aborted(follower) == aborted(leader)
    assert follower.stable_offset(follower.written_offset) == leader.stable_offset(leader.written_offset)
    assert len(follower.segments) > 3


def test_retention_takes_the_lists_along() -> None:
    disk = MemoryDisk()
    log, writer = open_log(disk), Writer(1)
    for _ in range(30):
        writer.write(log)
        writer.end(log, commit=False)
        log.write()
        sync(log)
    old = [segment.base_offset for segment in log.segments[:2]]
    assert all(disk.content(aborted_path(DIRECTORY, base)) for base in old)
    log.delete_before(log.segments[2].base_offset, log.written_offset)
    for removed in log.expire(NOW, log.written_offset):
        removed.run()
    assert not [name for name in disk.list(DIRECTORY) if name.startswith(f"{old[0]:020d}")]
    assert aborted(log)[0][1] >= log.start_offset


def test_a_snapshot_of_an_earlier_version_is_read() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    send(log, batch(producer=7, epoch=2, sequence=5))
    log.close()
    path = snapshot_path(DIRECTORY, 1)
    content = disk.content(path)
    disk.damage(path, with_checksum(b"PRps" + content[4:8] + content[12:-4]))
    (producer,) = open_log(disk, clean=True).producers()
    assert (producer.producer_id, producer.epoch, producer.last_sequence) == (7, 2, 5)


def test_a_hundred_thousand_producers_cost_nothing() -> None:
    producers = Producers()
    for number in range(100_000):
        producers.admit(number, 0, 0, 0, TRANSACTIONAL, number, NOW)
    producers.commit()
    steps = 0

    class Counted(dict[int, int]):
        def values(self):  # type: ignore[no-untyped-def]
            nonlocal steps
            for value in super().values():
                steps += 1
                yield value

    producers.open = Counted(producers.open)
    assert producers.stable_offset(100_000) == 0
    assert steps <= 2


def test_the_entry_of_an_aborted_transaction_says_what_was_stable_then() -> None:
    log = open_log(MemoryDisk())
    first, second = Writer(1), Writer(2)
    first.write(log)
    second.write(log)
    first.end(log, commit=False)
    second.end(log, commit=False)
    log.write()
    assert log.active.aborted == [AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 3, 4)]
