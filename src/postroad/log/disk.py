"""The disk: the port that a node reads and writes through, and its adapter for the operating system.

The port is small so that the in-memory adapter (`memory_disk`) can keep the same promises and break
them on demand. What a node may rely on, and nothing more:

D1 bytes are safe after `File.sync`, names (create, rename, remove) after `sync_directory`;
   until then a crash may keep, lose or tear each of them, in any order.
D2 `rename` and `replace` are atomic: a crash leaves the old or the new one whole.
D3 a failed `append` may have written some of the bytes; `size` then says how many there are.
D4 a lock is held by one process at a time, and is free when that process has ended, however it ended.
D5 after a failed `sync` the bytes can still be read, and may never reach the disk: the kernel takes them
   for written, in the next process too. Only what is written once more is synced by the next `sync`.
D6 only a crash of the machine loses what was written and not synced; a process may end as it likes.

Errors are OSErrors. A symbolic link is refused wherever a file or directory is expected, so that
nothing outside the data directory is ever read or written through it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

Buffer = bytes | bytearray | memoryview

IOV_MAX: Final = 1024  # the kernel's limit of buffers in one call
TEMPORARY: Final = ".tmp"

# Too few descriptors, here or in the whole system: nothing was touched, and the next try may succeed.
DESCRIPTORS_SHORT: Final = frozenset((errno.EMFILE, errno.ENFILE))

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_PARENT_MODE: Final = 0o777  # as the user's mask has it: what leads to our directories is not ours
_PID_BYTES: Final = 20
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class LockHeld(OSError):
    """Another process holds the lock; `holder` is its process id, as far as that is known."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(errno.EWOULDBLOCK, f"held by process {holder}", path)
        self.holder = holder


class Lock(Protocol):
    def close(self) -> None:
        """Give the lock back. One that is never closed is held until its process ends."""


class File(Protocol):
    """One file. `append` and `truncate` belong to one owner; `read` and `sync` to any thread."""

    def append(self, buffers: Sequence[Buffer]) -> None:
        """All the bytes at the end of the file, or an OSError (D3)."""

    def write(self, position: int, content: Buffer) -> None:
        """Overwrite in place, or an OSError. The file grows if need be."""

    def read(self, position: int, length: int) -> bytes:
        """The bytes there; fewer only at the end of the file."""

    def sync(self) -> None:
        """The bytes are on the disk when this returns (D1). An error is final: see PartitionLog."""

    def truncate(self, length: int) -> None: ...

    def size(self) -> int:
        """As tracked by this object; costs nothing."""

    def fileno(self) -> int:
        """For sendfile; -1 where there is no descriptor."""

    def close(self) -> None: ...


