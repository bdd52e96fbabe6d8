"""What the directories of partitions on a drive tell to checks and to faults."""

from __future__ import annotations

import posixpath
from typing import Final

from postroad.log.compaction_files import base_offsets
from postroad.log.segment import LOG_SUFFIX
from simulator.disk import Drive
from simulator.names import DIRECTORY

NEWEST: Final = 2  # segments that a sync may not have covered yet


def partition_directories(drive: Drive) -> list[str]:
    """The paths of all there are, in order."""
    logs = f"/{drive.host}/logs"
    entries = sorted(drive.names.entries.items())
    return [path for path, entry in entries if entry == DIRECTORY and posixpath.dirname(path) == logs]


def segments(drive: Drive, directory: str) -> dict[int, int]:
    """The base offset of each segment in a partition's directory, in order, with its size."""
    names = {
        posixpath.basename(path): len(file.content)
        for path, file in drive.files()
        if posixpath.dirname(path) == directory
    }
    return {base: names[f"{base:020d}{LOG_SUFFIX}"] for base in base_offsets(list(names))}


def segment_path(directory: str, base: int) -> str:
    return f"{directory}/{base:020d}{LOG_SUFFIX}"


def is_cold(path: str, drive: Drive) -> bool:
    """Everything but the newest segments, whose end is what a crash leaves in doubt anyway."""
    if not path.endswith(LOG_SUFFIX):
        return True
    newest = list(segments(drive, posixpath.dirname(path)))[-NEWEST:]
    return posixpath.basename(path) not in [f"{base:020d}{LOG_SUFFIX}" for base in newest]
