"""Power cuts: whatever the node had not synced is gone, and nothing that it acknowledged is.

The data directory is an ext4 file system in a file. Cutting the power is ext4's own shutdown, without writing
out its journal; after it the file holds what was synced, and no more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.testing import node

from .conftest import create_topic
from .load import (
    PARTITIONS,
    TOPIC,
    Bookmarks,
    Load,
    assert_all_there_once_in_order,
    committed,
    running_threads,
)
from .machine import Machine, installed

POWER_CUTS = 4
LOAD_S = 1.0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = installed(tmp_path)
    yield machine
    machine.unmount()


@pytest.mark.slow
def test_power_cuts_take_nothing_that_was_acknowledged(machine: Machine, tmp_path: Path) -> None:
    with node(directory=tmp_path) as running:
        create_topic(running, TOPIC, PARTITIONS, **{"segment.bytes": 100_000})
        producers, bookmarks = [Load(running, "producer")], Bookmarks(running)
        with running_threads(*producers, bookmarks):
            for _ in range(POWER_CUTS):
                time.sleep(LOAD_S)
                machine.cut_power(running)
                acknowledged_before = bookmarks.acknowledged
                assert machine.mount()
                running.start()
                assert committed(running) >= acknowledged_before
        assert_all_there_once_in_order(running, producers, sent_min=50 * POWER_CUTS)
        assert bookmarks.acknowledged <= committed(running) <= bookmarks.tried
