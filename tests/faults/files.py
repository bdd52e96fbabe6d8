"""The files of a partition on disk, and ways to harm them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from postroad.cluster.ids import id_text
from postroad.testing import Node
from postroad.wire.batch import walk

from .raw import RawConnection, metadata_of


def partition_directories(running: Node, topic: str) -> list[Path]:
    """In the order of the partitions; a directory is named by the topic's id, never by its name."""
    with RawConnection(running.bootstrap) as connection:
        (described,) = metadata_of(connection, topic, create=False).topics
    name = id_text(described.topic_id)
    indexes = sorted(partition.partition_index for partition in described.partitions)
    return [running.data_dir / "logs" / f"{name}-{index}" for index in indexes]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


def last_batch_at(segment: Path) -> int:
    """Where the last batch of a segment begins."""
    *_, (position, _) = walk(memoryview(segment.read_bytes()))
    return position


def flip_bit(file: Path, position: int, bit: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 1 << bit
    file.write_bytes(content)


def cut_at(file: Path, length: int) -> None:
    with file.open("r+b") as opened:
        opened.truncate(length)


def fill(running: Node) -> Path:
    """A file that takes all that is left of the disk of the node."""
    filler = running.data_dir / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 16, 4096, 512, 1):
            try:
                while file.write(bytes(size)) == size:
                    continue
            except OSError:
                continue
    return filler


HARM: dict[str, Callable[[Path], object]] = {
    "deleted": lambda file: file.unlink(),
    "emptied": lambda file: cut_at(file, 0),
    "cut in half": lambda file: cut_at(file, file.stat().st_size // 2),
    "a bit flipped": lambda file: flip_bit(file, file.stat().st_size // 2, bit=3),
    "overwritten": lambda file: file.write_bytes(b"\xa5" * file.stat().st_size),
    "grown": lambda file: file.write_bytes(file.read_bytes() + b"\x5a" * 13),
}
