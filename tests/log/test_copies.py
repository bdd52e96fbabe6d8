"""What a follower copies is what its leader has, byte for byte, or it is refused (L12)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from postroad.errors import CorruptMessage, MisplacedBatch, StorageFailed
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import PartitionLog
from postroad.wire.records import Record, encode_batch

from .logs import (
    NOW,
    SMALL,
    all_kept,
    all_lost,
    batch,
    filled,
    open_log,
    send,
    stored,
    sync,
)


def leader_log(batches: int = 20, epochs: int = 3) -> PartitionLog:
    log = open_log(MemoryDisk())
    for number in range(batches):
        content = batch(2, producer=7, epoch=0, sequence=2 * number, time=NOW + number)
        send(log, content, leader_epoch=number * epochs // batches)
    return log


def content_of(log: PartitionLog) -> bytearray:
    return bytearray(b"".join(entry.content for entry in stored(log)))


def test_a_copy_is_the_same_in_every_way() -> None:
    leader, disk = leader_log(), MemoryDisk()
    content = content_of(leader)
    copy = open_log(disk)
    assert copy.append_copy(memoryview(content), 2, NOW) == len(content)
    copy.write()
    sync(copy)
    for log in (copy, open_log(disk.crash(all_lost)), open_log(disk.copy())):
        assert stored(log) == stored(leader)
        assert log.end_offset == leader.end_offset
        assert log.leader_epochs.entries == leader.leader_epochs.entries
        assert log.producers() == leader.producers()
        assert log.max_timestamp() == leader.max_timestamp()
        assert log.offset_for_time(NOW + 9) == leader.offset_for_time(NOW + 9)
        assert len(log.segments) > 3


def test_a_copied_producer_is_known_when_the_follower_leads() -> None:
    copy = open_log(MemoryDisk())
    copy.append_copy(memoryview(content_of(leader_log())), 2, NOW)
    copy.write()
    again = batch(2, producer=7, epoch=0, sequence=38)
    assert send(copy, again, leader_epoch=3)[0] == (38, -1, True)
    assert send(copy, batch(2, producer=7, epoch=0, sequence=40), leader_epoch=3)[0] == (40, -1, False)


@pytest.mark.parametrize("cut", range(1, 120, 7))
def test_a_batch_that_is_cut_at_the_end_is_left_out(cut: int) -> None:
    leader = leader_log()
    content = content_of(leader)
    copy = open_log(MemoryDisk())
    staged = copy.append_copy(memoryview(content)[:-cut], 2, NOW)
    copy.write()
    assert staged == len(content) - len(stored(leader)[-1].content)
    assert stored(copy) == stored(leader)[:-1]


def test_records_without_a_whole_batch_are_refused() -> None:
    copy = open_log(MemoryDisk())
    with pytest.raises(CorruptMessage):
        copy.append_copy(memoryview(content_of(leader_log()))[:50], 2, NOW)
    assert copy.append_copy(memoryview(b""), 2, NOW) == 0


@examples(max_examples=150)
@given(st.data())
def test_a_damaged_bit_costs_its_batch_and_what_follows(data: st.DataObject) -> None:
    """Bits outside the CRC may give another offset or epoch, as long as neither falls."""
    leader = leader_log()
    content, whole = content_of(leader), stored(leader)
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    position = bit // 8
    hit = 0
    while position >= len(whole[hit].content):
        position -= len(whole[hit].content)
        hit += 1
    copy = open_log(MemoryDisk(), replace(SMALL, copied=True))
    try:
        copy.append_copy(memoryview(content), 2, NOW)
    except CorruptMessage:
        refused = True
    else:
        refused = False
    copy.write()
    survivors = stored(copy)
    assert survivors[:hit] == whole[:hit]
    if position >= 16:  # magic, CRC and everything under it
        assert refused
        assert survivors == whole[:hit]
    assert [entry.offset for entry in survivors] == sorted({entry.offset for entry in survivors})
    epochs = [epoch for epoch, _ in copy.leader_epochs.entries]
    assert epochs == sorted(set(epochs))
    assert max(epochs, default=0) <= 2


def test_offsets_never_fall() -> None:
    leader = leader_log()
    copy = open_log(MemoryDisk())
    first = memoryview(stored(leader)[0].content)
    copy.append_copy(first, 2, NOW)
    with pytest.raises(MisplacedBatch) as refused:
        copy.append_copy(first, 2, NOW)
    assert refused.value.base_offset == 0
    assert copy.end_offset == 2


@pytest.mark.parametrize("leader_epoch", [0, 1])
def test_epochs_are_at_most_the_leaders(leader_epoch: int) -> None:
    leader = leader_log()
    copy = open_log(MemoryDisk())
    with pytest.raises(CorruptMessage, match="epoch"):
        copy.append_copy(memoryview(content_of(leader)), leader_epoch, NOW)
    copy.write()
    assert copy.end_offset == leader.epoch_end(leader_epoch).end_offset, "what came before is staged"


def test_epochs_never_fall() -> None:
    leader = leader_log()
    copy = open_log(MemoryDisk())
    content = [bytearray(entry.content) for entry in stored(leader)]
    content[8][12:16] = (0).to_bytes(4, "big")
    with pytest.raises(CorruptMessage, match="epoch"):
        copy.append_copy(memoryview(b"".join(content)), 2, NOW)
    copy.write()
    assert stored(copy) == stored(leader)[:8]


def test_a_batch_larger_than_a_segment_is_copied() -> None:
    leader = open_log(MemoryDisk(), replace(SMALL, segment_bytes=10_000))
    send(leader, batch(), batch(size=3000), batch())
    copy = open_log(MemoryDisk())
    copy.append_copy(memoryview(content_of(leader)), 0, NOW)
    copy.write()
    assert stored(copy) == stored(leader)
    assert [segment.base_offset for segment in copy.segments] == [0, 1, 2]


def test_a_failed_write_takes_copies_back() -> None:
    disk = MemoryDisk()
    leader, copy = leader_log(), open_log(disk)
    content = stored(leader)
    copy.append_copy(memoryview(b"".join(entry.content for entry in content[:3])), 2, NOW)
    copy.write()
    disk.capacity = 0
    copy.append_copy(memoryview(b"".join(entry.content for entry in content[3:])), 2, NOW)
    with pytest.raises(StorageFailed):
        copy.write()
    assert (copy.end_offset, copy.last_epoch) == (6, 0)
    disk.capacity = None
    copy.append_copy(memoryview(b"".join(entry.content for entry in content[3:])), 2, NOW)
    copy.write()
    assert stored(copy) == content
    assert copy.leader_epochs.entries == leader.leader_epochs.entries


def test_an_epoch_that_begins_behind_a_gap_starts_where_the_log_ended() -> None:
    """Another replica's batches in the gap are of an older epoch, and it must hear that they are not here."""
    disk, leader = MemoryDisk(), leader_log()
    kept = [entry for entry in stored(leader) if not 12 <= entry.offset < 18]  # epoch 1 begins at 14
    copy = open_log(disk, replace(SMALL, copied=True))
    copy.append_copy(memoryview(b"".join(entry.content for entry in kept)), 2, NOW)
    copy.write()
    sync(copy)
    for log in (copy, open_log(disk.crash(all_kept))):
        assert log.leader_epochs.entries[:2] == [(0, 0), (1, 12)]
        assert log.diverging(0, 16) == (0, 12)