class Disk(Protocol):
    """Names. A path that is not absolute lies under the disk's own root."""

    def open(self, path: str, create: bool = False) -> File:
        """Raises FileNotFoundError unless it exists or may be created."""

    def list(self, directory: str) -> list[str]:
        """The sorted names in it; none if there is no such directory."""

    def make_directory(self, path: str) -> None:
        """Make the directory and all that lead to it, each synced. It may exist."""

    def remove(self, path: str) -> None:
        """A file, or a directory with all in it. It may be gone already."""

    def unlink(self, path: str) -> bool:
        """Remove a file and nothing else; whether there was one."""

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new` (D2)."""

    def replace(self, path: str, content: bytes) -> None:
        """The file holds exactly `content`, durably; a crash leaves the old or the new one (D2)."""

    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> Lock:
        """The lock in this file, which is made if need be (D4). Raises LockHeld if another process has it."""

    def allocate(self, path: str, length: int) -> None:
        """A file that takes this much of the disk, whatever is in it; or an OSError, and there is none."""

    def mutex(self) -> AbstractContextManager[object]:
        """A lock for what the loop and jobs in threads both change."""

    def free_bytes(self, path: str = "") -> int:
        """How much can still be written to the file system that the path lies in."""

    def total_bytes(self, path: str = "") -> int:
        """How large that file system is."""

    def boot_id(self) -> str:
        """Which start of the machine this is: within one, what was written is there, synced or not (D6).

        Empty where that can't be known.
        """


class OsFile:
    """A descriptor and the size of its file.

    The descriptor is closed with the last reference: an answer that is still being sent from a
    segment keeps it alive after the segment was removed or its file was dropped from a cache.
    """

    __slots__ = ("_descriptor", "_size")

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._size = size

    def append(self, buffers: Sequence[Buffer]) -> None:
        if len(buffers) > IOV_MAX:
            for start in range(0, len(buffers), IOV_MAX):
                self.append(buffers[start : start + IOV_MAX])
            return
        written = os.pwritev(self._descriptor, buffers, self._size)
        self._size += written
        missing = sum(map(len, buffers)) - written
        if missing:  # rare: a full disk, a signal, more than 2 GiB at once
            rest = memoryview(b"".join(buffers))[written:]
            while rest:
                written = os.pwrite(self._descriptor, rest, self._size)
                self._size += written
                rest = rest[written:]

    def write(self, position: int, content: Buffer) -> None:
        written = os.pwrite(self._descriptor, content, position)
        if written != len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size = max(self._size, position + written)

    def read(self, position: int, length: int) -> bytes:
        content = os.pread(self._descriptor, length, position)
        if len(content) < length:
            content = self._read_on(content, position, length)
        return content

    def _read_on(self, content: bytes, position: int, length: int) -> bytes:
        parts, missing = [content], length - len(content)
        while content and missing:
            content = os.pread(self._descriptor, missing, position + length - missing)
            parts.append(content)
            missing -= len(content)
        return b"".join(parts)

    def sync(self) -> None:
        os.fdatasync(self._descriptor)

    def truncate(self, length: int) -> None:
        os.ftruncate(self._descriptor, length)
        self._size = length

    def size(self) -> int:
        return self._size

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class OsLock:
    """A descriptor whose file is locked. Without a finalizer: a lock is not given up by being forgotten."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class OsDisk:
    """The operating system's file system, under `root` where a path is relative."""

    def __init__(self, root: str = ".") -> None:
        self._root = root

    def mutex(self) -> threading.Lock:
        return threading.Lock()

    def open(self, path: str, create: bool = False) -> OsFile:
        flags = _OPEN_FLAGS | (os.O_CREAT if create else 0)
        descriptor = os.open(self._path(path), flags, _FILE_MODE)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return OsFile(descriptor, status.st_size)

    def list(self, directory: str) -> list[str]:
        names = []
        with contextlib.suppress(FileNotFoundError), _entries(self._path(directory)) as entries:
            for entry in entries:
                if entry.is_symlink():
                    link = os.path.join(directory, entry.name)
                    raise OSError(errno.ELOOP, "a symbolic link in the data directory", link)
                names.append(entry.name)
        return sorted(names)

    def make_directory(self, path: str) -> None:
        full = wanted = self._path(path)
        missing = []
        while not os.path.isdir(full):
            missing.append(full)
            full = os.path.dirname(full) or "."
        for directory in reversed(missing):
            try:
                os.mkdir(directory, _DIRECTORY_MODE if directory == wanted else _PARENT_MODE)
            except FileExistsError:  # another process was faster, or it is no directory
                if not os.path.isdir(directory):
                    raise
            try:
                _sync_directory(os.path.dirname(directory) or ".")
            except OSError:
                os.rmdir(directory)  # or the next try would find it, and its name might never be synced
                raise

    def remove(self, path: str) -> None:
        full = self._path(path)
        with contextlib.suppress(FileNotFoundError):
            if os.path.isdir(full) and not os.path.islink(full):
                import shutil  # most of a megabyte, and rarely needed

                shutil.rmtree(full)
            else:
                os.unlink(full)

    def unlink(self, path: str) -> bool:
        try:
            os.unlink(self._path(path))
        except FileNotFoundError:
            return False
        return True

    def rename(self, old: str, new: str) -> None:
        os.rename(self._path(old), self._path(new))

    def replace(self, path: str, content: bytes) -> None:
        full = self._path(path)
        temporary = full + TEMPORARY
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(temporary, flags, _FILE_MODE)
        try:
            file = OsFile(descriptor, 0)
            file.append([content])
            file.sync()
            os.rename(temporary, full)
        except OSError:
            os.unlink(temporary)
            raise
        finally:
            file.close()
        _sync_directory(os.path.dirname(full) or ".")

    def sync_directory(self, path: str) -> None:
        _sync_directory(self._path(path))

    def lock(self, path: str) -> OsLock:
        descriptor = os.open(self._path(path), _OPEN_FLAGS | os.O_CREAT, _FILE_MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(descriptor, _PID_BYTES, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise LockHeld(path, holder) from None
        except OSError:
            os.close(descriptor)
            raise
        return OsLock(descriptor)

    def allocate(self, path: str, length: int) -> None:
        file = self.open(path, create=True)
        try:
            os.posix_fallocate(file.fileno(), 0, length)
        except OSError:
            self.unlink(path)
            raise
        finally:
            file.close()

    def free_bytes(self, path: str = "") -> int:
        status = os.statvfs(self._path(path))
        return status.f_bavail * status.f_frsize

    def total_bytes(self, path: str = "") -> int:
        status = os.statvfs(self._path(path))
        return status.f_blocks * status.f_frsize

    def boot_id(self) -> str:
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                return file.read().strip()
        except (OSError, UnicodeDecodeError):  # a system without it
            return ""

    def _path(self, path: str) -> str:
        return os.path.join(self._root, path)


def read_file(disk: Disk, path: str, bytes_max: int | None = None) -> bytes:
    """What the file holds, at most so much of it. Raises FileNotFoundError if there is none."""
    file = disk.open(path)
    try:
        return file.read(0, file.size() if bytes_max is None else min(bytes_max, file.size()))
    finally:
        file.close()


@contextlib.contextmanager
def _entries(directory: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Through a descriptor, because scandir alone would follow a link to a directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
