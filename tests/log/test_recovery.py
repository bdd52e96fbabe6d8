from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from postroad.errors import CorruptMessage, StorageFailed
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import PartitionLog
from postroad.log.segment import index_path, log_path
from postroad.wire.batch import read_header

from .logs import (
    DIRECTORY,
    FATES,
    NOW,
    SMALL,
    Crash,
    Stored,
    all_kept,
    all_lost,
    append,
    batch,
    check_survivors,
    crashed,
    filled,
    open_log,
    send,
    stop_at,
    stored,
    sync,
)

CHECKPOINT = f"{DIRECTORY}/checkpoint"
EPOCHS = f"{DIRECTORY}/leader-epochs"


def flip(disk: MemoryDisk, path: str, position: int, bit: int = 0) -> None:
    content = bytearray(disk.content(path))
    content[position] ^= 1 << bit
    disk.damage(path, bytes(content))


def test_a_new_log_is_empty_and_opens_again() -> None:
    disk = MemoryDisk()
    for _ in range(2):
        log = open_log(disk)
        assert (log.start_offset, log.end_offset) == (0, 0)
    assert open_log(disk.crash(all_lost)).end_offset == 0


def test_the_checker_catches_acknowledging_before_the_sync() -> None:
    """A checker must be shown to fail: here `written` is taken for acknowledged."""
    disk = MemoryDisk()
    log = filled(disk)
    written = [*stored(log)]
    send(log, batch())
    log_after_crash = open_log(disk.crash(all_lost))
    check_survivors(log_after_crash, written, acknowledged=log.synced_offset)
    with pytest.raises(AssertionError, match="acknowledged up to"):
        check_survivors(log_after_crash, written, acknowledged=log.written_offset)


@pytest.mark.parametrize("synced", [True, False])
def test_the_last_batch_cut_at_every_byte_is_dropped_and_no_other(synced: bool) -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=5)
    before = stored(log)
    send(log, batch(2))
    if synced:
        sync(log)
    last = log.active
    start = stored(log)[-1].offset
    for size in range(last.known[start], last.size):
        found = disk.copy()
        found.damage(last.path, disk.content(last.path)[:size])
        again = open_log(found)
        assert stored(again) == before
        assert again.end_offset == start
        assert send(again, batch())[0].base_offset == start
        assert stored(open_log(found))[:-1] == before


def test_a_torn_batch_in_the_unsynced_tail_cuts_everything_behind_it() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=4)
    before = stored(log)
    size = log.active.size
    send(log, batch(), batch(), batch())
    found = disk.copy()
    flip(found, log.active.path, size + 70)
    again = open_log(found)
    assert stored(again) == before
    assert "CRC" in again.recovery.reason


def test_unsynced_segments_behind_a_torn_batch_are_removed() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=2)
    path, size, before = log.active.path, log.active.size, stored(log)
    for _ in range(30):
        send(log, batch())
    assert len(log.segments) > 2
    found = disk.copy()
    flip(found, path, size + 70)
    again = open_log(found)
    assert stored(again) == before
    assert again.recovery.removed_segments == len(log.segments) - 1
    assert [name for name in found.list(DIRECTORY) if name.endswith(".log")] == [path.rsplit("/", 1)[1]]


def test_a_flipped_bit_in_synced_data_is_answered_and_never_cut() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    intact = stored(log)
    for segment in log.segments:
        for position in range(0, segment.size, 7):
            found = disk.copy()
            flip(found, segment.path, position, bit=position % 8)
            again = open_log(found)
            assert again.end_offset == log.end_offset
            assert len(found.content(segment.path)) == segment.size
            # Offset and epoch lie outside the CRC: a bit of theirs may go unseen. All else is checked.
            served = [content[16:] for content in served_around_damage(again)]
            assert set(served) <= {entry.content[16:] for entry in intact}


