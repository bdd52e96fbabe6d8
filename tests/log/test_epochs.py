from __future__ import annotations

import contextlib
import errno

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import OffsetOutOfRange, StorageFailed
from postroad.log.checkpoint import read_checkpoint
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import PartitionLog
from postroad.replication.divergence import EpochEnd as Parting
from postroad.replication.divergence import truncation
from postroad.wire.batch import read_header

from .logs import (
    DIRECTORY,
    FATES,
    NOW,
    Crash,
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


def with_epochs(disk: MemoryDisk, *epochs: int) -> PartitionLog:
    """One batch of two records for each."""
    log = open_log(disk)
    for epoch in epochs:
        send(log, batch(2), leader_epoch=epoch)
    sync(log)
    return log


def test_the_end_of_an_epoch_is_where_the_next_one_starts() -> None:
    log = with_epochs(MemoryDisk(), 1, 1, 4, 6)
    assert log.last_epoch == 6
    assert [log.epoch_end(epoch) for epoch in (1, 4, 6)] == [(1, 4), (4, 6), (6, 8)]


def test_an_epoch_that_wrote_nothing_is_answered_with_the_one_below_it() -> None:
    log = with_epochs(MemoryDisk(), 1, 4, 6)
    assert log.epoch_end(3) == (1, 2)
    assert log.epoch_end(5) == (4, 4)
    assert log.epoch_end(0) == (0, 0), "before the first: as Kafka answers"
    assert log.epoch_end(7) == (-1, -1)
    assert log.epoch_end(-1) == (-1, -1)


def test_epochs_survive_a_crash_as_far_as_their_batches_do() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1, 4)
    send(log, batch(), leader_epoch=9)
    assert open_log(disk.crash(all_lost)).leader_epochs.entries == [(1, 0), (4, 2)]
    assert open_log(disk.crash(all_kept)).leader_epochs.entries == [(1, 0), (4, 2), (9, 4)]


def test_epochs_below_a_snapshot_are_in_their_file() -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(60):
        send(log, batch(), leader_epoch=number // 7)
        sync(log)
        if number == 20:
            log.close()
            log = open_log(disk)
    assert len(log.leader_epochs.entries) == 9
    for found in (disk.copy(), disk.crash(all_lost)):
        assert open_log(found).leader_epochs.entries == log.leader_epochs.entries


@pytest.mark.parametrize("fate", FATES)
def test_epochs_whose_file_is_ahead_of_the_recovery_point_are_found_again(fate: Pick) -> None:
    """A sync replaces the epochs' file before the checkpoint moves; a crash may come in between."""
    operation, is_through = 0, False
    while not is_through:
        disk = MemoryDisk()
        log = with_epochs(disk, 1)
        for epoch in (4, 4, 4, 6, 6):
            send(log, batch(2), leader_epoch=epoch)
        count = stop_at(disk, operation, Crash())
        with contextlib.suppress(Crash):
            sync(log)
        is_through, operation = count() <= operation, operation + 1
        found = open_log(crashed(disk, fate))
        expected = [(1, 0), (4, 2), (6, 8)]
        assert found.leader_epochs.entries == [entry for entry in expected if entry[1] < found.end_offset]


def test_epochs_that_could_not_be_saved_at_a_start_are_saved_before_the_point_passes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1, 4)
    send(log, batch(), leader_epoch=9)
    found = disk.crash(all_kept)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(found, "replace", refuse)
        log = open_log(found)
    send(log, batch(), leader_epoch=9)
    sync(log)
    assert open_log(found.copy()).leader_epochs.entries == [(1, 0), (4, 2), (9, 4)]


def test_a_failed_write_leaves_the_leaders_epoch_begun_at_the_end() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1)
    append(log, batch(), leader_epoch=2)
    disk.capacity = 0
    with pytest.raises(StorageFailed):
        log.write()
    assert log.leader_epochs.entries == [(1, 0), (2, 2)]
    disk.capacity = None
    send(log, batch(), leader_epoch=2)
    assert log.leader_epochs.entries == [(1, 0), (2, 2)]


def test_a_leader_knows_its_epoch_before_its_first_batch() -> None:
    log = with_epochs(MemoryDisk(), 1, 4)
    log.begin_epoch(9)
    assert log.last_epoch == 9
    assert [log.epoch_end(epoch) for epoch in (4, 6, 9)] == [(4, 4), (4, 4), (9, 4)]


def test_an_append_in_an_epoch_that_was_not_begun_is_our_mistake() -> None:
    log = with_epochs(MemoryDisk(), 1)
    content = batch()
    with pytest.raises(AssertionError):
        log.append(content, read_header(content), 2, NOW)
    assert log.end_offset == 2


def test_an_epoch_without_a_batch_is_gone_after_a_restart() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1)
    log.begin_epoch(5)
    log.close()
    assert open_log(disk, clean=True).leader_epochs.entries == [(1, 0)]


def test_two_quick_elections_leave_one_epoch() -> None:
    log = with_epochs(MemoryDisk(), 1)
    log.begin_epoch(5)
    log.begin_epoch(6)
    assert log.leader_epochs.entries == [(1, 0), (6, 2)]
    assert log.epoch_end(5) == (1, 2)


def test_a_leader_that_resigns_forgets_the_epoch_in_which_it_wrote_nothing() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1)
    log.begin_epoch(5)
    log.end_epoch()
    assert log.last_epoch == 1
    log.begin_epoch(6)
    send(log, batch(), leader_epoch=6)
    log.end_epoch()
    assert log.leader_epochs.entries == [(1, 0), (6, 2)]


