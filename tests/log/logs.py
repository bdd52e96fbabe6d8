"""What the tests of the log share: batches, a log on a memory disk, and a checker of its promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from postroad.log.disk import Disk
from postroad.log.memory_disk import MemoryDisk, Pick
from postroad.log.partition_log import Appended, PartitionLog
from postroad.log.settings import LogSettings
from postroad.wire.batch import BatchHeader, check, read_header, walk
from postroad.wire.records import Record, decode_records, encode_batch

NOW = 1_700_000_000_000
DIRECTORY = "data/topic/0"
SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=200)
"""Segments of a few batches, so that each test sees several."""


class Stored(NamedTuple):
    offset: int
    content: bytes


class Crash(Exception):
    """The machine stops here."""


def all_lost(_: int) -> int:
    return 0


def all_kept(_: int) -> int:
    return 1


FATES: tuple[Pick, ...] = (
    all_lost,
    all_kept,
    lambda n: min(2, n - 1),
    lambda n: min(3, n - 1),
    lambda n: n - 1,
)


def batch(
    count: int = 1,
    *,
    size: int = 40,
    time: int = NOW,
    key: bytes | None = None,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    attributes: int = 0,
) -> memoryview:
    """As a producer sends it: offsets from 0, to be placed by the log."""
    records = [Record(i, time + i, key, bytes([i % 256]) * size) for i in range(count)]
    return memoryview(
        encode_batch(
            records,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=attributes,
        )
    )


def open_log(
    disk: Disk, settings: LogSettings = SMALL, clean: bool = False, now_ms: int = NOW
) -> PartitionLog:
    return PartitionLog.open(disk, DIRECTORY, settings, now_ms, clean)


def append(log: PartitionLog, content: memoryview, now_ms: int = NOW, leader_epoch: int = 0) -> Appended:
    """Append as the leader of this epoch."""
    if log.led_epoch != leader_epoch:
        log.begin_epoch(leader_epoch)
    return log.append(content, read_header(content), leader_epoch, now_ms)


def send(
    log: PartitionLog, *contents: memoryview, now_ms: int = NOW, leader_epoch: int = 0
) -> list[Appended]:
    """Append and write."""
    appended = [append(log, content, now_ms, leader_epoch) for content in contents]
    log.write()
    return appended


def sync(log: PartitionLog) -> None:
    job = log.begin_sync()
    if job is not None:
        try:
            job.run()
        except OSError as error:
            log.finish_sync(job, error)
        else:
            log.finish_sync(job, None)


def filled(disk: MemoryDisk, batches: int = 30, settings: LogSettings = SMALL) -> PartitionLog:
    """A log of several segments, all synced."""
    log = open_log(disk, settings)
    for number in range(batches):
        send(log, batch(1 + number % 3, time=NOW + number))
    sync(log)
    return log


def stored(log: PartitionLog, max_bytes: int = 300) -> list[Stored]:
    """Everything that can be read, as a consumer reads it; each batch is checked."""
    return [Stored(header.base_offset, content) for header, content in read_all(log, max_bytes)]


def read_all(log: PartitionLog, max_bytes: int = 300) -> Iterator[tuple[BatchHeader, bytes]]:
    offset = log.start_offset
    while (found := log.read(offset, max_bytes, log.written_offset)) is not None:
        if not found.verified:
            log.verify(found)
            log.mark_verified(found)
        content = memoryview(found.file.read(found.position, found.length))
        headers = list(walk(content))
        assert sum(header.size for _, header in headers) == found.length, "a slice is whole batches"
        assert headers[0][1].last_offset >= offset, "the first batch holds the offset"
        for position, header in headers:
            check(content, header, position)
            yield header, bytes(content[position : position + header.size])
        offset = headers[-1][1].next_offset


def records(log: PartitionLog) -> list[Record]:
    return [record for _, content in read_all(log) for record in decode_records(content)]


def check_survivors(log: PartitionLog, written: Sequence[Stored], acknowledged: int) -> None:
    """L1, L2: what was acknowledged is there, byte for byte, then a beginning of what came after it."""
    survivors = stored(log)
    expected = [entry for entry in written if entry.offset >= log.start_offset]
    assert survivors == expected[: len(survivors)], "other bytes than were written"
    assert log.end_offset >= acknowledged, f"acknowledged up to {acknowledged}, ends at {log.end_offset}"
    assert log.synced_offset == log.written_offset == log.end_offset
    if len(survivors) < len(expected):
        assert log.end_offset <= expected[len(survivors)].offset, "it claims more than it has"


def stop_at(disk: MemoryDisk, operation: int, error: BaseException) -> Callable[[], int]:
    """Raise before the n-th change from now on, and at every one after it; says how many there were."""
    count = 0

    def on_operation(_: str, __: str) -> None:
        nonlocal count
        count += 1
        if count > operation:
            raise error

    disk.on_operation = on_operation
    return lambda: count


def crashed(disk: MemoryDisk, pick: Pick) -> MemoryDisk:
    disk.on_operation = None
    return disk.crash(pick)
