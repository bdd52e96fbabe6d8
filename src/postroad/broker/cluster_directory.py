"""The data directory of several nodes that one process has started (`postroad serve --nodes`).

    lock                 held (flock) by the process that has started them
    nodes.json           how many nodes there are
    coordination.sqlite  the coordination store of them all; `.imported` once etcd has taken it over
    store.sock           where they reach it while they run
    node-<id>/           the data directory of each (`data_directory`)

Rules: it never holds the logs of a single node, and never starts with fewer nodes than before, whose
partitions would be missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from postroad.broker.data_directory import CLUSTER_FILE, take_lock
from postroad.cluster.identity import FILE_NAME as IDENTITY_FILE
from postroad.cluster.store_address import SOCKET_PATH_BYTES_MAX
from postroad.errors import ConfigurationError
from postroad.log.disk import Disk, Lock, read_file

_BYTES_MAX: Final = 1000


class ClusterSize(msgspec.Struct, frozen=True):
    nodes: int


class ClusterDirectory:
    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path.absolute()
        self.store = self.path / "coordination.sqlite"
        self.socket = self.path / "store.sock"
        self._disk = disk
        self._lock: Lock | None = None

    def open(self, nodes: int) -> None:
        """Take the directory for so many nodes, or say why not (ConfigurationError). Blocks on the disk."""
        if len(str(self.socket).encode()) > SOCKET_PATH_BYTES_MAX:
            raise ConfigurationError(
                f"the path of {self.path} is too long for a Unix socket in it. "
                "Choose another with --data DIR."
            )
        try:
            self._disk.make_directory(str(self.path))
            self._lock = take_lock(self._disk, self.path)
            self._claim(nodes)
        except OSError as error:
            raise ConfigurationError(
                f"the data directory {self.path} can't be used: {error.strerror}. "
                "Choose another with --data DIR."
            ) from None

    def size(self) -> int:
        """How many nodes there are; 0 where there is no such directory yet. Blocks on the disk."""
        return self._size() if CLUSTER_FILE in self._disk.list(str(self.path)) else 0

    def node(self, number: int) -> Path:
        """The data directory of this node."""
        return self.path / f"node-{number}"

    def close(self) -> None:
        """Let the directory go."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _claim(self, nodes: int) -> None:
        names = self._disk.list(str(self.path))
        before = self.size()
        if not before and (IDENTITY_FILE in names or self._disk.list(str(self.path / "logs"))):
            raise ConfigurationError(
                f"{self.path} holds the logs of a single node. Start it without --nodes, or choose another "
                "directory with --data DIR."
            )
        if nodes < before:
            raise ConfigurationError(
                f"{self.path} holds a cluster of {before} nodes. Start it with --nodes {before} or more, or "
                "choose another directory with --data DIR."
            )
        if nodes > before:
            self._disk.replace(str(self.path / CLUSTER_FILE), msgspec.json.encode(ClusterSize(nodes)) + b"\n")

    def _size(self) -> int:
        path = str(self.path / CLUSTER_FILE)
        try:
            return msgspec.json.decode(read_file(self._disk, path, _BYTES_MAX), type=ClusterSize).nodes
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path} can't be read ({error}). Restore it from a backup.") from error
