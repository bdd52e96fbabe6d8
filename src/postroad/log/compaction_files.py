"""How compacted segments take the place of the old ones, step by step, so that a crash can't hurt.

Segments A, B, C (offsets from `base` to `end`) are rewritten as one:

    1  <base>-<end>.cleaned    is written and synced            a crash: it is deleted, nothing happened
    2  → <base>-<end>.swap     renamed                          from here on the new one counts
    3  the directory is synced; then B.log, C.log, all their indexes and lists of aborted transactions
       (`aborted`) are removed, directory synced; A's list had theirs, durably, before step 2
    4  → <base>.log            renamed over A, directory synced

`finish` is steps 3 and 4. It may run any number of times, so opening a log simply does it again for
each .swap that it finds. Step 2 is durable before step 3, whoever does that: were it undone, nothing
would have what B held. Step 3 is durable before step 4: were B to survive a rename over A, its records
would be there twice.
"""

from __future__ import annotations

from typing import Final

from postroad.log.aborted import ABORTED_SUFFIX, aborted_path
from postroad.log.disk import TEMPORARY, Disk
from postroad.log.segment import INDEX_SUFFIX, LOG_SUFFIX, index_path, log_path

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"


def cleaned_path(directory: str, base: int, end: int) -> str:
    return f"{directory}/{base:020d}-{end:020d}{CLEANED_SUFFIX}"


def swap_path(directory: str, base: int, end: int) -> str:
    return f"{directory}/{base:020d}-{end:020d}{SWAP_SUFFIX}"


def swap(disk: Disk, directory: str, base: int, end: int) -> None:
    """Step 2: the rewritten segment counts, whatever happens."""
    disk.rename(cleaned_path(directory, base, end), swap_path(directory, base, end))


def finish(disk: Disk, directory: str, base: int, end: int) -> None:
    """Steps 3 and 4; nothing if they are done already. Without the new file no old one may go."""
    names = disk.list(directory)
    if swap_path("", base, end).removeprefix("/") not in names:
        return
    disk.sync_directory(directory)
    for old in base_offsets(names):
        if base <= old < end:
            disk.remove(index_path(directory, old))
            if old != base:
                disk.remove(aborted_path(directory, old))
                disk.remove(log_path(directory, old))
    disk.sync_directory(directory)
    disk.rename(swap_path(directory, base, end), log_path(directory, base))
    disk.sync_directory(directory)


def finish_all(disk: Disk, directory: str) -> list[str]:
    """On opening a log: finish what was swapped, drop what was not, and other things half made.

    Returns the names that are there then.
    """
    names = disk.list(directory)
    passing = [name for name in names if name.endswith((CLEANED_SUFFIX, TEMPORARY, SWAP_SUFFIX))]
    for name in passing:
        if name.endswith(SWAP_SUFFIX):
            base, end = name.removesuffix(SWAP_SUFFIX).split("-")
            finish(disk, directory, int(base), int(end))
        else:
            disk.remove(f"{directory}/{name}")
    return disk.list(directory) if passing else names


def base_offsets(names: list[str]) -> list[int]:
    """The base offsets of the segments among these names, in order."""
    return numbered(names, LOG_SUFFIX)


def numbered(names: list[str], suffix: str) -> list[int]:
    """The offsets of the files `<20 digits><suffix>`, in order."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def orphans(names: list[str]) -> list[str]:
    """Indexes and lists of aborted transactions whose segment is gone."""
    segments = set(base_offsets(names))
    beside = (INDEX_SUFFIX, ABORTED_SUFFIX)
    return [name for name in names if name.endswith(beside) and _base(name) not in segments]


def _base(name: str) -> int:
    stem = name.removesuffix(INDEX_SUFFIX).removesuffix(ABORTED_SUFFIX)
    return int(stem) if stem.isdecimal() else -1