def test_a_resigned_leaders_empty_epoch_is_not_stored_over_batches_of_an_older_one() -> None:
    disk, other = MemoryDisk(), with_epochs(MemoryDisk(), 1, 1)
    log = open_log(disk)
    first, second = (entry.content for entry in stored(other))
    log.append_copy(memoryview(first), 1, NOW)
    log.begin_epoch(5)  # elected with what is staged
    log.write()
    sync(log)
    log.append_copy(memoryview(second), 7, NOW)  # of the leader after it, which had the older batch
    log.write()
    sync(log)
    assert log.leader_epochs.entries == [(1, 0)]
    assert open_log(disk.crash(all_lost)).leader_epochs.entries == [(1, 0)]


def test_a_follower_is_told_where_it_has_parted() -> None:
    log = with_epochs(MemoryDisk(), 1, 4)
    log.begin_epoch(9)
    assert log.diverging(-1, 0) is None
    assert log.diverging(1, 2) is None
    assert log.diverging(4, 4) is None
    assert log.diverging(1, 3) == (1, 2), "it has more of that epoch"
    assert log.diverging(3, 2) == (1, 2), "it has an epoch that is not here"
    assert log.diverging(6, 4) == (4, 4), "also one that wrote at the very end"
    assert log.diverging(10, 4) == (9, 4), "newer than all"
    log.delete_before(2, log.end_offset)
    with pytest.raises(OffsetOutOfRange):
        log.diverging(1, 1)


@examples(max_examples=300)
@given(
    st.lists(st.integers(0, 6), max_size=12),
    st.lists(st.integers(0, 6), max_size=12),
    st.integers(0, 12),
)
def test_truncation_by_epochs_ends_where_two_logs_part(
    own: list[int], leaders: list[int], common: int
) -> None:
    """Epochs of one record each; both logs share a beginning, and an epoch has one leader (L13)."""
    shared = sorted(leaders)[:common]
    later = [epoch for epoch in sorted(own) if epoch > max(shared, default=-1) and epoch not in leaders]
    leader = with_single_records([*shared, *sorted(leaders)[common:]])
    leader.begin_epoch(7)
    follower = with_single_records([*shared, *later])
    rounds = 0
    while (end := leader.diverging(follower.last_epoch, follower.end_offset)) is not None:
        cut = truncation(follower.leader_epochs, follower.end_offset, Parting(*end))
        follower.truncate_to(cut, NOW)
        rounds += 1
    assert follower.end_offset == len(shared)
    assert rounds <= len(set(later)) + 1


def with_single_records(epochs: list[int]) -> PartitionLog:
    log = open_log(MemoryDisk())
    for epoch in epochs:
        send(log, batch(), leader_epoch=epoch)
    log.end_epoch()
    return log


def test_epochs_below_the_start_are_dropped() -> None:
    log = with_epochs(MemoryDisk(), 1, 4, 6)
    log.delete_before(3, log.end_offset)
    assert log.leader_epochs.entries == [(4, 3), (6, 4)]


@examples(max_examples=60)
@given(st.integers(0, 39), st.integers(0, 8), st.booleans())
def test_truncation_leaves_exactly_the_batches_below(offset: int, unsynced: int, kept: bool) -> None:
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(20):
        send(log, batch(2, producer=1, epoch=0, sequence=2 * number), leader_epoch=number // 5)
        if number < 20 - unsynced:
            sync(log)
    expected = [entry for entry in stored(log) if entry.offset + 2 <= offset]
    log.truncate_to(offset, NOW)
    assert stored(log) == expected
    end = log.end_offset
    assert end == 2 * len(expected)
    assert all(start < end for _, start in log.leader_epochs.entries)
    again = batch(2, producer=1, epoch=0, sequence=end)
    assert send(log, again, leader_epoch=20)[0].base_offset == end
    send(log, batch(), leader_epoch=30)
    found = open_log(disk.crash(all_kept if kept else all_lost))
    assert stored(found)[: len(expected)] == expected
    assert found.end_offset == (end + 3 if kept else end)


def test_a_crash_at_each_step_of_a_truncation_leaves_a_log() -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log = with_epochs(disk, *range(15))
        written = stored(log)
        count = stop_at(disk, operation, Crash())
        try:
            log.truncate_to(10, NOW)
            send(log, batch(2, size=77), leader_epoch=40)
        except Crash:
            pass
        for pick in (all_lost, all_kept):
            found = crashed(disk, pick)
            again = open_log(found)
            survivors = stored(again)
            assert survivors[:5] == written[:5]
            assert survivors == written[: len(survivors)] or survivors[:5] == survivors[:-1]
        if count() <= operation:
            return
        operation += 1


def test_a_sync_that_a_truncation_overtook_does_not_count() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1, 2, 3)
    send(log, batch(2), leader_epoch=3)
    job = log.begin_sync()
    assert job is not None
    log.truncate_to(2, NOW)
    send(log, batch(2, size=99), leader_epoch=4)
    job.run()
    log.finish_sync(job, None)
    assert log.synced_offset == 2
    found = read_checkpoint(disk, DIRECTORY)
    assert found is not None
    assert found[1].point.offset == 2


def test_a_reset_log_goes_on_where_it_is_told() -> None:
    disk = MemoryDisk()
    log = with_epochs(disk, 1, 2, 3)
    log.reset_to(100, NOW)
    assert (log.start_offset, log.end_offset, log.last_epoch) == (100, 100, -1)
    assert send(log, batch(), leader_epoch=5)[0].base_offset == 100
    sync(log)
    again = open_log(disk.crash(all_lost))
    assert (again.start_offset, again.end_offset) == (100, 101)
    assert again.leader_epochs.entries == [(5, 100)]
