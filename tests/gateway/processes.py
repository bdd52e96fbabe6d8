"""Gateways as processes, and raw talk with them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from postroad.testing import Node

PATIENCE_S = 60.0  # far above what anything here takes; it only bounds a failure
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
GATEWAY = [sys.executable, "-m", "postroad", "gateway"]


def get(url: str, timeout_s: float = PATIENCE_S, method: str = "GET", **headers: str) -> tuple[int, str]:
    """(status, text)"""
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def address(url: str) -> tuple[str, int]:
    host, port = url.removeprefix("http://").split(":")
    return host, int(port)


def connect(url: str, source: str = "") -> socket.socket:
    return socket.create_connection(address(url), PATIENCE_S, (source, 0) if source else None)


def ask_for_health(sock: socket.socket) -> None:
    """Over a connection that stays; nothing of the answer is left in it."""
    sock.sendall(HEALTH)
    answer = b""
    while not answer.endswith(b"alive\n"):
        more = sock.recv(1000)
        assert more, f"the connection ends after {answer!r}"
        answer += more
    assert answer.startswith(b"HTTP/1.1 200"), answer


def read_all(sock: socket.socket) -> bytes:
    """Until the peer closes; a reset is an end too."""
    received = b""
    try:
        while more := sock.recv(65536):
            received += more
    except ConnectionResetError:
        pass
    return received


@contextmanager
def alone(home: Path, *arguments: str, program: Sequence[str] = GATEWAY) -> Iterator[subprocess.Popen[str]]:
    """`postroad gateway` on a free port; `url_of` waits until it serves."""
    ready = home / "gateway.json"
    command = [*program, "--http", "127.0.0.1:0", "--ready-file", str(ready), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as gateway:
        try:
            yield gateway
        finally:
            gateway.kill()


def url_of(home: Path) -> str:
    ready = home / "gateway.json"
    eventually(ready.exists, "the gateway does not start")
    return f"http://{json.loads(ready.read_text())['http']}"


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gateway_pid(running: Node) -> int:
    """The process id of the gateway beside this node, as soon as there is one."""
    eventually(lambda: bool(children(running.pid)), "there is no gateway")
    (child,) = children(running.pid)
    return child
