"""Backups in a directory. Files are private to their owner: messages are in them.

A file is written beside its name, synced, and renamed; then the directory is synced. A crash leaves `.tmp`
files at most, which nobody reads; a later backup removes those that are a day old.
"""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Final

from postroad.backups.errors import TargetFailed

TEMPORARY: Final = ".tmp"
STALE_S: Final = 86_400.0  # no write takes so long: whoever wrote it is dead


class DirectoryTarget:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_tidy = False

    def put(self, path: str, content: bytes | bytearray) -> None:
        final = self._path / path
        try:
            self._make(final.parent)
            self._tidy()
            beside = final.with_name(f"{final.name}.{secrets.token_hex(4)}{TEMPORARY}")
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb", buffering=0) as file:
                view = memoryview(content)
                while view:
                    view = view[file.write(view) :]
                os.fsync(file.fileno())
            beside.replace(final)
            _sync(final.parent)
        except OSError as error:
            raise TargetFailed(f"{final} can't be written: {error.strerror}") from None

    def get(self, path: str) -> bytes | None:
        try:
            return (self._path / path).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TargetFailed(f"{self._path / path} can't be read: {error.strerror}") from None

    def size(self, path: str) -> int:
        try:
            return (self._path / path).stat().st_size
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise TargetFailed(f"{self._path / path} can't be read: {error.strerror}") from None

    def list(self, prefix: str) -> list[str]:
        try:
            found = [path for path in (self._path / prefix).rglob("*") if path.is_file()]
        except OSError as error:
            raise TargetFailed(f"{self._path / prefix} can't be listed: {error.strerror}") from None
        return sorted(path.relative_to(self._path).as_posix() for path in found if path.suffix != TEMPORARY)

    def delete(self, path: str) -> None:
        try:
            (self._path / path).unlink()
            _sync((self._path / path).parent)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TargetFailed(f"{self._path / path} can't be deleted: {error.strerror}") from None

    def _tidy(self) -> None:
        """Once: what backups have left that were killed long ago."""
        if self._is_tidy:
            return
        self._is_tidy = True
        for path in self._path.rglob(f"*{TEMPORARY}"):
            if path.stat().st_mtime < time.time() - STALE_S:
                path.unlink(missing_ok=True)

    def _make(self, directory: Path) -> None:
        """The directory and those above it that are missing, each durable in the one above."""
        if directory.is_dir():
            return
        self._make(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)
        _sync(directory.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
