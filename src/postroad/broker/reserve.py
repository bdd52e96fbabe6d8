"""Room set aside on the disk, for the moment when there is none left.

Deleting a topic frees space, but first takes a little: the coordination store has to write it down.
On a full disk that would never succeed. So a file of a few megabytes is kept and given up for
decisions that free space or that a start needs; it is laid aside again as soon as there is room.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from postroad.log.disk import Disk

RESERVE_BYTES: Final = 4 * 1024 * 1024  # the store's page cache and log for many deletions

log = logging.getLogger(__name__)


class Reserve:
    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path

    def lay_aside(self) -> None:
        """Take the room, if it is not taken and there is any."""
        with contextlib.suppress(OSError):  # it is tried again with the next check
            if not self._is_there():
                self._disk.allocate(self._path, RESERVE_BYTES)

    def spend(self) -> bool:
        """Give the room back to the disk; whether there was any to give."""
        if not self._disk.unlink(self._path):
            return False
        log.warning("the disk is full: the reserve was spent to go on")
        return True

    def _is_there(self) -> bool:
        try:
            file = self._disk.open(self._path)
        except FileNotFoundError:
            return False
        try:
            return file.size() == RESERVE_BYTES
        finally:
            file.close()
