"""Pruning: backups that nobody wants any more go, and with them the parts that no other backup needs.

1. A mark says that a prune is at work: creates wait. If one is at work the prune ends (`marks`).
2. The manifests of backups that stay are read. If one can't be, nothing is deleted.
3. The manifests of those that go are deleted, durably; only then parts. So no manifest names a part that is
   gone, wherever it is interrupted. What is left over then the next prune finds: it looks at all parts.

Parts of `unfinished.json` stay: the next create takes them over without looking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from postroad.backups import manifest, marks
from postroad.backups.errors import BackupDamaged, BackupError
from postroad.backups.keep import Keep
from postroad.backups.manifest import Manifest
from postroad.backups.target import Target


class Pruned(NamedTuple):
    """What a prune did, or would do: names of backups, the oldest first, and the parts that went."""

    kept: list[str]
    removed: list[str]
    parts: int
    bytes: int


def preview(target: Target, keep: Keep) -> Pruned:
    """What a prune would do now. Raises BackupError, as all here does, and blocks."""
    return _Pruning(target, keep).pruned()


def prune(target: Target, keep: Keep, progress: Callable[[int], None]) -> Pruned:
    """Do it. `progress` hears how many parts were looked at so far."""
    mark = marks.Mark(target, marks.PRUNE)
    mark.write()
    try:
        if marks.at_work(target, marks.CREATE):
            raise BackupError(
                "a backup is being made there: prune when it has ended, or in ten minutes if it was killed"
            )
        pruning = _Pruning(target, keep)
        pruned = pruning.pruned()
        for name in pruned.removed:
            mark.hold()
            target.delete(manifest.path_of(name))
        if not pruning.has_unfinished:
            target.delete(manifest.UNFINISHED)  # it is damaged, or not there
        for number, (path, _) in enumerate(pruning.unneeded(), start=1):
            mark.hold()
            target.delete(path)
            progress(number)
        return pruned
    finally:
        mark.remove()


class _Pruning:
    """What is there, and what of it goes."""

    def __init__(self, target: Target, keep: Keep) -> None:
        self._target = target
        names = manifest.names(target.list(manifest.MANIFESTS))
        self._kept = keep.kept(names, marks.now_ms())
        self._removed = [name for name in names if name not in set(self._kept)]
        needed = {path for name in self._kept for path, _ in _parts(self._read(name))}
        unfinished = self._read_if_whole(manifest.UNFINISHED)
        self.has_unfinished = unfinished is not None
        needed |= {path for path, _ in _parts(unfinished)}
        self._sizes = {
            path: size
            for name in self._removed
            for path, size in _parts(self._read_if_whole(manifest.path_of(name)))
        }
        self._unneeded = [
            path for path in target.list(manifest.PARTS) if manifest.is_part(path) and path not in needed
        ]

    def unneeded(self) -> Iterator[tuple[str, int]]:
        """Paths of parts, and how many bytes they have."""
        for path in self._unneeded:
            yield path, self._sizes[path] if path in self._sizes else max(self._target.size(path), 0)

    def pruned(self) -> Pruned:
        sizes = [size for _, size in self.unneeded()]
        return Pruned(self._kept, self._removed, len(sizes), sum(sizes))

    def _read(self, name: str) -> Manifest:
        path = manifest.path_of(name)
        try:
            return manifest.decode(name, self._target.get(path) or b"")
        except BackupDamaged as error:
            raise BackupDamaged(
                f"{error}. Nobody can tell which parts it needs, so nothing was deleted: "
                f"delete {path} yourself if you can do without that backup"
            ) from None

    def _read_if_whole(self, path: str) -> Manifest | None:
        content = self._target.get(path)
        try:
            return None if content is None else manifest.decode(path, content)
        except BackupDamaged:
            return None


def _parts(read: Manifest | None) -> Iterator[tuple[str, int]]:
    if read is None:
        return
    for part in read.parts():
        yield part.path, part.bytes
    if read.store is not None:
        yield read.store.path, read.store.bytes