@pytest.mark.parametrize("crash", [all_lost, all_kept])
def test_a_copy_with_gaps_is_whole_after_a_crash(crash: Pick) -> None:
    leader, disk = filled(MemoryDisk()), MemoryDisk()
    settings = replace(SMALL, copied=True)
    copy = open_log(disk, settings)
    kept = [entry for entry in stored(leader) if entry.offset % 4]
    copy.append_copy(memoryview(b"".join(entry.content for entry in kept)), 0, NOW)
    copy.write()
    assert stored(open_log(disk.copy(), settings)) == kept
    sync(copy)
    assert stored(open_log(disk.crash(crash), settings)) == kept


def test_a_follower_that_was_killed_has_what_lies_behind_gaps() -> None:
    leader, disk = open_log(MemoryDisk(), replace(SMALL, segment_bytes=100_000)), MemoryDisk()
    send(leader, *(batch() for _ in range(11)))
    kept = [entry for entry in stored(leader) if entry.offset in (0, 1, 5, 9, 10)]
    settings = replace(SMALL, copied=True)
    copy = open_log(disk, settings)
    copy.append_copy(memoryview(b"".join(entry.content for entry in kept)), 0, NOW)
    copy.write()
    again = open_log(disk.copy(), settings)
    assert again.end_offset == 11
    assert stored(again) == kept


@examples(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), st.booleans(), st.booleans()), max_size=25),
    st.integers(0, 1 << 16),
)
def test_a_copy_that_was_cut_off_is_a_beginning_with_all_that_was_synced(
    steps: list[tuple[int, int, bool, bool]], seed: int
) -> None:
    """Each step: a batch's records, the gap before it, whether it is written, whether that is synced."""
    disk, settings = MemoryDisk(), replace(SMALL, copied=True)
    copy, offset, epoch = open_log(disk, settings), 0, 0
    written: list[bytes] = []
    staged: list[bytes] = []
    for count, gap, is_written, is_synced in steps:
        offset, epoch = offset + gap, epoch + (gap == 4)
        content = encode_batch(
            [Record(offset + i, NOW, None, b"v" * 30) for i in range(count)],
            base_offset=offset,
            leader_epoch=epoch,
        )
        staged.append(bytes(content))
        copy.append_copy(memoryview(staged[-1]), epoch, NOW)
        offset += count
        if is_written:
            copy.write()
            written, staged = written + staged, []
            if is_synced:
                sync(copy)
    for found, safe in (
        (disk.crash(Random(seed).randrange), copy.synced_offset),
        (disk.copy(), copy.written_offset),
    ):
        again = open_log(found, settings)
        survivors = [entry.content for entry in stored(again)]
        assert survivors == written[: len(survivors)]
        assert again.end_offset >= safe
        assert stored(open_log(found.crash(all_lost), settings)) == stored(again)


def test_the_watermark_is_kept_as_a_hint() -> None:
    disk, settings = MemoryDisk(), replace(SMALL, copied=True)
    copy = open_log(disk, settings)
    assert copy.watermark == -1
    copy.append_copy(memoryview(content_of(leader_log())), 2, NOW)
    copy.write()
    copy.watermark = 12
    sync(copy)
    assert open_log(disk.copy(), settings).watermark == 12
    copy.watermark = 30
    copy.close()
    copy = open_log(disk, settings, clean=True)
    assert copy.watermark == 30
    copy.truncate_to(20, NOW)
    assert copy.watermark == 20
    assert open_log(disk.crash(all_lost), settings).watermark == 20
