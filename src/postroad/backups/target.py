"""Where backups lie: a directory, or an object store. Paths in it are those of `manifest`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from postroad.backups.errors import TargetFailed


class Target(Protocol):
    """All methods block, and raise TargetFailed. An object is there as a whole or not at all."""

    def put(self, path: str, content: bytes | bytearray) -> None:
        """Store it, durably; what was there is replaced."""

    def get(self, path: str) -> bytes | None:
        """The content; None if there is nothing."""

    def size(self, path: str) -> int:
        """How many bytes are stored there; -1 if there is nothing."""

    def list(self, prefix: str) -> list[str]:
        """The paths below a prefix that ends with a slash."""

    def delete(self, path: str) -> None:
        """Nothing is there afterwards, durably."""


def open_target(where: str) -> Target:
    """A directory by its path, or an object store by its URL. Raises TargetFailed if that can't be used."""
    if "://" in where and not where.startswith("file://"):
        from postroad.backups.objects import ObjectTarget

        return ObjectTarget(where)
    from postroad.backups.directory import DirectoryTarget

    path = where.removeprefix("file://")
    if not path:
        raise TargetFailed("name a directory, or the URL of an object store")
    return DirectoryTarget(Path(path))
