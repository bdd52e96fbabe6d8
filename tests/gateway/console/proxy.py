"""An address that stays while what is behind it changes: bytes to and fro."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """What connects while it leads nowhere is closed; so is what is open when it leads elsewhere."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._target: tuple[str, int] | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.leads_to("")
        self._thread.join(30)

    def leads_to(self, url: str) -> None:
        with self._lock:
            parts = urlsplit(url)
            self._target = (parts.hostname or "", parts.port or 0) if url else None
            for each in self._open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def _accept(self) -> None:
        while True:
            try:
                came, _ = self._listener.accept()
            except OSError:
                return
            try:
                assert self._target is not None
                onward = socket.create_connection(self._target, timeout=10)
                onward.settimeout(None)
            except (AssertionError, OSError):
                came.close()
                continue
            with self._lock:
                self._open |= {came, onward}
            for source, sink in ((came, onward), (onward, came)):
                threading.Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for each in (source, sink):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
