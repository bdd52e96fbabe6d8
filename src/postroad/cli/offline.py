"""A data directory whose node is stopped: its partitions, by the names of their topics.

The directory is locked meanwhile, so that no node starts in the middle. Names come from the
coordination store; where that can't be read, topics go by their ids.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from postroad.broker.data_directory import DataDirectory
from postroad.cli.session import Failed
from postroad.cluster.image import Image
from postroad.cluster.sqlite import SqliteStore
from postroad.errors import PostroadError
from postroad.log.disk import OsDisk


class StoredPartition(NamedTuple):
    topic: str
    partition: int
    path: str
    bytes: int


@contextmanager
def stored_partitions(data: Path) -> Iterator[list[StoredPartition]]:
    """All partitions in it, by topic and number. Failed if a node runs there, or never ran there."""
    directory = DataDirectory(data, OsDisk())
    if not _is_directory(directory.logs):
        raise Failed(f"{data} is no data directory of a node: name one with --data")
    try:
        directory.open()
    except PostroadError as error:
        raise Failed(str(error)) from None
    try:
        names = asyncio.run(_names(directory.store)) if directory.store.exists() else {}
        yield sorted(
            _stored(directory, names.get(topic_id, topic_id), topic_id, number)
            for topic_id, number in directory.partitions()
        )
    finally:
        directory.close(clean=False)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long
        return False


def choose(partitions: list[StoredPartition], wanted: str) -> list[StoredPartition]:
    """Those of `TOPIC` or `TOPIC/PARTITION`. Failed if there are none."""
    topic, _, number = wanted.partition("/")
    found = [
        stored for stored in partitions if stored.topic == topic and number in ("", str(stored.partition))
    ]
    if not found:
        known = ", ".join(sorted({stored.topic for stored in partitions})) or "none"
        raise Failed(f"nothing is stored of {wanted}; there are: {known}")
    return found


def _stored(directory: DataDirectory, name: str, topic_id: str, number: int) -> StoredPartition:
    path = str(directory.logs / f"{topic_id}-{number}")
    size = sum(entry.stat().st_size for entry in os.scandir(path) if entry.name.endswith(".log"))
    return StoredPartition(name, number, path, size)


async def _names(store_file: Path) -> dict[str, str]:
    """Topic id → name; none where the store can't be read."""
    try:
        store = await SqliteStore.open(store_file)
    except PostroadError:
        return {}
    try:
        image = Image()
        image.catch_up(await store.list(""))
        return {topic.id_text: topic.name for topic in image.topics.values()}
    finally:
        await store.close()
