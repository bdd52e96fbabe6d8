"""Room set aside on the disk, for the moment when there is none left.

Deleting a topic frees space, but first takes a little: the coordination store has to write it down.
On a full disk that would never succeed. So a file of a few megabytes is kept and given up for
decisions that free space or that a start needs; it is laid aside again as soon as there is room.
"""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import Final

RESERVE_BYTES: Final = 4 * 1024 * 1024  # the store's page cache and log for many deletions

log = logging.getLogger(__name__)


class Reserve:
    def __init__(self, path: Path) -> None:
        self._path = path

    def lay_aside(self) -> None:
        """Take the room, if it is not taken and there is any."""
        with contextlib.suppress(OSError):  # it is tried again with the next check
            if self._path.exists() and self._path.stat().st_size == RESERVE_BYTES:
                return
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.posix_fallocate(fd, 0, RESERVE_BYTES)
            except OSError:
                self._path.unlink()
            finally:
                os.close(fd)

    def spend(self) -> bool:
        """Give the room back to the disk; whether there was any to give."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        log.warning("the disk is full: the reserve was spent to go on")
        return True
