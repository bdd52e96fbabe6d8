"""Verifying a backup where it lies: hashes of its parts, CRCs and places of the batches in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from postroad.backups import batches, contents, manifest
from postroad.backups.errors import BackupDamaged, BackupError
from postroad.backups.manifest import Manifest, Part, StorePart
from postroad.backups.target import Target

PIECE_BYTES: Final = 8 * 1024 * 1024


def backups(target: Target) -> list[str]:
    """Their names, the oldest first. Blocks, as all here does."""
    return manifest.names(target.list(manifest.MANIFESTS))


def read_manifest(target: Target, name: str | None) -> tuple[str, Manifest]:
    """The backup of this name, or the newest one. Raises BackupError."""
    if name is None:
        found = backups(target)
        if not found:
            raise BackupError("there is no backup: `postroad backup create` makes one")
        name = found[-1]
    try:
        path = manifest.path_of(name)
    except ValueError as error:
        raise BackupError(str(error)) from None
    if target.size(path) > manifest.BYTES_MAX:
        raise BackupDamaged(f"the manifest {name} is larger than {manifest.BYTES_MAX} bytes")
    content = target.get(path)
    if content is None:
        raise BackupError(f"there is no backup {name}")
    read = manifest.decode(name, content)
    if read.store is None:
        raise BackupDamaged(f"the backup {name} is not complete")
    return name, read


def read_part(target: Target, part: Part | StorePart, of: str) -> bytes:
    """The bytes of a part, just as they were stored. Raises BackupDamaged."""
    size = target.size(part.path)
    if size >= 0 and size != part.bytes:  # however large it is: it is not read
        raise BackupDamaged(f"{of}: {part.path} has {size} bytes instead of {part.bytes}")
    content = target.get(part.path)
    if content is None:
        raise BackupDamaged(f"{of}: {part.path} is missing")
    if manifest.sha256_of(content) != part.sha256:
        raise BackupDamaged(f"{of}: {part.path} was changed: its SHA-256 does not match")
    return content


def pieces(target: Target, part: Part, of: str) -> Iterator[memoryview]:
    """The part's batches, checked. Raises BackupDamaged."""
    content = memoryview(read_part(target, part, of))
    try:
        yield from batches.pieces(content, part.first, part.next, PIECE_BYTES)
    except ValueError as error:
        raise BackupDamaged(f"{of}: {part.path} is damaged: {error}") from None


def verify(target: Target, read: Manifest, seen: set[str], progress: Callable[[int], None]) -> list[str]:
    """What is wrong with a backup, in words; nothing: it can be restored. Parts in `seen` are passed over."""
    wrong: list[str] = []
    assert read.store is not None
    try:
        contents.decode(read_part(target, read.store, "the coordination store"))
    except BackupDamaged as error:
        wrong.append(str(error))
    for log in read.logs:
        for part in log.parts:
            if part.sha256 in seen:
                continue
            seen.add(part.sha256)
            try:
                for _ in pieces(target, part, str(log)):
                    pass
            except BackupDamaged as error:
                wrong.append(str(error))
            progress(part.bytes)
    return wrong
