"""The data directory of a node: who may use it, and what it was left with.

    lock             held (flock) by the process that uses the directory
    node.json        whose logs these are: ids of cluster, node and directory (`cluster.identity`)
    clean-shutdown   there only between a clean stop and the next start
    restoring        a restore of a backup writes here, or was ended early: no node starts
    boot-id          which start of the machine the logs were last used in
    coordination.sqlite  the embedded coordination store; `.imported` once a cluster's store has taken it over
    reserve          room for when the disk is full (`reserve`)
    logs/<topic id>-<partition>/   one directory for each partition
    logs/<topic id>-<partition>/ledger/   the partition's ledger, if it has one
    logs/<topic id>-<partition>.removed   that directory is being deleted: what is left of it is no log
    schedules/       delayed messages of subscriptions, as hints (`subscriptions.schedule_file`)

Rules: the directory is 0700; a second process is kept out; a name from a client
never becomes a path (topic ids do); symbolic links inside are refused; a coordination store that is
empty or another cluster's, over logs that exist, refuses to start and deletes nothing.
"""

from __future__ import annotations

import errno
import logging
import re
from pathlib import Path
from typing import Final

import msgspec

from postroad.broker.reserve import Reserve
from postroad.cluster.identity import (
    BYTES_MAX,
    FILE_NAME,
    Identity,
    check_identity,
    decode_identity,
    encode_identity,
    unreadable,
)
from postroad.cluster.ids import id_text
from postroad.errors import ConfigurationError
from postroad.log.disk import Disk, Lock, LockHeld, read_file

MARKER: Final = "clean-shutdown"
RESTORING: Final = "restoring"
BOOT_FILE: Final = "boot-id"
_BOOT_BYTES_MAX: Final = 200  # a UUID has 36
CLUSTER_FILE: Final = "nodes.json"  # in the directory of several nodes (`cluster_directory`)
IMPORTED: Final = ".imported"
LEDGER: Final = "ledger"
REMOVED: Final = ".removed"
_PARTITION_NAME: Final = re.compile(r"([A-Za-z0-9_-]{22})-(\d+)")

log = logging.getLogger(__name__)


