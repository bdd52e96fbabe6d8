"""A real etcd for tests: one member or three, each a process that can be stopped, killed and paused.

    with etcd(members=3) as running:
        store = EtcdStore(parse(running.url("/test")))
        running.leader().kill()

It needs the program `etcd` (Debian: etcd-server). Members listen on free ports of the loopback interface
and keep them over restarts; data are in a temporary directory.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from postroad.cluster.store_address import TlsFiles
from postroad.testing.ports import hold, may_be_held

START_TIMEOUT_S: Final = 60.0  # some 2 s are usual; a machine under load takes longer
STOP_TIMEOUT_S: Final = 20.0
REQUEST_TIMEOUT_S: Final = 2.0
POLL_S: Final = 0.02
LOG_TAIL_CHARS: Final = 4000

# Half of etcd's defaults: an election takes less than a second, and the shortest lease is shorter, too.
HEARTBEAT_MS: Final = 50
ELECTION_MS: Final = 500


class EtcdFailed(RuntimeError):
    """A member did not start, or is not answering; the text ends with what it wrote last."""


class EtcdMember:
    """One member. `endpoint` is host:port for its clients, and stays over restarts."""

    def __init__(
        self,
        home: Path,
        name: str,
        heartbeat_ms: int = HEARTBEAT_MS,
        election_ms: int = ELECTION_MS,
        tls: TlsFiles | None = None,
    ) -> None:
        """With `tls` clients need it, and a certificate that its CA has signed."""
        self.name = name
        self._tls = tls
        self._scheme = "http" if tls is None else "https"
        self.pid = 0
        self._home = home
        self._heartbeat_ms = heartbeat_ms
        self._election_ms = election_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._held: dict[str, socket.socket] = {}
        self.endpoint, self.peer = self._take_port(), self._take_port()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def data_dir(self) -> Path:
        """Where its data lie, also while it does not run."""
        return self._home / self.name

    def start(self, peers: str) -> None:
        """Start the process, with data from before if there are any. `peers`: all members and their URLs."""
        assert not self.is_running, f"{self.name} is running already"
        own, client = f"http://{self.peer}", f"{self._scheme}://{self.endpoint}"
        command = ["etcd", "--name", self.name, "--data-dir", str(self.data_dir)]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", own, "--initial-advertise-peer-urls", own]
        command += ["--initial-cluster", peers, "--initial-cluster-token", self._home.name]
        command += [
            "--heartbeat-interval",
            str(self._heartbeat_ms),
            "--election-timeout",
            str(self._election_ms),
        ]
        if self._tls is not None:
            command += ["--cert-file", self._tls.certificate, "--key-file", self._tls.key]
            command += ["--client-cert-auth", "--trusted-ca-file", self._tls.ca]
        command += ["--log-level", "error"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def _command(self, command: list[str]) -> list[str]:
        """The command that runs the member, for whoever wants it to run elsewhere."""
        return command

    def kill(self) -> None:
        """SIGKILL, as when the machine goes down; its ports are kept."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: a leader hands over before it ends."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: connections stay, nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def wait_until_ready(self) -> None:
        """Return once the member serves what a quorum has agreed on. Raises EtcdFailed if it does not."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_healthy():
            if not self.is_running:
                raise self._failed("ended instead of starting")
            if time.monotonic() > deadline:
                raise self._failed(f"was not ready within {START_TIMEOUT_S:g} s")
            time.sleep(POLL_S)

    def ask(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of this member's JSON gateway, such as `maintenance/status`. OSError if none comes."""
        url = f"{self._scheme}://{self.endpoint}/v3/{path}"
        body = json.dumps(request).encode()
        with urllib.request.urlopen(url, body, timeout=REQUEST_TIMEOUT_S, context=self._context()) as answer:
            facts: dict[str, Any] = json.load(answer)
        return facts

    def _context(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        context = ssl.create_default_context(cafile=self._tls.ca)
        context.load_cert_chain(self._tls.certificate, self._tls.key)
        return context

    def is_leader(self) -> bool:
        try:
            status = self.ask("maintenance/status", {})
        except OSError:
            return False
        return bool(status.get("leader") == status["header"]["member_id"])

    def release_ports(self) -> None:
        while self._held:
            self._held.popitem()[1].close()

    @property
    def _log(self) -> Path:
        return self._home / f"{self.name}.log"

    def _take_port(self) -> str:
        held = hold("127.0.0.1:0")
        address = f"127.0.0.1:{held.getsockname()[1]}"
        if may_be_held(address):
            self._held[address] = held
        else:
            held.close()
        return address

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.send_signal(signal.SIGCONT)  # one that is paused would never end
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_TIMEOUT_S)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"{self._scheme}://{self.endpoint}/health",
                timeout=REQUEST_TIMEOUT_S,
                context=self._context(),
            ) as answer:
                return bool(json.load(answer)["health"] == "true")
        except (OSError, ValueError):
            return False

    def _failed(self, what: str) -> EtcdFailed:
        written = self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]
        return EtcdFailed(f"etcd's member {self.name} {what}; it wrote:\n{written}")


class Etcd:
    """All members. A quorum of them must run for anything to be answered."""

    def __init__(self, members: Sequence[EtcdMember], tls: TlsFiles | None = None) -> None:
        self._tls = tls
        self.members = list(members)
        self._peers = ",".join(f"{member.name}=http://{member.peer}" for member in self.members)

    def url(self, path: str = "/postroad") -> str:
        """What the setting `cluster.store` wants; keys are kept below the path. Files are not named."""
        scheme = "etcd" if self._tls is None else "etcd+tls"
        return f"{scheme}://{','.join(member.endpoint for member in self.members)}{path}"

    def start(self) -> None:
        """Start all that do not run. They serve afterwards."""
        for member in self.members:
            if not member.is_running:
                member.start(self._peers)
        for member in self.members:
            member.wait_until_ready()

    def leader(self) -> EtcdMember:
        """The member that leads now. Raises EtcdFailed if there is none for long."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for member in self.members:
                if member.is_running and member.is_leader():
                    return member
            time.sleep(POLL_S)
        raise EtcdFailed(f"etcd had no leader for {START_TIMEOUT_S:g} s")

    def close(self) -> None:
        """End all members at once."""
        for member in self.members:
            member.kill()
            member.release_ports()


@contextmanager
def etcd(
    members: int = 1,
    *,
    heartbeat_ms: int = HEARTBEAT_MS,
    election_ms: int = ELECTION_MS,
    tls: TlsFiles | None = None,
) -> Iterator[Etcd]:
    """An etcd with data of its own, for as long as the block runs. EtcdFailed if it is not installed."""
    if shutil.which("etcd") is None:
        raise EtcdFailed("the program 'etcd' is missing (Debian: apt-get install etcd-server)")
    home = Path(tempfile.mkdtemp(prefix="postroad-etcd-"))
    running = Etcd(
        [EtcdMember(home, f"member{number}", heartbeat_ms, election_ms, tls) for number in range(members)],
        tls,
    )
    try:
        running.start()
        yield running
    finally:
        running.close()
        shutil.rmtree(home, ignore_errors=True)
