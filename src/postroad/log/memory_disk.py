"""A disk in memory that keeps synced and unsynced apart, and fails on demand.

For tests and the simulator. It promises exactly what `disk` promises (D1–D6) and no more: `crash`
hands back the disk that a machine might find after a power cut, where each unsynced write and each
unsynced name was kept, lost or torn by itself, as `pick` chooses. `on_operation` is called
before each change and may raise: an OSError to make it fail, anything else to stop the world there.
After a sync that failed, later ones write only what was changed again (D5).
"""

from __future__ import annotations

import copy
import errno
import os
import posixpath
import threading
from collections.abc import Callable, Sequence
from typing import Final

from postroad.log.disk import DESCRIPTORS_SHORT, TEMPORARY, Buffer, LockHeld

Pick = Callable[[int], int]
"""pick(n) chooses one of 0 … n-1."""

_LOST, _WHOLE, _PREFIX, _ZEROS, _SUFFIX = range(_FATES := 5)
_UNBOUNDED_BYTES: Final = 1 << 60
_SECTOR: Final = 512  # of what is written in place each is kept or lost, never torn


class _Node:
    """What a name stands for: current bytes, synced bytes, and the changes between the two."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.synced = bytes(content)
        self.pending: list[tuple[int, bytes | None]] = []  # (position, bytes); None: cut there
        self.forsaken: set[int] = set()  # sectors that no sync writes any more, though one has failed

    def sync(self) -> None:
        if self.forsaken:
            synced = bytearray(self.synced)
            for position, written in self.pending:
                if written is None:
                    del synced[position:]
            changed = self._changed_sectors()
            for sector in sorted(changed):
                self._keep(sector, synced)
            self.synced = bytes(synced)
            self.forsaken -= changed
        else:
            self.synced = bytes(self.content)
        self.pending.clear()

    def fail_sync(self) -> None:
        """The error is told once; the bytes count as written from here on (D5). Cuts are in the journal."""
        self.forsaken |= self._changed_sectors()
        self.pending = [change for change in self.pending if change[1] is None]

    def _changed_sectors(self) -> set[int]:
        return {
            sector
            for position, written in self.pending
            if written
            for sector in range(position // _SECTOR, (position + len(written) - 1) // _SECTOR + 1)
        }

    def _keep(self, sector: int, found: bytearray) -> None:
        start = sector * _SECTOR
        if start < len(self.content):
            _put(found, start, bytes(self.content[start : start + _SECTOR]))

    def after_crash(self, pick: Pick) -> _Node:
        found = bytearray(self.synced)
        for sector in sorted(self.forsaken):
            if pick(2):
                self._keep(sector, found)
        for position, written in self.pending:
            if written is None:
                if pick(2):
                    del found[position:]
            else:
                _survive(found, position, written, pick)
        return _Node(bytes(found))


def _survive(found: bytearray, position: int, written: bytes, pick: Pick) -> None:
    """One unsynced write meets its fate: each sector that it overwrites, and then what it adds as a whole."""
    while written and position < len(found):
        sector = written[: min(_SECTOR - position % _SECTOR, len(found) - position)]
        if pick(2):
            _put(found, position, sector)
        position, written = position + len(sector), written[len(sector) :]
    if written:
        _survive_growth(found, position, written, pick)


def _survive_growth(found: bytearray, position: int, written: bytes, pick: Pick) -> None:
    """A file that grew without its bytes reads as zeros."""
    fate = pick(_FATES)
    if fate == _LOST:
        return
    if fate == _PREFIX:
        written = written[: pick(len(written) + 1)]
    elif fate == _ZEROS:
        written = bytes(len(written))
    elif fate == _SUFFIX:
        cut = pick(len(written) + 1)
        written = bytes(cut) + written[cut:]
    _put(found, position, written)


def _put(found: bytearray, position: int, written: bytes) -> None:
    if len(found) < position:
        found.extend(bytes(position - len(found)))
    found[position : position + len(written)] = written


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, node: _Node) -> None:
        self._disk = disk
        self._path = path
        self._node = node

    def append(self, buffers: Sequence[Buffer]) -> None:
        self.write(len(self._node.content), b"".join(buffers))

    def write(self, position: int, content: Buffer) -> None:
        self._disk.before("write", self._path)
        written = bytes(content)
        grown = max(0, position + len(written) - len(self._node.content))
        room = self._disk.room(grown)
        if room < grown:
            written = written[: len(written) - (grown - room)]
        self._node.pending.append((position, written))
        self._node.content[position : position + len(written)] = written
        if room < grown:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def read(self, position: int, length: int) -> bytes:
        return bytes(self._node.content[position : position + length])

    def sync(self) -> None:
        try:
            self._disk.before("sync", self._path)
        except OSError as error:
            if error.errno not in DESCRIPTORS_SHORT:  # those say that it was not tried
                self._node.fail_sync()
            raise
        self._node.sync()

    def truncate(self, length: int) -> None:
        self._disk.before("truncate", self._path)
        self._node.pending.append((length, None))
        del self._node.content[length:]

    def size(self) -> int:
        return len(self._node.content)

    def fileno(self) -> int:
        return -1

    def close(self) -> None:
        """Nothing to give back."""


class MemoryLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def close(self) -> None:
        self._locks.discard(self._path)


class MemoryDisk:
    """`capacity` bounds the bytes of all files together; None does not."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.on_operation: Callable[[str, str], None] | None = None
        self._names: dict[str, _Node] = {}
        self._synced_names: dict[str, _Node] = {}
        self._pending: list[dict[str, _Node | None]] = []  # each: names changed together
        self._directories: set[str] = set()
        self._locks: set[str] = set()
        self._boots = 1

    def mutex(self) -> threading.Lock:
        return threading.Lock()

    def crash(self, pick: Pick) -> MemoryDisk:
        """The disk as it is found after a power cut now. This one is left as it is."""
        names = dict(self._synced_names)
        for change in self._pending:
            if pick(2):
                _apply(names, change)
        found = MemoryDisk(self.capacity)
        found._directories = set(self._directories)
        found._names = {path: names[path].after_crash(pick) for path in sorted(names)}
        found._synced_names = dict(found._names)
        found._boots = self._boots + 1
        return found

    def copy(self) -> MemoryDisk:
        """The disk as the next process finds it after a kill: all is there, and no safer than before."""
        found = MemoryDisk(self.capacity)
        found._directories = set(self._directories)
        found._names, found._synced_names, found._pending = copy.deepcopy(
            (self._names, self._synced_names, self._pending)
        )
        found._boots = self._boots
        return found

    def content(self, path: str) -> bytes:
        return bytes(self._names[path].content)

    def damage(self, path: str, content: bytes) -> None:
        """Put other bytes in a file's place, as if they had always been there."""
        self._names[path] = self._synced_names[path] = _Node(content)

    def before(self, operation: str, path: str) -> None:
        if self.on_operation is not None:
            self.on_operation(operation, path)

    def room(self, wanted: int) -> int:
        """How many of the bytes wanted there is room for."""
        if self.capacity is None:
            return wanted
        return max(0, min(wanted, self.free_bytes()))

    # --- the port

    def open(self, path: str, create: bool = False) -> MemoryFile:
        node = self._names.get(path)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self.before("create", path)
            node = _Node()
            self._change({path: node})
        return MemoryFile(self, path, node)

    def list(self, directory: str) -> list[str]:
        prefix = posixpath.normpath(directory).rstrip("/") + "/"
        inside = [*self._names, *self._directories]
        return sorted({path[len(prefix) :].split("/")[0] for path in inside if path.startswith(prefix)})

    def make_directory(self, path: str) -> None:
        while path not in ("", "/", "."):
            self._directories.add(path)
            path = posixpath.dirname(path)

    def remove(self, path: str) -> None:
        gone = [name for name in self._names if name == path or name.startswith(path + "/")]
        if gone:
            self.before("remove", path)
            self._change(dict.fromkeys(gone))
        self._directories -= {name for name in self._directories if (name + "/").startswith(path + "/")}

    def unlink(self, path: str) -> bool:
        if path not in self._names:
            if path in self._directories:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            return False
        self.before("remove", path)
        self._change({path: None})
        return True

    def rename(self, old: str, new: str) -> None:
        self.before("rename", old)
        self._change({old: None, new: self._names[old]})

    def replace(self, path: str, content: bytes) -> None:
        temporary = path + TEMPORARY
        file = self.open(temporary, create=True)
        file.truncate(0)
        file.append([content])
        file.sync()
        self.rename(temporary, path)
        self.sync_directory(posixpath.dirname(path))

    def sync_directory(self, path: str) -> None:
        self.before("sync_directory", path)
        kept = []
        for change in self._pending:
            if any(posixpath.dirname(name) == path for name in change):
                _apply(self._synced_names, change)
            else:
                kept.append(change)
        self._pending = kept

    def lock(self, path: str) -> MemoryLock:
        self.open(path, create=True)
        if path in self._locks:
            raise LockHeld(path, str(os.getpid()))
        self._locks.add(path)
        return MemoryLock(self._locks, path)

    def allocate(self, path: str, length: int) -> None:
        file = self.open(path, create=True)
        missing = length - file.size()
        if missing > 0:
            try:
                file.append([bytes(missing)])
            except OSError:
                self.unlink(path)
                raise

    def free_bytes(self, path: str = "") -> int:
        used = sum(len(node.content) for node in self._names.values())
        return self.total_bytes() - used

    def total_bytes(self, path: str = "") -> int:
        return _UNBOUNDED_BYTES if self.capacity is None else self.capacity

    def boot_id(self) -> str:
        return f"boot {self._boots}"

    def _change(self, names: dict[str, _Node | None]) -> None:
        _apply(self._names, names)
        self._pending.append(names)


def _apply(names: dict[str, _Node], change: dict[str, _Node | None]) -> None:
    for path, node in change.items():
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node
