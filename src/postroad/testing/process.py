"""A node as a process of its own: started, killed, stopped and restarted at will.

The node listens on a free port that the kernel chose and says which in a file (`--ready-file`) once
it takes connections; nothing is guessed and no output is parsed. A restart keeps ports and data: while
no node has its ports they are held here, so that nobody else is given one of them meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from postroad.testing.ports import hold, may_be_held

START_TIMEOUT_S: Final = 60.0  # some 0.3 s is usual; a machine under load takes longer
STOP_TIMEOUT_S: Final = 60.0
PORT_TIMEOUT_S: Final = 10.0  # for the gateway of a node that was killed to see that, and end
POLL_S: Final = 0.005
LOG_TAIL_CHARS: Final = 4000

Setting = str | int | float | bool

# A gateway costs memory and half a second of a core: it is there when a test asks for it, on a free port.
DEFAULTS: Final[Mapping[str, Setting]] = {"http.enabled": False, "http.port": 0}


class NodeFailed(RuntimeError):
    """The node did not start or did not stop; the text ends with what it wrote last."""


class Node:
    """A running node. `bootstrap` is what Kafka clients want as their bootstrap servers.

    With the setting `http.enabled` a gateway runs beside it, and `http` is its URL.
    """

    bootstrap: str
    http: str  # the gateway's URL; empty without one
    listeners: Mapping[str, str]  # further addresses for Kafka clients, by the listener's name
    pid: int

    def __init__(self, home: Path, config: Mapping[str, Setting] | None = None) -> None:
        self.data_dir = home / "data"
        self.log_file = home / "node.log"
        self._ready_file = home / "ready.json"
        self._config_file = home / "postroad.toml"
        self.configure(config or {})
        self._listen = "127.0.0.1:0"
        self._http_listen = ""
        self._held: dict[str, socket.socket] = {}  # by address
        self._process: subprocess.Popen[bytes] | None = None
        self.is_paused = False

    def configure(self, config: Mapping[str, Setting]) -> None:
        """The next start has these settings."""
        self._config_file.write_text(toml({**DEFAULTS, **config}))

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Takes connections afterwards. NodeFailed with the end of its log if it doesn't come up."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start the process. It takes connections once `wait_until_ready` has returned."""
        assert not self.is_running, "the node is running already"
        self._hold_ports(PORT_TIMEOUT_S)
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "postroad", "serve", "--config", str(self._config_file)]
        command += [
            "--data",
            str(self.data_dir),
            "--kafka",
            self._listen,
            "--ready-file",
            str(self._ready_file),
        ]
        if self._http_listen:
            command += ["--http", self._http_listen]
        with self.log_file.open("ab") as log:
            # A session of its own: Ctrl-C in a terminal reaches the tests, and they stop the node.
            self._process = subprocess.Popen(
                self._command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.is_paused = False

    def _command(self, command: list[str]) -> list[str]:
        """The command that runs the node, for whoever wants it to run elsewhere."""
        return command

    def wait_until_ready(self) -> None:
        """Return once the node takes connections. NodeFailed with the end of its log if it doesn't."""
        assert self._process is not None
        try:
            ready = wait_for_file(self._ready_file, self._process)
        except NodeFailed as error:
            self.kill()
            raise self._failed(str(error)) from None
        finally:
            self.release_ports()
        self.bootstrap = self._listen = ready["kafka"]
        self.listeners = {
            name.removeprefix("kafka."): address
            for name, address in ready.items()
            if name.startswith("kafka.")
        }
        self._http_listen = ready.get("http", "")
        self.http = ready.get("url", "")

    def kill(self) -> None:
        """SIGKILL: no goodbye, no sync, as when the process crashes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)
            self._hold_ports()

    def stop(self) -> None:
        """SIGTERM: drains, syncs and ends. NodeFailed if it doesn't end, or not well."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        self._process.send_signal(signal.SIGCONT)  # one that is paused would never end
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(f"did not stop within {STOP_TIMEOUT_S:g} s") from None
        self._hold_ports()
        if code != 0:
            raise self._failed(f"ended with exit code {code}")

    def pause(self) -> None:
        """SIGSTOP: connections stay, nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT: it goes on where it was, later."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def restart(self) -> None:
        """Stops it if it runs, and starts it on the same port with the same data."""
        self.stop()
        self.start()

    def _hold_ports(self, patience_s: float = 0) -> None:
        """Those it has been given; who still has one of them is waited for."""
        deadline = time.monotonic() + patience_s
        for address in filter(may_be_held, (self._listen, self._http_listen)):
            while address not in self._held:
                try:
                    self._held[address] = hold(address)
                except OSError:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(POLL_S)

    def release_ports(self) -> None:
        """Let others have the ports that are held while the node does not run."""
        while self._held:
            self._held.popitem()[1].close()

    def _failed(self, what: str) -> NodeFailed:
        written = self.log_file.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        return NodeFailed(f"the node {what}; it wrote:\n{written}")


@contextmanager
def node(
    config: Mapping[str, Setting] | None = None, *, directory: str | os.PathLike[str] | None = None
) -> Iterator[Node]:
    """A node on a free port with data of its own, for as long as the block runs.

    `config` are settings by their names in the configuration file, such as
    {"topics.auto_create": False}. `directory` keeps data and log; without it they are temporary.
    """
    home = Path(tempfile.mkdtemp(prefix="postroad-")) if directory is None else Path(directory)
    running = Node(home, config)
    try:
        running.start()
        yield running
        running.stop()
    finally:
        running.kill()
        running.release_ports()
        if directory is None:
            shutil.rmtree(home, ignore_errors=True)


def wait_for_file(path: Path, process: subprocess.Popen[bytes]) -> dict[str, str]:
    """What the process says in its ready file. NodeFailed if it ends or takes too long."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not path.exists():
        if process.poll() is not None:
            raise NodeFailed(f"ended with exit code {process.returncode} instead of starting")
        if time.monotonic() > deadline:
            raise NodeFailed(f"was not ready within {START_TIMEOUT_S:g} s")
        time.sleep(POLL_S)
    facts: dict[str, str] = json.loads(path.read_bytes())
    return facts


def toml(config: Mapping[str, Setting]) -> str:
    """`{"a.b": 1}` as a table `a` with a key `b`; JSON writes these values as TOML does."""
    sections: dict[str, list[str]] = {}
    for name, value in config.items():
        section, _, key = name.rpartition(".")
        sections.setdefault(section, []).append(f"{key} = {json.dumps(value)}")
    return (
        "\n".join(
            "\n".join([f"[{section}]" if section else "", *lines])
            for section, lines in sorted(sections.items())
        )
        + "\n"
    )
