"""The operating system's disk, with the power to refuse: which operation, on which files, and how."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from postroad.broker.node import SLOW_THREADS
from postroad.log.disk import Buffer, OsDisk, OsFile
from tests.broker.harness import Running

PATIENCE_S = 60  # far above what a test keeps anybody waiting


class FailingDisk(OsDisk):
    def __init__(self) -> None:
        super().__init__()
        self._errors: dict[tuple[str, str], int] = {}
        self.refusals = 0
        self.gate = threading.Event()  # a sync waits while it is closed
        self.gate.set()
        self.door = threading.Event()  # so does the opening of a file
        self.door.set()

    def fail(self, operation: str, within: str, code: int) -> None:
        """From now on the operation raises this error on every file whose path contains `within`."""
        self._errors[operation, within] = code

    def heal(self) -> None:
        self._errors.clear()

    def check(self, operation: str, path: str) -> None:
        for (failing, within), code in list(self._errors.items()):
            if failing == operation and within in path:
                self.refusals += 1
                raise OSError(code, os.strerror(code), path)

    def open(self, path: str, create: bool = False) -> OsFile:
        self.door.wait(PATIENCE_S)
        self.check("open", path)
        opened = super().open(path, create)
        size, descriptor = opened.size(), os.dup(opened.fileno())
        opened.close()
        return FailingFile(self, path, descriptor, size)

    def rename(self, old: str, new: str) -> None:
        self.check("rename", old)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.check("remove", path)
        super().remove(path)


class FailingFile(OsFile):
    def __init__(self, disk: FailingDisk, path: str, descriptor: int, size: int) -> None:
        super().__init__(descriptor, size)
        self._disk = disk
        self._path = path

    def append(self, buffers: Sequence[Buffer]) -> None:
        try:
            self._disk.check("append", self._path)
        except OSError as error:
            if error.errno == errno.ENOSPC:  # a full disk takes what it can
                super().append([b"".join(buffers)[:7]])
            raise
        super().append(buffers)

    def read(self, position: int, length: int) -> bytes:
        self._disk.check("read", self._path)
        return super().read(position, length)

    def sync(self) -> None:
        self._disk.gate.wait(PATIENCE_S)
        self._disk.check("sync", self._path)
        super().sync()


def use_failing_disk(running: Running) -> FailingDisk:
    """For the logs of all topics that are created from here on."""
    disk = FailingDisk()
    running.node.replicas._disk = disk
    return disk


def log_of(running: Running, topic: str, index: int = 0) -> str:
    """What the paths of a partition's files contain."""
    return f"{running.node.image.topics[topic].id_text}-{index}/"


def put_back(running: Running, aside: Path, home: Path) -> None:
    """While none of the threads opens a log, which they try again and again: in between they would make a
    new one."""
    together = threading.Barrier(SLOW_THREADS)

    def move() -> None:
        if together.wait(PATIENCE_S) == 0:
            home.unlink()
            aside.rename(home)
        together.wait(PATIENCE_S)

    async def with_all_threads() -> None:
        await asyncio.gather(*(running.node.slow_workers.call(move) for _ in range(SLOW_THREADS)))

    running.run(with_all_threads())
