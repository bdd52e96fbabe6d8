"""A server process that is measured: started, waited for, asked for its CPU time and memory, stopped.

Nothing that is started here outlives `stop`: each process leads its own session, so that ^C reaches the
benchmark alone, which then ends them by their ids.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

READY_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
_CPUCLOCK_SCHED = 2  # Linux: a process's CPU clock is numbered (~pid << 3) | 2


class ServerFailed(Exception):
    """A server ended, or was not ready in time; the text ends with what it printed last."""


class Process:
    """One running server and its children."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        with log.open("wb") as output:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                cwd=log.parent,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def wait_for(self, port: int) -> None:
        """Returns once `port` accepts connections. Raises ServerFailed."""
        self.wait_until(lambda: _accepts(port))

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Returns once `ready` is true. Raises ServerFailed."""
        deadline = time.monotonic() + READY_SECONDS_MAX
        while not ready():
            if not self.running:
                raise ServerFailed(f"it ended with status {self._child.returncode}:\n{self._last_words()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"not ready within {READY_SECONDS_MAX:.0f} s:\n{self._last_words()}")
            time.sleep(0.02)

    def cpu_seconds(self) -> float:
        """What all threads of the process and of its living children have used so far, to the nanosecond."""
        return sum(cpu_seconds_of(pid) for pid in process_tree(self._child.pid))

    def resident_mb(self) -> float:
        """Memory that the process and its children hold."""
        return sum(_resident_kb(pid) for pid in process_tree(self._child.pid)) / 1000

    def stop(self) -> None:
        """SIGTERM, then SIGKILL to whatever is left."""
        tree = list(process_tree(self._child.pid))
        if self.running:
            self._child.terminate()
        try:
            self._child.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            for pid in tree:
                kill(pid)
            self._child.wait()

    def kill(self) -> None:
        """SIGKILL, as a machine's out-of-memory killer sends it."""
        self._child.kill()
        self._child.wait()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-1500:]


class Processes:
    """The processes of a cluster, measured as one. `members` are numbered as the cluster's nodes are."""

    def __init__(self) -> None:
        self.members: dict[int, Process] = {}

    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds() for process in self.members.values())

    def resident_mb(self) -> float:
        return sum(process.resident_mb() for process in self.members.values())

    def stop(self) -> None:
        """All at once: each is told to stop before any is waited for."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(Process.stop, self.members.values()))


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def process_tree(root: int) -> Iterator[int]:
    """The process and all that it has started, directly or not."""
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        with contextlib.suppress(OSError):  # it ended meanwhile, and has no children any more
            for thread in Path(f"/proc/{pid}/task").iterdir():
                waiting += _children(thread)


def _children(thread: Path) -> list[int]:
    try:
        return [int(pid) for pid in (thread / "children").read_text().split()]
    except OSError:
        return []  # it ended meanwhile


def free_port() -> int:
    return free_ports(1)


def free_ports(count: int) -> int:
    """The first of so many free ports in a row."""
    while True:
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError, OverflowError):
            first = _bound(probes, 0)
            for port in range(first + 1, first + count):
                _bound(probes, port)
            return first


def _bound(probes: contextlib.ExitStack, port: int) -> int:
    probe = probes.enter_context(socket.socket())
    probe.bind(("127.0.0.1", port))
    bound: int = probe.getsockname()[1]
    return bound


def cpu_seconds_of(pid: int) -> float:
    # /proc/PID/stat has the same figure in steps of 10 ms, too coarse for a broker that needs 0.1 s.
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0


def _resident_kb(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