class DataDirectory:
    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.logs = path / "logs"
        self.schedules = path / "schedules"
        self.store = path / "coordination.sqlite"
        self.reserve = Reserve(disk, str(path / "reserve"))
        self._disk = disk
        self._identity = str(path / FILE_NAME)
        self._marker = str(path / MARKER)
        self._boot = str(path / BOOT_FILE)
        self._restoring = str(path / RESTORING)
        self._lock: Lock | None = None

    def open(self) -> None:
        """Take the directory, or say why not. Blocks on the disk."""
        try:
            self._disk.make_directory(str(self.path))
            self._lock = take_lock(self._disk, self.path)
            self._refuse_links(f"{self.path}/.")  # the directory itself may be a link
            self._refuse_cluster()
            self._refuse_restore()
            self._disk.make_directory(str(self.logs))
            self._refuse_links(str(self.logs))
        except OSError as error:
            raise ConfigurationError(
                f"the data directory {self.path} can't be used: {error.strerror}. "
                "Choose another with --data DIR."
            ) from None

    def is_restoring(self) -> bool:
        """Whether a restore of a backup was begun here, and not finished."""
        return RESTORING in self._disk.list(f"{self.path}/.")  # which may be a link

    def begin_restore(self) -> None:
        """Take the directory for a restore: no node starts in it before `end_restore`. Blocks.

        Raises ConfigurationError if somebody else has it, OSError.
        """
        self._disk.make_directory(str(self.path))
        self._lock = take_lock(self._disk, self.path)
        self._leave(self._restoring)

    def end_restore(self) -> None:
        """All is restored, durably: the directory is as after a clean stop. Blocks. Raises OSError."""
        self._leave(self._marker)
        self._disk.unlink(self._restoring)
        self._disk.sync_directory(str(self.path))

    def is_clean(self) -> bool:
        """Whether the directory was left by a clean stop, and nobody has started since."""
        return MARKER in self._disk.list(str(self.path))

    def take_marker(self) -> bool:
        """Whether the directory was left by a clean stop; it counts once."""
        if not self._disk.unlink(self._marker):
            return False
        self._disk.sync_directory(str(self.path))
        return True

    def same_boot(self) -> bool:
        """Whether the machine has run on since `record_boot`, so that all that was written is there."""
        boot_id = self._disk.boot_id().encode()
        try:
            recorded = read_file(self._disk, self._boot, _BOOT_BYTES_MAX)
        except OSError:  # there is none, or it can't be read: another boot is the safe answer
            return False
        return bool(boot_id) and recorded == boot_id

    def record_boot(self) -> None:
        """Remember this start of the machine, durably.

        Only after the cluster has been told what the start may have cost: a node that dies before that must
        find out again. Where it can't be written the next start counts as one of another boot.
        """
        if not self.same_boot():
            try:
                self._disk.replace(self._boot, self._disk.boot_id().encode())
            except OSError as error:
                log.warning("the boot id could not be recorded: %s", error)

    def belong_to(self, cluster_id: str | None, node_id: int, revision: int) -> None:
        """Raises unless the logs here and the coordination store are of one cluster (or both are new).

        `revision`: the store's. One that is older than what this node has acted on is refused, too.
        """
        identity = self._read_identity()
        check_identity(
            identity,
            cluster_id=cluster_id,
            node_id=node_id,
            has_logs=bool(self.partitions()),
            revision=revision,
        )

    def known_id(self, fresh: str) -> str:
        """The directory's own id; `fresh` if it has none yet. It is kept by `note`."""
        identity = self._read_identity()
        return fresh if identity is None or not identity.directory else identity.directory

    def note(self, cluster_id: str, node_id: int, directory_id: str) -> None:
        """Write node.json, durably; call it before the first log is made."""
        known = self._read_identity()
        seen = 0 if known is None else known.seen_revision
        identity = Identity(
            cluster_id=cluster_id, node_id=node_id, directory=directory_id, seen_revision=seen
        )
        if known != identity:
            self._disk.replace(self._identity, encode_identity(identity))

    def note_revision(self, revision: int) -> None:
        """Remember, durably, that what has moved away by this revision of the store is deleted. Blocks."""
        identity = self._read_identity()
        if identity is not None and identity.seen_revision < revision:
            noted = msgspec.structs.replace(identity, seen_revision=revision)
            self._disk.replace(self._identity, encode_identity(noted))

    def note_new_store(self, revision: int) -> None:
        """Remember, durably, that the directory goes with another store, as of this revision. Blocks."""
        identity = self._read_identity()
        if identity is not None and identity.seen_revision != revision:
            noted = msgspec.structs.replace(identity, seen_revision=revision)
            self._disk.replace(self._identity, encode_identity(noted))

    def partition_directory(self, topic_id: bytes, index: int) -> str:
        return f"{self.logs}/{id_text(topic_id)}-{index}"

    def ledger_directory(self, topic_id: bytes, index: int) -> str:
        return f"{self.partition_directory(topic_id, index)}/{LEDGER}"

    def partitions(self) -> list[tuple[str, int]]:
        """(topic id as text, partition) of every directory under logs/."""
        found = (_PARTITION_NAME.fullmatch(name) for name in self._disk.list(str(self.logs)))
        return [(match[1], int(match[2])) for match in found if match]

    def remove_partition(self, topic_id: bytes, index: int) -> None:
        """Delete all of a partition: what is half deleted is never taken for a log. Blocks.

        A file beside the directory says so until it is done; `finish_removals` goes on after a crash.
        """
        path = self.partition_directory(topic_id, index)
        mark = self._disk.open(path + REMOVED, create=True)
        try:
            mark.sync()
        finally:
            mark.close()
        self._disk.sync_directory(str(self.logs))
        self._finish_removal(path)

    def finish_removals(self) -> None:
        """Delete what an earlier process had begun to delete. Blocks; before a log is opened."""
        for name in self._disk.list(str(self.logs)):
            if name.endswith(REMOVED):
                self._finish_removal(f"{self.logs}/{name.removesuffix(REMOVED)}")

    def _finish_removal(self, path: str) -> None:
        """Each name goes durably: one that came back after a power cut would stand among the files of a log
        that was made there anew."""
        for directory in (f"{path}/{LEDGER}", path):
            names = [name for name in self._disk.list(directory) if name != LEDGER]
            for name in names:
                self._disk.unlink(f"{directory}/{name}")
            if names:
                self._disk.sync_directory(directory)
        self._disk.remove(path)
        self._disk.sync_directory(str(self.logs))  # the mark must not go first
        self._disk.unlink(path + REMOVED)
        self._disk.sync_directory(str(self.logs))

    def close(self, clean: bool) -> None:
        """Let the directory go; `clean` only after every log was synced and closed."""
        if clean:
            try:
                self._leave(self._marker)
            except OSError as error:  # a full disk, say: the next start looks at the tails of the logs
                log.warning("the clean-shutdown marker could not be left: %s", error)
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # --- helpers

    def _refuse_cluster(self) -> None:
        if CLUSTER_FILE in self._disk.list(f"{self.path}/."):
            raise ConfigurationError(
                f"{self.path} holds a cluster of several nodes. Start it with --nodes, or choose another "
                "directory with --data DIR."
            )

    def _refuse_restore(self) -> None:
        if self.is_restoring():
            raise ConfigurationError(
                f"{self.path} holds a restore that was not finished. Give the same `postroad backup restore` "
                "again, which begins it anew, or choose another directory with --data DIR."
            )

    def _refuse_links(self, directory: str) -> None:
        try:
            self._disk.list(directory)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            link = Path(error.filename or directory)
            raise ConfigurationError(
                f"{link} is a symbolic link; the data directory must hold its files itself."
            ) from None

    def _read_identity(self) -> Identity | None:
        try:
            content = read_file(self._disk, self._identity, BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self._identity, error) from error
        return decode_identity(content, self._identity)

    def _leave(self, mark: str) -> None:
        """An empty file of this name is there, durably."""
        file = self._disk.open(mark, create=True)
        try:
            file.sync()
        finally:
            file.close()
        self._disk.sync_directory(str(self.path))


def retire_store(disk: Disk, file: Path) -> None:
    """Keep the embedded store under another name: nobody starts with it any more. Blocks."""
    disk.rename(str(file), f"{file}{IMPORTED}")
    disk.sync_directory(str(file.parent))


def take_lock(disk: Disk, path: Path) -> Lock:
    """The directory's lock, for as long as this process lives. ConfigurationError if another one has it."""
    try:
        return disk.lock(str(path / "lock"))
    except LockHeld as held:
        raise ConfigurationError(
            f"{path} is in use by another postroad process (pid {held.holder}). "
            "Stop it, or choose another directory with --data DIR."
        ) from None
