"""A drive with its page cache, which outlives processes, and the disk that a process sees of it.

`Drive` is the hardware of one host. `mount` hands out the port (`postroad.log.disk`) for one process; when
that process has ended, its handles raise SystemExit. A kill leaves the cache as it is: everything written is
there for the next process, and what was not synced still is not. `cut_power` leaves what is on the disk.

Faults are fields of the drive and may be changed at any time:

    slowness           every operation takes so many times as long
    stall_rate         the share of syncs that take `stall_s` (from, to) seconds more
    error_rates        by operation: the share that fails with EIO. A failed write may have left some bytes;
                       a failed sync drops the pages that it should have written (see `paged_file`)
    short_write_rate   the share of writes that come in two parts, so that a kill may leave the first alone
    write_back_rate    the share of writes after which some dirty pages go to the disk by themselves
    capacity           in bytes, for all files together; None: no bound. What does not fit fails with ENOSPC

Operations: open, create, read, write, sync, truncate, list, make_directory, remove, rename, sync_directory,
lock, allocate. Each is noted in the trace, and takes time before anything of it happens.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable, Sequence
from typing import Final

from postroad.log.disk import TEMPORARY, Buffer, LockHeld
from simulator.mutex import Mutex
from simulator.names import Change, Names
from simulator.paged_file import PagedFile
from simulator.process import Process
from simulator.trace import checksum
from simulator.world import World

_UNBOUNDED_BYTES: Final = 1 << 60
_LOOKS: Final = frozenset(("open", "read", "list"))  # they change nothing, so no crash is armed for them
_COSTS: Final = {  # seconds, from and to
    "open": (2e-6, 1e-5),
    "read": (1e-6, 1e-5),
    "write": (2e-6, 2e-5),
    "sync": (2e-4, 4e-3),
    "sync_directory": (1e-4, 1e-3),
    "make_directory": (1e-4, 1e-3),
}
_OTHER_COST: Final = (1e-5, 1e-4)
_FLIP_TRIES: Final = 20  # at finding a byte that is on the disk


class Drive:
    def __init__(self, world: World, host: str) -> None:
        self.world = world
        self.host = host
        self.capacity: int | None = None
        self.slowness = 1.0
        self.stall_rate = 0.0
        self.stall_s = (0.1, 2.0)
        self.error_rates: dict[str, float] = {}
        self.short_write_rate = 0.0
        self.write_back_rate = 0.0
        self.boots = 1
        self.names = Names()
        self.locks: dict[str, MountedLock] = {}
        self.costs = world.random(f"disk {host} costs")
        self.chance = world.random(f"disk {host} faults")
        self._armed: tuple[int, Callable[[], None]] | None = None
        self._users: list[Process] = []

    def mount(self, process: Process) -> MountedDisk:
        """The disk for one process, as long as that lives."""
        self._users.append(process)
        return MountedDisk(self, process)

    # --- faults

    def cut_power(self) -> None:
        """The cache is gone. Whoever had the disk mounted must have ended."""
        assert not any(process.alive for process in self._users), "end the processes of this host first"
        self._users.clear()
        self.names = self.names.after_power_cut(self.world.random(f"disk {self.host} power cuts"))
        self.locks.clear()
        self.boots += 1
        self._armed = None

    def crash_after(self, operations: int, crash: Callable[[], None]) -> None:
        """Call `crash` in place of the change that comes after so many others; it ends the process."""
        self._armed = (operations, crash)

    def disarm(self) -> None:
        """No crash is wanted any more."""
        self._armed = None

    def heal(self) -> None:
        """No more errors, stalls or crashes; all the room there is. What was damaged stays so."""
        self.capacity = None
        self.slowness = 1.0
        self.stall_rate = self.short_write_rate = self.write_back_rate = 0.0
        self.error_rates.clear()
        self.disarm()

    def drop_caches(self, wanted: Callable[[str], bool] = lambda path: True) -> None:
        """Clean pages are read from the disk again, also those that a failed sync did not write."""
        for path, file in self.files():
            if wanted(path):
                file.drop_clean_pages()

    def flip_bit(self, wanted: Callable[[str], bool] = lambda path: True) -> tuple[str, int] | None:
        """Flip one bit of what was synced, in a file whose path is wanted. Where; None: nowhere."""
        found = [(path, file) for path, file in self.files() if wanted(path) and self.names.is_synced(path)]
        found = [(path, file) for path, file in found if file.content]
        chance = self.world.random(f"disk {self.host} flips")
        for _ in range(_FLIP_TRIES if found else 0):
            path, file = chance.choices(found, [len(file.content) for _, file in found])[0]
            position = chance.randrange(len(file.content))
            if file.is_cold(position):
                file.flip_bit(position, chance.randrange(8))
                self.world.note(self.host, "bit flipped", f"{path} {position}")
                return path, position
        return None

    # --- for tests and checkers

    def files(self) -> list[tuple[str, PagedFile]]:
        """All files by name, in order."""
        entries = sorted(self.names.entries.items())
        return [(path, entry) for path, entry in entries if isinstance(entry, PagedFile)]

    def content(self, path: str) -> bytes:
        """What a process would read now."""
        file = self.names.file(posixpath.normpath(path))
        if file is None:
            raise missing(path)
        return bytes(file.content)

    # --- for its mounted disks

    def free_bytes(self) -> int:
        used = sum(len(file.content) for _, file in self.files())
        return max(0, self.total_bytes() - used)

    def total_bytes(self) -> int:
        return _UNBOUNDED_BYTES if self.capacity is None else self.capacity

    def room(self, wanted: int) -> int:
        """How many of the bytes wanted there is room for."""
        return wanted if self.capacity is None else min(wanted, self.free_bytes())

    def begin(self, process: Process, operation: str, detail: str) -> None:
        """Note the operation, crash if that is due, and let its time pass."""
        process.check()
        self.world.note(process.name, operation, detail)
        if self._armed is not None and operation not in _LOOKS:
            left, crash = self._armed
            self._armed = (left - 1, crash)
            if left <= 0:
                self._armed = None
                self.world.sometimes(f"crash before {operation}")
                crash()
                process.check()
        process.spend(self._cost(operation))

    def fails(self, operation: str) -> bool:
        """Whether the operation is to fail now."""
        rate = self.error_rates.get(operation, 0.0)
        if not rate or self.chance.random() >= rate:
            return False
        self.world.sometimes(f"disk error in {operation}")
        return True

    def happens(self, rate: float) -> bool:
        return rate > 0.0 and self.chance.random() < rate

    def _cost(self, operation: str) -> float:
        cost = self.costs.uniform(*_COSTS.get(operation, _OTHER_COST)) * self.slowness
        if operation in ("sync", "sync_directory") and self.happens(self.stall_rate):
            self.world.sometimes("stalled sync")
            cost += self.chance.uniform(*self.stall_s)
        return cost


class MountedFile:
    """An open file of one process. It tracks the size by itself, as `OsFile` does."""

    def __init__(self, drive: Drive, process: Process, path: str, file: PagedFile) -> None:
        self._drive = drive
        self._process = process
        self._path = path
        self._file = file
        self._size = len(file.content)

    def append(self, buffers: Sequence[Buffer]) -> None:
        self.write(self._size, b"".join(buffers))

    def write(self, position: int, content: Buffer) -> None:
        data = bytes(content)
        drive = self._drive
        drive.begin(self._process, "write", f"{self._path} {position} {checksum(data)}")
        if drive.fails("write"):
            self.put(position, data[: drive.chance.randrange(len(data) + 1)])
            raise broken(self._path)
        if data and drive.happens(drive.short_write_rate):
            half = drive.chance.randrange(len(data))
            self.put(position, data[:half])
            drive.begin(self._process, "write", f"{self._path} {position + half} goes on")
            position, data = position + half, data[half:]
        self.put(position, data)
        if drive.happens(drive.write_back_rate):
            self._file.write_back(drive.chance)

    def read(self, position: int, length: int) -> bytes:
        self._drive.begin(self._process, "read", f"{self._path} {position}+{length}")
        if self._drive.fails("read"):
            raise broken(self._path)
        return bytes(self._file.content[position : position + length])

    def sync(self) -> None:
        self._process.check()
        flush = self._file.begin_sync()
        self._drive.begin(self._process, "sync", self._path)
        if self._drive.fails("sync"):
            self._file.fail_sync(flush, self._drive.chance)
            raise broken(self._path)
        self._file.finish_sync(flush)

    def truncate(self, length: int) -> None:
        self._drive.begin(self._process, "truncate", f"{self._path} {length}")
        if self._drive.fails("truncate"):
            raise broken(self._path)
        self._file.truncate(length)
        self._size = length

    def size(self) -> int:
        return self._size

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Nothing to give back."""

    def put(self, position: int, data: bytes) -> None:
        """Into the cache, as far as there is room."""
        grown = max(0, position + len(data) - len(self._file.content))
        missing_room = grown - self._drive.room(grown)
        data = data[: len(data) - missing_room]
        self._file.write(position, data)
        self._size = max(self._size, position + len(data))
        if missing_room:
            self._drive.world.sometimes("disk full")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)


