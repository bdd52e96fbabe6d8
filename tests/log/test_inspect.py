from __future__ import annotations

from dataclasses import replace

import pytest

from postroad.log.inspect import iterate_batches, verify_directory
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.log.scan import DamagedBatch
from postroad.log.settings import LogSettings

from .logs import DIRECTORY, NOW, SMALL, batch, filled, open_log, send, stored, sync


def altered(disk: MemoryDisk, path: str, position: int) -> None:
    content = bytearray(disk.content(path))
    content[position] ^= 1
    disk.damage(path, bytes(content))


@pytest.mark.parametrize("closed", [True, False])
def test_a_whole_log_has_no_findings(closed: bool) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    if closed:
        log.close()
    assert verify_directory(disk, DIRECTORY) == []


def test_a_log_without_messages_has_no_findings() -> None:
    disk = MemoryDisk()
    open_log(disk).close()
    assert verify_directory(disk, DIRECTORY) == []


def test_an_empty_directory_has_no_findings() -> None:
    assert verify_directory(MemoryDisk(), DIRECTORY) == []


def test_a_damaged_batch_is_found_and_the_ones_after_it_are_checked() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    altered(disk, log.segments[0].path, 100)
    altered(disk, log.segments[0].path, log.segments[0].size - 1)
    findings = verify_directory(disk, DIRECTORY)
    damaged = [finding for finding in findings if not finding.harmless]
    assert [finding.file[-8:] for finding in damaged] == ["0000.log"] * 2
    assert "CRC" in damaged[0].text


def test_a_torn_tail_is_harmless() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    send(log, batch())
    path = log.active.path
    disk.damage(path, disk.content(path)[:-3])
    (finding,) = verify_directory(disk, DIRECTORY)
    assert finding.harmless


def test_damage_in_what_can_be_rebuilt_is_harmless() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.close()
    for name in disk.list(DIRECTORY):
        if name.endswith((".index", ".producers")) or name == "leader-epochs":
            altered(disk, f"{DIRECTORY}/{name}", 7)
    findings = verify_directory(disk, DIRECTORY)
    assert len({finding.file for finding in findings}) >= len(log.segments) + 2
    assert all(finding.harmless for finding in findings)
    disk.remove(f"{DIRECTORY}/checkpoint")
    assert any(finding.file == "checkpoint" for finding in verify_directory(disk, DIRECTORY))


def test_missing_messages_are_found() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    disk.remove(log.active.path)
    assert [
        finding.harmless for finding in verify_directory(disk, DIRECTORY) if finding.file == "checkpoint"
    ] == [False]


def test_batches_are_listed_from_an_offset() -> None:
    disk = MemoryDisk()
    intact = stored(filled(disk))
    assert [bytes(found.content) for found in iterate_batches(disk, DIRECTORY)] == [e.content for e in intact]
    tail = [found.header.base_offset for found in iterate_batches(disk, DIRECTORY, from_offset=40)]
    assert tail == [entry.offset for entry in intact if entry.offset >= 39]


def test_listing_stops_at_a_batch_that_is_none() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    altered(disk, log.segments[1].path, 16)
    with pytest.raises(DamagedBatch):
        list(iterate_batches(disk, DIRECTORY))
    assert open_log(disk).end_offset == log.end_offset


def with_raised_offset(disk: MemoryDisk, settings: LogSettings, synced: bool) -> PartitionLog:
    """The last batch of the newest segment claims an offset that is too high."""
    log = open_log(disk, settings)
    for _ in range(3):
        send(log, batch(2))
    if synced:
        sync(log)
    position = log.active.size - len(stored(log)[-1].content)
    content = bytearray(disk.content(log.active.path))
    content[position + 7] ^= 0x40
    disk.damage(log.active.path, bytes(content))
    return log


@pytest.mark.parametrize("synced", [False, True])
def test_a_gap_at_the_end_is_found_as_recovery_finds_it(synced: bool) -> None:
    disk = MemoryDisk()
    with_raised_offset(disk, SMALL, synced)
    (finding,) = (found for found in verify_directory(disk, DIRECTORY) if found.file.endswith(".log"))
    assert finding.harmless is not synced
    assert "offset" in finding.text
    assert open_log(disk).end_offset == (6 if synced else 4), "cut if it is in doubt"


def test_a_gap_in_a_copied_log_is_none_of_its_faults() -> None:
    disk = MemoryDisk()
    log = open_log(disk, replace(SMALL, copied=True))
    for entry in stored(filled(MemoryDisk()))[::2]:
        log.append_copy(memoryview(entry.content), 0, NOW)
    log.write()
    assert verify_directory(disk, DIRECTORY) == []
    assert open_log(disk).end_offset == log.end_offset, "also where the topic has one replica by now"
    assert verify_directory(disk, DIRECTORY) == []
