"""Looking at a log's files offline: what is in them, and whether all of it holds.

For `postroad log verify|dump`. Nothing is changed; the node that owns the directory should be stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from postroad.log.aborted import ABORTED_SUFFIX, aborted_path, read_aborted
from postroad.log.checkpoint import FILE_NAME as CHECKPOINT_FILE
from postroad.log.checkpoint import Checkpoint, read_checkpoint
from postroad.log.compaction_files import CLEANED_SUFFIX, SWAP_SUFFIX, base_offsets, numbered, orphans
from postroad.log.disk import TEMPORARY, Disk
from postroad.log.epochs import FILE_NAME as EPOCHS_FILE
from postroad.log.epochs import read_epochs
from postroad.log.index import ENTRY_BYTES, SparseIndex, read_seal
from postroad.log.order import in_order
from postroad.log.producers import SUFFIX, read_producers, snapshot_path
from postroad.log.salvage import first_whole
from postroad.log.scan import OFFSET_MAX, DamagedBatch, scan_unordered, walk
from postroad.log.segment import index_path, log_path
from postroad.wire.batch import BatchHeader


class Finding(NamedTuple):
    """Something that does not hold. `harmless`: opening the log puts it right, and no message is lost."""

    file: str
    position: int
    text: str
    harmless: bool


class Batch(NamedTuple):
    segment: int  # its base offset
    position: int
    header: BatchHeader
    content: memoryview


def verify_directory(disk: Disk, directory: str) -> list[Finding]:
    """Every batch, index entry, snapshot and checkpoint of one partition's directory is looked at."""
    names = disk.list(directory)
    found = read_checkpoint(disk, directory)
    findings = [
        Finding(name, 0, "is half made: a crash interrupted it", True)
        for name in names
        if name.endswith((TEMPORARY, CLEANED_SUFFIX, SWAP_SUFFIX))
    ]
    findings += (Finding(name, 0, "belongs to no segment", True) for name in orphans(names))
    bases = base_offsets(names)
    end = bases[0] if bases else 0
    for base, following in zip(bases, [*bases[1:], None], strict=False):
        if base < end:
            findings.append(Finding(_name(log_path("", base)), 0, f"overlaps the one before: {end}", False))
        segment_findings, end = _verify_segment(disk, directory, base, following, found[1] if found else None)
        findings += segment_findings
    return findings + _verify_state(disk, directory, names, bases, end, found[1] if found else None)


def iterate_batches(disk: Disk, directory: str, from_offset: int = 0) -> Iterator[Batch]:
    """The batches in order, from the one that holds the offset on. Raises DamagedBatch."""
    bases = base_offsets(disk.list(directory))
    for base, following in zip(bases, [*bases[1:], None], strict=False):
        if following is not None and following <= from_offset:
            continue
        file = disk.open(log_path(directory, base))
        try:
            for position, header in walk(file, 0, file.size(), base):
                if header.last_offset >= from_offset:
                    yield Batch(base, position, header, memoryview(file.read(position, header.size)))
        finally:
            file.close()


def _verify_segment(
    disk: Disk, directory: str, base: int, following: int | None, checkpoint: Checkpoint | None
) -> tuple[list[Finding], int]:
    """What is wrong with it and its index, and the offset where it ends. `following` is the next base.

    In the newest segment of a log that was not copied no gap can be right (see `recovery`, R5).
    """
    findings, starts, end = [], {0: base}, base
    adjoins = following is None and checkpoint is not None and not checkpoint.copied
    expected: int | None = base  # where the next batch begins if there is no gap; None behind damage
    name = _name(log_path("", base))
    file = disk.open(log_path(directory, base))
    try:
        position, size = 0, file.size()
        ceiling = _end_of(disk, directory, base, size) if following is None else following
        while position < size:
            try:
                for at, header, right in in_order(scan_unordered(file, position, size), end, ceiling):
                    gap = adjoins and expected is not None and header.base_offset != expected
                    if gap or not right:
                        text = f"claims offset {header.base_offset}, which is not its own"
                        findings.append(Finding(name, at, text, _is_in_doubt(checkpoint, base, at)))
                    starts[at] = header.base_offset
                    expected = header.next_offset if right else None
                    position, end = at + header.size, header.next_offset if right else end
            except DamagedBatch as damage:
                expected = None
                doubtful = _is_in_doubt(checkpoint, base, damage.position)
                findings.append(Finding(name, damage.position, damage.reason, doubtful))
                further = first_whole(file, damage.position, size, end, ceiling)
                position = size if doubtful or further is None else further[0]
    finally:
        file.close()
    starts[size] = end
    return findings + _verify_index(disk, directory, base, starts), end


def _end_of(disk: Disk, directory: str, base: int, size: int) -> int:
    """Where the newest segment ends, as the last stop has left it in the index."""
    seal = read_seal(disk, index_path(directory, base))
    return seal.offset if seal is not None and seal.position == size else OFFSET_MAX


def _is_in_doubt(checkpoint: Checkpoint | None, base: int, position: int) -> bool:
    """Above the recovery point a torn batch is what a crash leaves; nobody was told that it is safe."""
    if checkpoint is None:
        return False
    return (base, position) >= (checkpoint.point.segment, checkpoint.point.position)


def _verify_index(disk: Disk, directory: str, base: int, starts: dict[int, int]) -> list[Finding]:
    path, name = index_path(directory, base), _name(index_path("", base))
    index = SparseIndex(path, base)
    index.load(disk, thin=False)
    wrong = [
        Finding(
            name, i * ENTRY_BYTES, f"leads to byte {position}, where offset {offset} does not begin", True
        )
        for i, (offset, position) in enumerate(zip(index.offsets, index.positions, strict=True))
        if starts.get(position) != offset
    ]
    if index.is_stale:
        wrong.append(Finding(name, len(index.offsets) * ENTRY_BYTES, "is not in order from here on", True))
    return wrong


def _verify_state(
    disk: Disk, directory: str, names: list[str], bases: list[int], end: int, checkpoint: Checkpoint | None
) -> list[Finding]:
    findings = []
    if bases and checkpoint is None:
        findings.append(Finding(CHECKPOINT_FILE, 0, "is missing or damaged", True))
    if checkpoint is not None and checkpoint.point.offset > end:
        text = f"tells of offset {checkpoint.point.offset}, but the log ends at {end}"
        findings.append(Finding(CHECKPOINT_FILE, 0, text, False))
    if EPOCHS_FILE in names and read_epochs(disk, directory) is None:
        findings.append(Finding(EPOCHS_FILE, 0, "is damaged", True))
    snapshots = [snapshot_path("", offset) for offset in numbered(names, SUFFIX)]
    damaged = [path for path in snapshots if read_producers(disk, directory + path) is None]
    lists = [aborted_path("", base) for base in numbered(names, ABORTED_SUFFIX)]
    damaged += [path for path in lists if read_aborted(disk, directory + path) is None]
    return findings + [Finding(_name(path), 0, "is damaged", True) for path in damaged]


def _name(path: str) -> str:
    return path.removeprefix("/")
