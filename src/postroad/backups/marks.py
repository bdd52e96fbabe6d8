"""Marks: who is at work where backups lie, so that no prune takes away what a new backup builds on.

    marks/create-<16 hex digits>.json   {"at_ms": …} a `backup create` is at work
    marks/prune-<16 hex digits>.json    the same of a `backup prune`

Object stores have no locks. Whoever comes writes a mark first and looks for those of the other kind then: of
two that come at the same time at least one sees the other. A create waits until the prune has ended; a prune
ends if there is a create. Several of one kind don't disturb each other.

A mark is written anew each BEAT_MS. One that was not for STALE_MS is that of a process that died: it is
removed by the next one that it would stop. A process that only stood still (a machine that was suspended)
finds out by `hold` or `check`, which it calls before each step that relies on the mark.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from typing import Final

import msgspec

from postroad.backups.errors import BackupError, TargetFailed
from postroad.backups.target import Target

MARKS: Final = "marks/"
CREATE: Final = "create"
PRUNE: Final = "prune"
BEAT_MS: Final = 10_000
STALE_MS: Final = 600_000  # machines whose clocks differ by more than that should not share a place


class MarkLost(BackupError):
    """Others may have taken this process for dead."""


class _At(msgspec.Struct):
    at_ms: int


class Mark:
    """The mark of this process. All methods block, and raise TargetFailed."""

    def __init__(self, target: Target, kind: str) -> None:
        self._target = target
        self._path = f"{MARKS}{kind}-{secrets.token_hex(8)}.json"
        self._at_ms = 0
        self._writing = threading.Lock()  # a beat must not bring back what was removed

    def write(self) -> None:
        with self._writing:
            self._write()

    def _write(self) -> None:
        at_ms = now_ms()
        self._target.put(self._path, msgspec.json.encode(_At(at_ms)))
        self._at_ms = at_ms

    def hold(self) -> None:
        """The mark holds, and is written anew if it is time for that. Raises MarkLost."""
        with self._writing:
            if now_ms() - self._at_ms >= BEAT_MS:
                self.check()
                self._write()

    def check(self) -> None:
        """The mark was never taken for that of a dead process. Raises MarkLost."""
        if now_ms() - self._at_ms >= STALE_MS // 2 or self._target.size(self._path) < 0:
            raise MarkLost("this command stood still for too long, and was taken for dead: give it again")

    def remove(self) -> None:
        """Others need not wait any more. If that fails they wait until the mark is stale."""
        with self._writing, contextlib.suppress(TargetFailed):
            self._target.delete(self._path)


def at_work(target: Target, kind: str) -> bool:
    """Whether there is a living mark of this kind; dead ones are removed. Blocks, and raises TargetFailed."""
    found = [path for path in target.list(MARKS) if path.startswith(f"{MARKS}{kind}-")]
    alive = [path for path in found if _is_alive(target.get(path))]
    for path in set(found) - set(alive):
        target.delete(path)
    return bool(alive)


def _is_alive(content: bytes | None) -> bool:
    try:
        at_ms = msgspec.json.decode(content or b"", type=_At).at_ms
    except msgspec.MsgspecError:
        return False  # it is gone, or no mark: they are written as a whole
    return abs(now_ms() - at_ms) < STALE_MS


def now_ms() -> int:
    return time.time_ns() // 1_000_000
