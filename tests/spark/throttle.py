"""A node with a quota, as Apache Kafka has them: some fetches are answered with a time to wait and no more.

All other requests go to a real node, and its port in answers is replaced, so that clients come back here.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from struct import Struct

from postroad.wire.messages import fetch

_INT = Struct(">i")
_REQUEST = Struct(">hhi")  # api, version, correlation


class Throttle:
    """Takes clients while the block lasts; `asked` are the times of the fetches that it answered itself."""

    def __init__(self, node: str, fetches: int, wait_ms: int) -> None:
        host, port = node.split(":")
        self._node = (host, int(port))
        self._left = fetches
        self._wait_ms = wait_ms
        self._server = socket.create_server((host, 0))
        self._port = self._server.getsockname()[1]
        self.bootstrap = f"{host}:{self._port}"
        self.asked: list[float] = []

    @contextmanager
    def serving(self) -> Iterator[str]:
        threading.Thread(target=self._accept, daemon=True).start()
        with self._server:
            yield self.bootstrap
            self._server.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):  # the end
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(EOFError, ConnectionError), client, socket.create_connection(self._node) as node:
            while True:
                request = _frame(client)
                key, version, correlation = _REQUEST.unpack_from(request)
                if key == fetch.KEY and self._left:
                    self._left -= 1
                    self.asked.append(time.monotonic())
                    answer = _INT.pack(correlation) + (b"\0" if version >= fetch.FLEXIBLE_FROM else b"")
                    answer += fetch.encode_response(
                        fetch.FetchResponse(throttle_time_ms=self._wait_ms), version
                    )
                else:
                    node.sendall(_INT.pack(len(request)) + request)
                    answer = self._redirected(_frame(node))
                client.sendall(_INT.pack(len(answer)) + answer)

    def _redirected(self, answer: bytes) -> bytes:
        host = self._node[0].encode()
        return answer.replace(host + _INT.pack(self._node[1]), host + _INT.pack(self._port))


def _frame(sender: socket.socket) -> bytes:
    return _exactly(sender, _INT.unpack(_exactly(sender, _INT.size))[0])


def _exactly(sender: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        received = sender.recv(size - len(data))
        if not received:
            raise EOFError
        data += received
    return data