class MountedLock:
    def __init__(self, drive: Drive, process: Process, path: str) -> None:
        self.process = process
        self._drive = drive
        self._path = path

    def close(self) -> None:
        self.process.check()
        if self._drive.locks.get(self._path) is self:
            del self._drive.locks[self._path]


class MountedDisk:
    """The drive as one process sees it: the port of `postroad.log.disk`."""

    def __init__(self, drive: Drive, process: Process) -> None:
        self._drive = drive
        self._process = process

    def open(self, path: str, create: bool = False) -> MountedFile:
        path = posixpath.normpath(path)
        self._begin("create" if create and path not in self._names.entries else "open", path)
        file = self._names.file(path)
        if file is None:
            file = self._create(path, create)
        return MountedFile(self._drive, self._process, path, file)

    def mutex(self) -> Mutex:
        return Mutex(self._process)

    def list(self, directory: str) -> list[str]:
        directory = posixpath.normpath(directory)
        self._begin("list", directory)
        if directory in self._names.entries and not self._names.is_directory(directory):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        return self._names.inside(directory)

    def make_directory(self, path: str) -> None:
        path = posixpath.normpath(path)
        wanted = []
        while not self._names.is_directory(path):
            wanted.append(path)
            path = posixpath.dirname(path)
        for directory in reversed(wanted):
            self._begin("make_directory", directory)
            if directory in self._names.entries and not self._names.is_directory(directory):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), directory)
            self._names.make_directory(directory)

    def remove(self, path: str) -> None:
        path = posixpath.normpath(path)
        for name in self._names.below(path):
            self._begin("remove", name)
            self._names.change({name: None})

    def unlink(self, path: str) -> bool:
        path = posixpath.normpath(path)
        if self._names.file(path) is None:
            self._process.check()
            return False
        self._begin("remove", path)
        self._names.change({path: None})
        return True

    def rename(self, old: str, new: str) -> None:
        old, new = posixpath.normpath(old), posixpath.normpath(new)
        self._begin("rename", f"{old} {new}")
        file = self._names.file(old)
        if file is None:
            raise missing(old)
        change: Change = {old: None, new: file}
        self._names.change(change)

    def replace(self, path: str, content: bytes) -> None:
        temporary = path + TEMPORARY
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.append([content])
            file.sync()
            self.rename(temporary, path)
        except OSError:
            self._names.change({posixpath.normpath(temporary): None})
            raise
        self.sync_directory(posixpath.dirname(path))

    def sync_directory(self, path: str) -> None:
        path = posixpath.normpath(path)
        if not self._names.is_directory(path):
            raise missing(path)
        changes = self._names.begin_sync(path)
        self._begin("sync_directory", path)
        self._names.finish_sync(changes)

    def lock(self, path: str) -> MountedLock:
        path = posixpath.normpath(path)
        self.open(path, create=True)
        self._begin("lock", path)
        held = self._drive.locks.get(path)
        if held is not None and held.process.alive:
            raise LockHeld(path, held.process.name)
        lock = self._drive.locks[path] = MountedLock(self._drive, self._process, path)
        return lock

    def allocate(self, path: str, length: int) -> None:
        file = self.open(path, create=True)
        self._begin("allocate", path)
        try:
            file.put(file.size(), bytes(max(0, length - file.size())))
        except OSError:
            self._names.change({posixpath.normpath(path): None})
            raise

    def free_bytes(self, path: str = "") -> int:
        self._process.check()
        return self._drive.free_bytes()

    def total_bytes(self, path: str = "") -> int:
        self._process.check()
        return self._drive.total_bytes()

    def boot_id(self) -> str:
        self._process.check()
        return f"{self._drive.host} {self._drive.boots}"

    def _create(self, path: str, may_create: bool) -> PagedFile:
        if not may_create or not self._names.is_directory(posixpath.dirname(path)):
            raise missing(path)
        file = PagedFile()
        self._names.change({path: file})
        return file

    @property
    def _names(self) -> Names:
        return self._drive.names

    def _begin(self, operation: str, path: str) -> None:
        self._drive.begin(self._process, operation, path)
        if self._drive.fails(operation):
            raise broken(path)


def missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def broken(path: str) -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO), path)