def served_around_damage(log: PartitionLog) -> list[bytes]:
    """What a consumer gets who skips an offset that can't be read."""
    served, offset = [], 0
    while offset < log.end_offset:
        try:
            found = log.read(offset, 1, log.written_offset)
            if found is None:
                break
            if not found.verified:
                log.verify(found)
        except CorruptMessage:
            offset += 1
            continue
        content = found.file.read(found.position, found.length)
        served.append(content)
        offset = max(offset + 1, read_header(content).next_offset)
    return served


@pytest.mark.parametrize("pick", FATES)
def test_a_flipped_bit_in_a_closed_segment_is_never_cut_after_a_power_cut(pick: Pick) -> None:
    """The checkpoint is on the disk with the segment that was closed: nothing of that is in doubt."""
    disk = MemoryDisk()
    log = filled(disk)
    send(log, batch())
    sync(log)
    log_end, first = log.end_offset, log.segments[0].path
    disk = crashed(disk, pick)
    content = bytearray(disk.content(first))
    content[-1] ^= 1
    disk.damage(first, bytes(content))
    assert open_log(disk).end_offset == log_end


def test_batches_before_a_damaged_one_are_served() -> None:
    disk = MemoryDisk()
    log = filled(disk, batches=3, settings=replace(SMALL, segment_bytes=5000))
    intact = stored(log)
    flip(disk, log.active.path, log.active.size - 1)
    log = open_log(disk, log.settings)
    whole = log.read(0, 5000, log.written_offset)
    assert whole is not None
    with pytest.raises(CorruptMessage):
        log.verify(whole)
    good = log.read(0, 5000, log.written_offset)
    assert good is not None
    log.verify(good)
    assert good.length == sum(len(entry.content) for entry in intact[:-1])
    with pytest.raises(CorruptMessage):
        log.read(intact[-1].offset, 5000, log.written_offset)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "zeros": lambda content: content + bytes(64),
    "only zeros": lambda content: bytes(len(content)),
    "cut": lambda content: content[:-5],
    "reversed": lambda content: b"".join(reversed(entries_of(content))),
    "other offsets": lambda content: b"".join(entry(o - 1, p, t) for o, p, t, _ in unpacked(content)),
    "higher offsets": lambda content: b"".join(entry(o + 1, p, t) for o, p, t, _ in unpacked(content)),
    "other positions": lambda content: b"".join(entry(o, p + 1, t) for o, p, t, _ in unpacked(content)),
    "wrong time": lambda content: content[:20] + bytes(4) + content[24:],
    "garbage": lambda content: bytes(range(1, 33)) * 4,
}


def entries_of(content: bytes) -> list[bytes]:
    return [content[at : at + 32] for at in range(0, len(content), 32)]


def unpacked(content: bytes) -> list[tuple[int, ...]]:
    return [struct.unpack(">4q", packed) for packed in entries_of(content)]


def entry(offset: int, position: int, time: int) -> bytes:
    """One that passes all checks but the batch's own."""
    return struct.pack(">4q", offset, position, time, offset ^ position ^ time ^ 0x706F7374726F6164)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", [None, *DAMAGES])
def test_indexes_are_hints_and_answers_stay_right_without_them(damage: str | None, clean: bool) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    intact = stored(log)
    times = [log.offset_for_time(NOW + number) for number in range(40)]
    log.close()
    for segment in log.segments:
        if damage is None:
            disk.remove(segment.index_path)
        else:
            disk.damage(segment.index_path, DAMAGES[damage](disk.content(segment.index_path)))
    log = open_log(disk, clean=clean)
    for offset in reversed(range(log.end_offset)):
        found = log.read(offset, 1, log.written_offset)
        assert found is not None
        header = read_header(found.file.read(found.position, found.length))
        assert header.base_offset <= offset <= header.last_offset
    log = open_log(disk, clean=clean)
    assert stored(log) == intact
    log = open_log(disk, clean=clean)
    assert [log.offset_for_time(NOW + number) for number in range(40)] == times


