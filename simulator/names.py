"""The names on a drive: files and directories, those of now and those that a power cut can't take.

A change (create, remove, rename) lasts once its directory was synced. Until then a power cut may undo it,
whatever happens to the others; the names of one change stay together, so a rename is whole or was never made.
"""

from __future__ import annotations

import errno
import os
import posixpath
from random import Random
from typing import Final, Literal

from simulator.paged_file import PagedFile

Entry = PagedFile | Literal["directory"]
Change = dict[str, Entry | None]
"""Each name with what it stands for from then on; None: it is gone."""

DIRECTORY: Final = "directory"
ROOTS: Final = ("", ".", "/")

_NOTHING, _EVERYTHING, _BEGINNING, _SOME = "nothing", "everything", "beginning", "some"
_FATES: Final = (_NOTHING, _EVERYTHING, _BEGINNING, _SOME)  # of what was not synced, after a power cut


class Names:
    def __init__(self, entries: dict[str, Entry] | None = None) -> None:
        """Names that have been synced."""
        self.entries: dict[str, Entry] = dict(entries or {})
        self._synced = dict(self.entries)
        self._pending: list[Change] = []

    def file(self, path: str) -> PagedFile | None:
        """The file of this name, if there is one."""
        found = self.entries.get(path)
        if found == DIRECTORY or path in ROOTS:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return found

    def is_directory(self, path: str) -> bool:
        return path in ROOTS or self.entries.get(path) == DIRECTORY

    def inside(self, directory: str) -> list[str]:
        """The names right below it, sorted."""
        return sorted(posixpath.basename(path) for path in self.entries if is_in(path, directory))

    def below(self, path: str) -> list[str]:
        """It and all that lies under it, the deepest first."""
        return sorted(
            (name for name in self.entries if name == path or name.startswith(path + "/")), reverse=True
        )

    def change(self, change: Change) -> None:
        _apply(self.entries, change)
        self._pending.append(change)

    def make_directory(self, path: str) -> None:
        """A directory whose name is synced."""
        self.entries[path] = self._synced[path] = DIRECTORY

    def begin_sync(self, directory: str) -> list[Change]:
        """The changes that a sync of this directory makes last: those that were made before it began."""
        return [change for change in self._pending if any(is_in(name, directory) for name in change)]

    def finish_sync(self, changes: list[Change]) -> None:
        synced = {id(change) for change in changes}
        for change in self._pending:
            if id(change) in synced:
                _apply(self._synced, change)
        self._pending = [change for change in self._pending if id(change) not in synced]

    def after_power_cut(self, random: Random) -> Names:
        """The names that are found, each with what it then holds; these here are left as they are."""
        entries = dict(self._synced)
        for change in self._surviving(random):
            _drop_other_names(entries, change)
            _apply(entries, change)
        for path in list(entries):
            _restore_parents(entries, path)
        return Names({path: _after_power_cut(entries[path], random) for path in sorted(entries)})

    def is_synced(self, path: str) -> bool:
        return self._synced.get(path) is self.entries.get(path)

    def _surviving(self, random: Random) -> list[Change]:
        fate = random.choice(_FATES)
        if fate == _NOTHING:
            return []
        if fate == _EVERYTHING:
            return self._pending
        if fate == _BEGINNING:
            return self._pending[: random.randrange(len(self._pending) + 1)]
        return [change for change in self._pending if random.random() < 0.5]


def is_in(path: str, directory: str) -> bool:
    parent = posixpath.dirname(path)
    return parent == directory or (parent in ROOTS and directory in ROOTS)


def _apply(entries: dict[str, Entry], change: Change) -> None:
    for path, entry in change.items():
        if entry is None:
            entries.pop(path, None)
        else:
            entries[path] = entry


def _drop_other_names(entries: dict[str, Entry], change: Change) -> None:
    """A file has one name, also where it was renamed twice and the first time is undone."""
    renamed = [entry for entry in change.values() if isinstance(entry, PagedFile)]
    for name in [name for name, entry in entries.items() if any(entry is file for file in renamed)]:
        del entries[name]


def _restore_parents(entries: dict[str, Entry], path: str) -> None:
    """A directory can't be gone while something in it is still there."""
    parent = posixpath.dirname(path)
    while parent not in ROOTS and parent not in entries:
        entries[parent] = DIRECTORY
        parent = posixpath.dirname(parent)


def _after_power_cut(entry: Entry, random: Random) -> Entry:
    return DIRECTORY if isinstance(entry, str) else entry.after_power_cut(random)
