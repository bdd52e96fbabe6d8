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

from postroad.broker.data_directory import LEDGER, DataDirectory
from postroad.cli.session import Failed
from postroad.cluster.image import Image
from postroad.cluster.sqlite import SqliteStore
from postroad.errors import PostroadError
from postroad.log.disk import OsDisk


class StoredPartition(NamedTuple):
    """One log: a partition's messages, or its ledger."""

    topic: str
    partition: int
    is_ledger: bool
    path: str
    bytes: int


@contextmanager
def stored_partitions(data: Path) -> Iterator[list[StoredPartition]]:
    """All logs in it, by topic and partition, ledgers behind their messages.

    Failed if a node runs there, or never ran there.
    """
    directory = DataDirectory(data, OsDisk())
    if not _is_directory(directory.logs):
        raise Failed(f"{data} is not a node's data directory: name one with --data")
    try:
        directory.open()
    except PostroadError as error:
        raise Failed(str(error)) from None
    try:
        names = _names(directory)
        yield sorted(
            stored
            for topic_id, number in directory.partitions()
            for stored in _stored(directory, names.get(topic_id, topic_id), topic_id, number)
        )
    finally:
        directory.close(clean=False)


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long
        return False


def choose(partitions: list[StoredPartition], wanted: str) -> list[StoredPartition]:
    """The logs of `TOPIC` or `TOPIC/PARTITION`. Failed if there are none."""
    topic, _, number = wanted.partition("/")
    found = [
        stored for stored in partitions if stored.topic == topic and number in ("", str(stored.partition))
    ]
    if not found:
        known = ", ".join(sorted({stored.topic for stored in partitions})) or "none"
        raise Failed(f"nothing is stored of {wanted}; there are: {known}")
    return found


def _stored(directory: DataDirectory, name: str, topic_id: str, number: int) -> Iterator[StoredPartition]:
    path = directory.logs / f"{topic_id}-{number}"
    yield StoredPartition(name, number, False, str(path), _size(path))
    if (path / LEDGER).is_dir():
        yield StoredPartition(name, number, True, str(path / LEDGER), _size(path / LEDGER))


def _size(path: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(path) if entry.name.endswith(".log"))


def _names(directory: DataDirectory) -> dict[str, str]:
    """Topic id → name. The store of a node that `serve --nodes` has started lies in the directory above."""
    for file in (directory.store, directory.path.absolute().parent / directory.store.name):
        if file.exists():
            return asyncio.run(_names_in(file))
    return {}


async def _names_in(store_file: Path) -> dict[str, str]:
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
