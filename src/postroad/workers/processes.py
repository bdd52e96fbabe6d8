"""Worker processes: kept at their number, restarted when they die, told to stop, and begun anew when files
change.

A child ends with its standard input, so none is left when this process is killed. It has a session of its
own: Ctrl-C reaches this process, which hands it on.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

CALLED_WRONGLY: Final = 2
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 30.0
HEALTHY_S: Final = 10.0  # a process that lived so long is restarted at once when it dies
POLL_S: Final = 0.1
SCAN_S: Final = 0.5  # how often files are looked at
RELOAD_S: Final = 5.0  # jobs that run may take so long to end before new code comes
SKIPPED: Final = frozenset({"__pycache__", "node_modules", "venv"})

log = logging.getLogger("postroad.worker")


class Child:
    """One process, again and again."""

    def __init__(self, command: Sequence[str], number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self._command = command
        self._started_at = 0.0
        self._pause_s = 0.0
        self._start_at = 0.0

    def start_if_due(self, now: float) -> None:
        if self.process is None and now >= self._start_at:
            self._started_at = now
            self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, start_new_session=True)

    def ended(self, now: float) -> int | None:
        """The exit code of a process that has just ended; it is started again after a pause."""
        if self.process is None or (code := self.process.poll()) is None:
            return None
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None
        if now - self._started_at >= HEALTHY_S:
            self._pause_s = 0.0
        self._start_at = now + self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, self._pause_s * 2))
        return code

    def restart_at_once(self) -> None:
        self._pause_s = self._start_at = 0.0

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    @property
    def pause_s(self) -> float:
        return self._start_at - time.monotonic()


class Processes:
    """`run` returns the exit code when all have ended."""

    def __init__(self, command: Sequence[str], count: int, watched: Sequence[Path] = ()) -> None:
        self._children = [Child(command, number) for number in range(1, count + 1)]
        self._watched = watched
        self._signals: list[signal.Signals] = []
        self._wake, self._woken = os.pipe()

    def run(self) -> int:
        before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            return self._run()
        finally:
            for child in self._children:
                child.send(signal.SIGKILL)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._wake)
            os.close(self._woken)

    def _note(self, number: int, frame: object) -> None:
        self._signals.append(signal.Signals(number))
        os.write(self._woken, b".")

    def _run(self) -> int:
        files = Files(self._watched)
        scanned_at = time.monotonic()
        while not self._signals:
            now = time.monotonic()
            for child in self._children:
                child.start_if_due(now)
                code = child.ended(now)
                if code == CALLED_WRONGLY and not self._watched:
                    self._stop()
                    return code
                if code is not None:
                    pause_s = max(0.0, child.pause_s)
                    log.error("process %d %s: starting it again in %.1f s", child.number, told(code), pause_s)
            if self._watched and now - scanned_at >= SCAN_S:
                scanned_at = now
                if changed := files.changed():
                    log.info("%s changed: starting anew", changed)
                    self._begin_anew()
            select.select([self._wake], [], [], POLL_S)
        return self._stop()

    def _begin_anew(self) -> None:
        """All end, as when they are stopped, and start again at once."""
        for child in self._children:
            child.send(signal.SIGTERM)
        if not self._ended_within(RELOAD_S):
            for child in self._children:
                child.send(signal.SIGTERM)  # the second one cancels what runs
            self._ended_within(RELOAD_S)
        for child in self._children:
            child.send(signal.SIGKILL)
            if child.process is not None:
                child.process.wait()
                child.ended(time.monotonic())
            child.restart_at_once()

    def _ended_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while any(child.process is not None and child.process.poll() is None for child in self._children):
            if time.monotonic() > deadline or self._signals:
                return False
            select.select([self._wake], [], [], POLL_S)
        return True

    def _stop(self) -> int:
        """Each signal that has come, or comes, goes to all; the third one kills them."""
        told_of = 0
        for child in self._children:
            child.send(signal.SIGTERM)
        while any(child.process is not None and child.process.poll() is None for child in self._children):
            while told_of < len(self._signals):
                told_of += 1
                for child in self._children if told_of > 1 else ():
                    child.send(signal.SIGTERM if told_of == 2 else signal.SIGKILL)
            if select.select([self._wake], [], [], POLL_S)[0]:
                os.read(self._wake, 64)
        return 0


class Files:
    """The Python files below some directories, and whether one of them has changed."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._known = self._scan()

    def changed(self) -> str:
        """A file that changed, came or went since the last time; empty if none did."""
        before, self._known = self._known, self._scan()
        different = before.items() ^ self._known.items()
        return min((str(path) for path, _ in different), default="")

    def _scan(self) -> Mapping[Path, int]:
        return dict(self._files())

    def _files(self) -> Iterator[tuple[Path, int]]:
        for directory in self._directories:
            for folder, folders, names in os.walk(directory):
                folders[:] = [each for each in folders if each not in SKIPPED and not each.startswith(".")]
                for name in names:
                    if name.endswith(".py"):
                        path = Path(folder, name)
                        try:
                            yield path, path.stat().st_mtime_ns
                        except OSError:
                            continue  # it went a moment ago


def told(code: int) -> str:
    """How a process ended, in words."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
