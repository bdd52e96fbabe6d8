"""Power cuts: whatever the node had not synced is gone, and nothing that it acknowledged is.

The data directory is an ext4 file system in a file. Cutting the power is ext4's own shutdown, without writing
out its journal; after it the file holds what was synced, and no more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.testing import Node, node
from tests.clients.wait import until

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

POWER_CUTS = 4
LOAD_S = 1.0
IOCTL_SHUTDOWN = 0x8004587D
WITHOUT_THE_JOURNAL = struct.pack("I", 2)


class Machine:
    """A disk in a file, mounted as the node's data directory."""

    def __init__(self, home: Path) -> None:
        self.image = home / "disk.img"
        self.data = home / "data"
        self.data.mkdir(mode=0o700)

    def install(self) -> bool:
        self.image.touch()
        os.truncate(self.image, 256 << 20)
        made = subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(self.image)], capture_output=True)
        return made.returncode == 0 and self.mount()

    def mount(self) -> bool:
        command = ["mount", "-o", "loop", str(self.image), str(self.data)]
        return subprocess.run(command, capture_output=True).returncode == 0

    def cut_power(self, running: Node) -> None:
        """The disk goes first; then the node, which may notice and must not acknowledge what it lost.
        The node stands still while the disk goes: an fsync that is under way at that moment may be answered
        with success by ext4 though nothing was written (seen with a ten-line program, on Linux 6.18)."""
        stand_still(running.pid)
        directory = os.open(self.data, os.O_RDONLY)
        fcntl.ioctl(directory, IOCTL_SHUTDOWN, WITHOUT_THE_JOURNAL)
        os.close(directory)
        os.kill(running.pid, signal.SIGCONT)
        time.sleep(0.05)
        running.kill()
        self.unmount()

    def unmount(self) -> None:
        """Who was killed a moment ago may still be letting go of its files."""
        command = ["umount", str(self.data)]
        until(lambda: subprocess.run(command, capture_output=True).returncode == 0, "the disk is free")


def stand_still(pid: int) -> None:
    """Back when no thread of the process runs or is inside of a system call any more."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 30
    while not all(state_of(thread) == "T" for thread in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < deadline, "the node does not stand still"
        time.sleep(0.001)


def state_of(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("a disk whose power can be cut needs root and mkfs.ext4")
    machine = Machine(tmp_path)
    if not machine.install():
        pytest.skip("no loop device to mount a disk image with")
    # The node wants an empty directory or its own; lost+found is neither.
    shutil.rmtree(machine.data / "lost+found")
    machine.data.chmod(0o700)
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
