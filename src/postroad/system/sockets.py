"""Streams over TCP sockets of the operating system."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable

from postroad.system.stream import Accepted, Listening, SentFile, Stream


class SocketStream:
    """A socket by other names. Its own methods are handed out: a call through ours would cost twice."""

    __slots__ = ("_socket", "close", "fileno", "receive_into", "send", "send_pieces")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self.receive_into = sock.recv_into
        self.send = sock.send
        self.send_pieces = sock.sendmsg
        self.fileno = sock.fileno
        self.close = sock.close

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        return os.sendfile(self._socket.fileno(), file.fileno(), position, length)

    def start_reading(self, loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
        loop.add_reader(self.fileno(), call)

    def stop_reading(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.fileno() >= 0:  # else it is closed, and its number may be somebody else's
            loop.remove_reader(self.fileno())

    def expect(self, count: int) -> None:
        """Nothing: what comes is received where it belongs, and is soon done with."""

    def call_from(self, count: int) -> None:
        with contextlib.suppress(OSError):  # whoever receives is told what is wrong
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)


class ListeningSocket:
    def __init__(self, host: str, port: int, backlog: int) -> None:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        try:
            self._socket = socket.create_server(address[:2], family=family, backlog=backlog)
        except OSError as error:  # Python's text repeats the address
            raise OSError(error.errno, os.strerror(error.errno) if error.errno else str(error)) from None
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])

    def accept(self) -> Accepted:
        accepted, address = self._socket.accept()
        return Accepted(SocketStream(accepted), address[0], address[1])

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()


def listen(host: str, port: int, backlog: int) -> Listening:
    """Take the address (a port that is free, where 0 is asked for), or an OSError."""
    return ListeningSocket(host, port, backlog)


async def connect(host: str, port: int) -> Stream:
    """A stream to the first of the host's addresses that takes it, or an OSError."""
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, protocol)
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return SocketStream(sock)
    raise failure
