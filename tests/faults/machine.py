"""A machine whose power can be cut: its node's data directory is an ext4 file system in a file.

Cutting the power is ext4's own shutdown, without writing out its journal; after it the file holds what was
synced, and no more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest

from postroad.broker.data_directory import BOOT_FILE
from postroad.testing import Node
from tests.clients.wait import until

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
        """The disk goes first; then the node, which may notice and must not acknowledge what it lost."""
        self.break_disk(running)
        time.sleep(0.05)
        running.kill()
        self.unmount()

    def break_disk(self, running: Node) -> None:
        """Whatever is written or synced from here on fails with EIO; what was not synced is gone.

        The node stands still while the disk goes: an fsync that is under way at that moment may be answered
        with success by ext4 though nothing was written (seen with a ten-line program, on Linux 6.18).
        """
        stand_still(running.pid)
        directory = os.open(self.data, os.O_RDONLY)
        fcntl.ioctl(directory, IOCTL_SHUTDOWN, WITHOUT_THE_JOURNAL)
        os.close(directory)
        os.kill(running.pid, signal.SIGCONT)

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


def installed(home: Path) -> Machine:
    """A machine whose disk is mounted, for a node that has this home; skips where that can't be."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("a disk whose power can be cut needs root and mkfs.ext4")
    machine = Machine(home)
    if not machine.install():
        pytest.skip("no loop device to mount a disk image with")
    # The node wants an empty directory or its own; lost+found is neither.
    shutil.rmtree(machine.data / "lost+found")
    machine.data.chmod(0o700)
    return machine


def forge_boot(data: Path) -> None:
    """The node finds that the machine has been started anew since it ran last."""
    (data / BOOT_FILE).write_text("another start of the machine")
