"""Offsets and leader epochs lie outside the CRC: a flipped bit in them is an error, never a wrong offset."""

from __future__ import annotations

from dataclasses import replace

import pytest

from postroad.errors import CorruptMessage
from postroad.log.inspect import verify_directory
from postroad.log.memory_disk import MemoryDisk
from postroad.log.partition_log import PartitionLog
from postroad.wire.batch import BatchHeader, walk

from .logs import DIRECTORY, NOW, SMALL, append, batch, open_log, send, sync

BATCHES = 14
OFFSET_BITS = range(64)
EPOCH_BITS = range(8 * 12, 8 * 16)
BODY = 16  # from here on the bytes tell which batch it is


def some_disk(counts: int = 3) -> tuple[MemoryDisk, dict[bytes, BatchHeader]]:
    """A closed log of several segments and two leader epochs; its batches by what is in them."""
    disk = MemoryDisk()
    log = open_log(disk)
    for number in range(BATCHES):
        send(log, batch(1 + number % counts, time=NOW + number), leader_epoch=3 + number // 6)
        sync(log)
    log.close()
    found: dict[bytes, BatchHeader] = {}
    for path in segments(disk):
        content = disk.content(path)
        found |= {content[at + BODY : at + h.size]: h for at, h in walk(memoryview(content))}
    assert len(found) == BATCHES
    return disk, found


def segments(disk: MemoryDisk) -> list[str]:
    return [f"{DIRECTORY}/{name}" for name in disk.list(DIRECTORY) if name.endswith(".log")]


def served(log: PartitionLog, offset: int, max_bytes: int) -> list[tuple[bytes, BatchHeader]] | None:
    """What a consumer that asks for the offset gets; None: an error."""
    try:
        found = log.read(offset, max_bytes, log.written_offset)
        assert found is not None
        if not found.verified:
            log.verify(found)
            log.mark_verified(found)
    except CorruptMessage:
        return None
    content = memoryview(found.file.read(found.position, found.length))
    return [(bytes(content[at + BODY : at + h.size]), h) for at, h in walk(content)]


def flipped(disk: MemoryDisk, path: str, bit: int) -> MemoryDisk:
    damaged = disk.copy()
    content = bytearray(damaged.content(path))
    content[bit // 8] ^= 1 << bit % 8
    damaged.damage(path, bytes(content))
    return damaged


@pytest.mark.parametrize("bits", [OFFSET_BITS, EPOCH_BITS], ids=["offset", "epoch"])
@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("max_bytes", [1, 100_000])
def test_each_flipped_bit_is_an_error_or_changes_nothing(
    max_bytes: int, has_index: bool, bits: range
) -> None:
    disk, batches = some_disk()
    errors = 0
    for path in segments(disk):
        for at, harmed in list(walk(memoryview(disk.content(path)))):
            for bit in bits:
                damaged = flipped(disk, path, 8 * at + bit)
                if not has_index:
                    damaged.remove(path.removesuffix(".log") + ".index")
                log = open_log(damaged, clean=True)
                for offset in range(log.start_offset, log.written_offset, 2):
                    answer = served(log, offset, max_bytes)
                    errors += answer is None
                    for content, header in answer or ():
                        true = batches[content]
                        assert header[:3] == true[:3], f"bit {bit} of {harmed.base_offset}"
    assert errors


def test_only_the_batch_with_the_wrong_offset_is_refused() -> None:
    disk, _ = some_disk()
    path = segments(disk)[1]
    for at, harmed in list(walk(memoryview(disk.content(path)))):
        for bit in OFFSET_BITS:
            log = open_log(flipped(disk, path, 8 * at + bit), clean=True)
            for offset in range(log.start_offset, log.written_offset):
                served(log, offset, 100_000)  # what is wrong is known afterwards
            refused = [o for o in range(log.written_offset) if served(log, o, 1) is None]
            assert set(refused) <= set(range(harmed.base_offset, harmed.next_offset)), f"bit {bit}"


def test_log_verify_finds_each_flipped_bit_of_an_offset() -> None:
    disk, _ = some_disk()
    for path in segments(disk):
        for at, harmed in list(walk(memoryview(disk.content(path)))):
            for bit in OFFSET_BITS:
                findings = verify_directory(flipped(disk, path, 8 * at + bit), DIRECTORY)
                found = {(f.file, f.position) for f in findings if not f.harmless}
                assert (path.rpartition("/")[2], at) in found, f"bit {bit} of {harmed.base_offset}"


def test_wrong_offset_does_not_make_compaction_keep_an_older_value() -> None:
    settings = replace(SMALL, cleanup_compact=True, cleanup_delete=False, min_cleanable_dirty_ratio=0.0)
    disk = MemoryDisk()
    log = open_log(disk, settings)
    for _ in range(20):
        send(log, batch(key=b"key"))
    newest = log.written_offset - 1
    sync(log)
    log.roll()
    sync(log)
    log.close()
    first = segments(disk)[0]
    for bit in OFFSET_BITS:
        damaged = flipped(disk, first, 8 * 0 + bit)
        again = open_log(damaged, settings, clean=True)
        job = again.compaction(NOW, again.end_offset)
        assert job is not None
        job.run()
        again.install(job).run()
        answer = served(again, newest, 1)
        assert answer is not None, f"bit {bit}"
        assert answer[0][1].base_offset == newest, f"bit {bit}"


def test_epoch_that_only_a_damaged_batch_claims_keeps_nobody_from_writing() -> None:
    disk, _ = some_disk()
    path = segments(disk)[-1]
    *_, (at, last) = walk(memoryview(disk.content(path)))
    for bit in EPOCH_BITS:
        damaged = flipped(disk, path, 8 * at + bit)
        for name in damaged.list(DIRECTORY):
            if name.endswith((".producers", "leader-epochs")):  # so that batches are asked
                damaged.remove(f"{DIRECTORY}/{name}")
        log = open_log(damaged)
        assert append(log, batch(), leader_epoch=last.leader_epoch).base_offset == last.next_offset
        log.write()
        assert log.last_epoch == last.leader_epoch


@pytest.mark.parametrize("known_files", [True, False], ids=["files", "no files"])
@pytest.mark.parametrize("counts", [[1, 1, 1, 1], [3, 1, 3], [3, 3, 3, 3], [2, 5, 1, 4]])
def test_leader_whose_epoch_fell_with_a_restored_store_refuses_no_batch(
    counts: list[int], known_files: bool
) -> None:
    disk = MemoryDisk()
    epochs = [*range(4, 4 + len(counts)), *range(4, 7)]  # a backup of the store begins at 4 again
    for start, epoch in enumerate(epochs):
        log = open_log(disk)
        for _ in range([*counts, 1, 3, 2][start]):
            send(log, batch(), leader_epoch=epoch)
            sync(log)
        log.close()
        if not known_files:
            for name in disk.list(DIRECTORY):
                if name.endswith((".producers", "leader-epochs")):  # so that batches are asked
                    disk.remove(f"{DIRECTORY}/{name}")
        for max_bytes in (1, 100_000):
            cold = open_log(disk.copy(), clean=True)
            refused = [o for o in range(cold.written_offset) if served(cold, o, max_bytes) is None]
            assert refused == [], f"start {start} with epoch {epoch}"
