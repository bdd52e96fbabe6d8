"""A start that is refused, because these are another's logs: it changes nothing and holds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from postroad.broker.data_directory import DataDirectory
from postroad.errors import ConfigurationError
from tests.broker.harness import Running


def names(path: Path) -> set[str]:
    return {str(found.relative_to(path)) for found in path.rglob("*")}


def test_an_empty_store_over_logs_refuses_and_deletes_nothing(start: Callable[..., Running]) -> None:
    running = start()
    running.create("kept", 2)
    running.publish("kept", b"x")
    running.stop()
    data = running.node.directory.path
    for store in data.glob("coordination.sqlite*"):
        store.rename(data.parent / store.name)
    before = names(data)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="store is empty"):
            running.start()
        left = {name for name in names(data) if not name.startswith("coordination.sqlite")}
        assert left == before, "also the clean-shutdown marker stays"
    for store in data.glob("coordination.sqlite*"):
        store.unlink()
    for store in data.parent.glob("coordination.sqlite*"):
        store.rename(data / store.name)
    running.start()
    assert running.fetch("kept", 0).high_watermark == 1


def test_another_clusters_store_is_refused(start: Callable[..., Running]) -> None:
    mine, other = start(), start()
    mine.create("kept")
    mine.stop()
    other.stop()
    data, foreign = mine.node.directory.path, other.node.directory.path
    mine_store = (data / "coordination.sqlite").read_bytes()
    (data / "coordination.sqlite").write_bytes((foreign / "coordination.sqlite").read_bytes())
    before = names(data)
    with pytest.raises(ConfigurationError, match="belongs to cluster"):
        mine.start()
    assert names(data) - {"coordination.sqlite-wal", "coordination.sqlite-shm"} == before
    (data / "coordination.sqlite").write_bytes(mine_store)
    mine.start()
    mine.publish("kept", b"x")


def test_logs_without_their_identity_are_refused(start: Callable[..., Running]) -> None:
    running = start()
    running.create("kept")
    running.stop()
    identity = running.node.directory.path / "node.json"
    content = identity.read_bytes()
    identity.unlink()
    with pytest.raises(ConfigurationError, match=r"node\.json.*missing"):
        running.start()
    identity.write_bytes(content)
    running.start()
    running.publish("kept", b"x")


def test_a_start_that_fails_frees_the_directory_and_the_port(start: Callable[..., Running]) -> None:
    running = start()
    running.stop()
    identity = running.node.directory.path / "node.json"
    content = identity.read_bytes()
    identity.write_bytes(b"{")
    with pytest.raises(ConfigurationError, match="can't be read"):
        running.start()
    free = DataDirectory(running.node.directory.path, running.node.runtime.disk)
    free.open()
    free.close(clean=False)
    identity.write_bytes(content)
    running.start()