def test_an_index_above_the_recovery_point_is_made_anew() -> None:
    """Torn or stale, it may claim a time that is not so."""
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(30):
        send(log, batch(time=NOW + 40 - number))
    times = [log.offset_for_time(NOW + number) for number in range(60)]
    for segment in log.segments[:-1]:
        changed = [entry(o, p, t - 30) for o, p, t, _ in unpacked(disk.content(segment.index_path))]
        disk.damage(segment.index_path, b"".join(changed))
    log = open_log(disk.copy())
    assert [log.offset_for_time(NOW + number) for number in range(60)] == times


def test_each_flipped_bit_in_an_index_goes_unnoticed() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    times = [log.offset_for_time(NOW + number) for number in range(40)]
    log.close()
    path = log.segments[1].index_path
    for position in range(len(disk.content(path))):
        found = disk.copy()
        flip(found, path, position, bit=position % 8)
        log = open_log(found, clean=True)
        assert [log.offset_for_time(NOW + number) for number in range(40)] == times


def test_a_segment_that_does_not_adjoin_the_one_before_goes() -> None:
    """The end of one segment was lost at a batch's boundary, the next one was not."""
    disk = MemoryDisk()
    log = filled(disk, batches=2)
    first, size = log.active, log.active.size
    for _ in range(30):
        send(log, batch())
    expected = stored(log)[:3]
    found = disk.copy()
    found.damage(first.path, disk.content(first.path)[: size + len(expected[-1].content)])
    again = open_log(found)
    assert stored(again) == expected
    assert again.recovery.removed_segments == len(log.segments) - 1


@pytest.mark.parametrize("position", range(0, 580, 3))
def test_a_flipped_bit_in_the_checkpoint_loses_nothing(position: int) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    intact = stored(log)
    if position < len(disk.content(CHECKPOINT)):
        flip(disk, CHECKPOINT, position)
    assert stored(open_log(disk)) == intact


@pytest.mark.parametrize("name", ["checkpoint", "leader-epochs"])
@pytest.mark.parametrize("content", [None, b"", b"x" * 600])
def test_a_lost_or_damaged_state_file_loses_nothing(name: str, content: bytes | None) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    send(log, batch(), leader_epoch=5)
    sync(log)
    intact = stored(log)
    if content is None:
        disk.remove(f"{DIRECTORY}/{name}")
    else:
        disk.damage(f"{DIRECTORY}/{name}", content)
    again = open_log(disk)
    assert stored(again) == intact
    assert again.last_epoch == 5
    assert again.epoch_end(0) == (0, log.end_offset - 1)


def test_a_start_offset_is_kept() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    assert log.delete_before(20, log.end_offset) == 20
    assert open_log(disk.copy()).start_offset == 20, "over a kill at once"
    sync(log)
    assert open_log(disk.crash(all_lost)).start_offset == 20, "over a power cut after a sync"


@pytest.mark.parametrize("pick", [all_kept, all_lost])
def test_a_start_in_a_lost_end_deletes_no_later_messages(pick: Pick) -> None:
    """A checkpoint may outlive messages that were not synced; others come to lie at their offsets."""
    disk = MemoryDisk()
    log = filled(disk)
    kept = log.end_offset
    send(log, batch(5))
    log.delete_before(log.end_offset, log.end_offset)
    deleted = disk.content(CHECKPOINT)
    disk = disk.crash(all_lost)
    disk.damage(CHECKPOINT, deleted)
    log = open_log(disk)
    assert (log.start_offset, log.end_offset) == (kept, kept)
    send(log, batch(5))
    sync(log)
    assert open_log(disk.crash(pick)).start_offset == kept


def test_files_that_are_gone_do_not_bring_offsets_back() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.close()
    for name in disk.list(DIRECTORY):
        if name.endswith(".log"):
            disk.remove(f"{DIRECTORY}/{name}")
    again = open_log(disk)
    assert again.end_offset == log.end_offset
    assert send(again, batch())[0].base_offset == log.end_offset


