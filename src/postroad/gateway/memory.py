"""How much of the gateway's memory clients may take, all of them together.

Requests: what has come of a request counts until it is answered. A connection whose next bytes don't fit is
refused with 503. The first `FREE_BYTES` of a connection never count, so that small requests get through
however full it is, and cost nothing to account for.

Answers: what a client has not read counts from the moment its connection's write buffer is full. When that is
too much, the client that has read nothing for the longest time is cut off.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from postroad.config.sections import Http

FREE_BYTES: Final = 8 * 1024  # a small request; 10,000 connections hold 80 MB of them at the very most

C = TypeVar("C")


class Memory(Generic[C]):
    """`C` is a connection's type."""

    def __init__(self, http: Http) -> None:
        # The largest body must fit, or it could never be sent.
        self._receive_bytes_max = max(http.receive_bytes_max, http.body_bytes_max + http.header_bytes_max)
        self._send_bytes_max = http.send_bytes_max
        self.received_bytes = 0
        self.unread_bytes = 0
        self._unread: dict[C, int] = {}  # the one that has waited longest comes first

    def count_received(self, was_bytes: int, now_bytes: int) -> bool:
        """A connection holds so much now. False: it is too much for all of them together."""
        self.received_bytes += now_bytes - was_bytes
        return now_bytes <= was_bytes or self.received_bytes <= self._receive_bytes_max

    def count_unread(self, connection: C, unread_bytes: int) -> None:
        """The client has not read so much of its answers; 0: it has read all, or has gone."""
        self.unread_bytes += unread_bytes - self._unread.get(connection, 0)
        if unread_bytes:
            self._unread[connection] = unread_bytes
        else:
            self._unread.pop(connection, None)

    def slowest(self) -> C | None:
        """The connection to cut, if too much waits to be read. An answer alone is never too much: answers
        have bounds of their own."""
        if self.unread_bytes <= self._send_bytes_max or len(self._unread) < 2:
            return None
        return next(iter(self._unread))
