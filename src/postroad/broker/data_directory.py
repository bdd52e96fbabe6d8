"""The data directory of a node: who may use it, and what it was left with.

    lock             held (flock) by the process that uses the directory
    node.json        cluster id and node id that the logs belong to (`cluster.identity`)
    clean-shutdown   there only between a clean stop and the next start
    coordination.sqlite  the embedded coordination store
    reserve          room for when the disk is full (`reserve`)
    logs/<topic id>-<partition>/   one directory for each partition
    schedules/       delayed messages of subscriptions, as hints (`subscriptions.schedule_file`)

Rules: the directory is 0700; a second process is kept out; a name from a client
never becomes a path (topic ids do); symbolic links inside are refused; a coordination store that is
empty or another cluster's, over logs that exist, refuses to start and deletes nothing.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
from pathlib import Path
from typing import Final

from postroad.broker.reserve import Reserve
from postroad.cluster.identity import Identity, check_identity, read_identity, write_identity
from postroad.cluster.ids import id_text
from postroad.errors import ConfigurationError

_PARTITION_NAME: Final = re.compile(r"([A-Za-z0-9_-]{22})-(\d+)")

log = logging.getLogger(__name__)


class DataDirectory:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.logs = path / "logs"
        self.schedules = path / "schedules"
        self.store = path / "coordination.sqlite"
        self.reserve = Reserve(path / "reserve")
        self._marker = path / "clean-shutdown"
        self._lock: int | None = None

    def open(self) -> None:
        """Take the directory, or say why not. Blocks on the disk."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._take_lock()
            self._refuse_links(self.path)
            self.logs.mkdir(exist_ok=True, mode=0o700)
            self._refuse_links(self.logs)
        except OSError as error:
            raise ConfigurationError(
                f"the data directory {self.path} can't be used: {error.strerror}. "
                "Choose another with --data DIR."
            ) from None

    def take_marker(self) -> bool:
        """Whether the directory was left by a clean stop; it counts once."""
        try:
            os.unlink(self._marker)
        except FileNotFoundError:
            return False
        self._sync_directory()
        return True

    def belong_to(self, cluster_id: str | None, node_id: int) -> None:
        """Raises unless the logs here and the coordination store are of one cluster (or both are new)."""
        identity = read_identity(self.path)
        check_identity(identity, cluster_id=cluster_id, node_id=node_id, has_logs=bool(self.partitions()))

    def note(self, cluster_id: str, node_id: int) -> None:
        """Durable before the first log is made."""
        identity = Identity(cluster_id=cluster_id, node_id=node_id)
        if read_identity(self.path) != identity:
            write_identity(self.path, identity)

    def partition_directory(self, topic_id: bytes, index: int) -> str:
        return f"{self.logs}/{id_text(topic_id)}-{index}"

    def partitions(self) -> list[tuple[str, int]]:
        """(topic id as text, partition) of every directory under logs/."""
        found = (_PARTITION_NAME.fullmatch(name) for name in sorted(os.listdir(self.logs)))
        return [(match[1], int(match[2])) for match in found if match]

    def close(self, clean: bool) -> None:
        """Let the directory go; `clean` only after every log was synced and closed."""
        if clean:
            try:
                self._leave_marker()
            except OSError as error:  # a full disk, say: the next start looks at the tails of the logs
                log.warning("the clean-shutdown marker could not be left: %s", error)
        self._release_lock()

    # --- helpers

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._lock, 20, 0).decode().strip()
            self._release_lock()
            raise ConfigurationError(
                f"{self.path} is in use by another postroad process (pid {holder}). "
                "Stop it, or choose another directory with --data DIR."
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _release_lock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refuse_links(self, directory: Path) -> None:
        with os.scandir(directory) as entries:
            links = sorted(entry.path for entry in entries if entry.is_symlink())
        if links:
            raise ConfigurationError(
                f"{links[0]} is a symbolic link; the data directory must hold its files itself."
            )

    def _leave_marker(self) -> None:
        fd = os.open(self._marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        self._sync_directory()

    def _sync_directory(self) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