def test_a_crash_after_each_operation_keeps_what_was_acknowledged() -> None:
    operation = 0
    while True:
        disk = MemoryDisk()
        log = filled(disk, batches=3)
        acknowledged, written = log.synced_offset, stored(log)
        count = stop_at(disk, operation, Crash())
        try:
            for number in range(12):
                content = batch(2, size=90)
                append(log, content)
                written.append(Stored(log.end_offset - 2, bytes(content)))
                log.write()
                if number % 4 == 3:
                    sync(log)
                    acknowledged = log.synced_offset
            log.close()
        except Crash:
            pass
        for pick in FATES:
            check_survivors(open_log(crashed(disk, pick)), written, acknowledged)
        if count() <= operation:
            return
        operation += 1


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_at_each_operation_keeps_what_was_acknowledged(error: int) -> None:
    operation, offline = 0, 0
    while True:
        disk = MemoryDisk()
        log = filled(disk, batches=3)
        written, acknowledged = stored(log), log.synced_offset
        count = stop_at(disk, operation, OSError(error, "injected"))
        for number in range(12):
            content = batch(2, size=90)
            try:
                append(log, content)
                log.write()
            except StorageFailed:
                disk.on_operation = None
                continue
            written.append(Stored(log.end_offset - 2, bytes(content)))
            if number % 4 == 3:
                sync(log)
                acknowledged = log.synced_offset
        offline += log.failed is not None
        assert stored(log) == written
        for pick in FATES:
            check_survivors(open_log(crashed(disk, pick)), written, acknowledged)
        if count() <= operation:
            break
        operation += 1
    assert offline > 0


def test_a_failed_write_with_eio_takes_the_log_offline() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    intact = stored(log)
    append(log, batch())
    stop_at(disk, 0, OSError(errno.EIO, "injected"))
    with pytest.raises(StorageFailed, match="offline"):
        log.write()
    disk.on_operation = None
    with pytest.raises(StorageFailed, match="offline"):
        append(log, batch())
    assert stored(log) == intact


def test_a_full_disk_refuses_at_any_byte_and_writing_resumes_without_a_restart() -> None:
    for room in range(0, 1400, 13):
        disk = MemoryDisk()
        log = filled(disk, batches=3)
        intact, end = stored(log), log.end_offset
        disk.capacity = 1 << 30
        disk.capacity -= disk.free_bytes() - room
        for _ in range(8):
            append(log, batch(size=100))
        try:
            log.write()
        except StorageFailed:
            assert log.end_offset == end
            assert stored(log) == intact
            assert log.failed is None
        else:
            end = log.end_offset
        disk.capacity = None
        assert send(log, batch())[0].base_offset == end
        sync(log)
        again = open_log(disk.crash(all_lost))
        assert stored(again) == stored(log)
        assert again.end_offset == end + 1


def test_a_full_disk_still_lets_a_log_open() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    send(log, batch(), leader_epoch=1)
    intact = stored(log)
    found = disk.copy()
    found.capacity = 0
    again = open_log(found)
    assert stored(again) == intact
    assert again.last_epoch == 1


def test_an_index_that_can_not_be_saved_fails_no_message() -> None:
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, segment_bytes=100_000, index_interval_bytes=1))

    def no_index(_: str, path: str) -> None:
        if path.endswith(".index"):
            raise OSError(errno.ENOSPC, "full")

    disk.on_operation = no_index
    for _ in range(200):
        send(log, batch())
    sync(log)
    assert log.synced_offset == 200
    disk.on_operation = None
    assert len(stored(log)) == len(stored(open_log(disk))) == 200


def test_paths_sort_as_offsets() -> None:
    assert log_path("d", 5) == "d/00000000000000000005.log"
    assert index_path("d", 10**18) == "d/01000000000000000000.index"
