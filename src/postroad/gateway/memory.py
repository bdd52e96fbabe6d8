"""How much of the gateway's memory clients may take, all of them together.

Requests: what has come of a request counts until it is answered. A connection whose next bytes don't fit is
refused with 503. The first `FREE_BYTES` of a connection never count, so that small requests get through
however full it is, and cost nothing to account for.

Answers: what a client has not read counts from the moment its connection's write buffer is full. When that is
too much, the client that has read nothing for the longest time is cut off.

Messages on their way from the nodes: they become answers, and share the limit of these. A fetch reserves what
it asks a node for, and asks for less when little is left: receives bring fewer messages then, and go on.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from postroad.config.sections import Http

FREE_BYTES: Final = 8 * 1024  # a small request; 10,000 connections hold 80 MB of them at the very most
FETCH_BYTES_MIN: Final = 64 * 1024  # a fetch may always ask for this: one runs for each node and subscription

C = TypeVar("C")


class Memory(Generic[C]):
    """`C` is a connection's type."""

    def __init__(self, http: Http) -> None:
        # The largest body must fit, or it could never be sent.
        self._receive_bytes_max = max(http.receive_bytes_max, http.body_bytes_max + http.header_bytes_max)
        self._send_bytes_max = http.send_bytes_max
        self.received_bytes = 0
        self.unread_bytes = 0
        self.fetching_bytes = 0
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

    def reserve_fetch(self, wanted_bytes: int) -> int:
        """How much a fetch may ask a node for; it counts until `release_fetch` is called with that number."""
        room = self._send_bytes_max - self.unread_bytes - self.fetching_bytes
        granted = min(wanted_bytes, max(room, FETCH_BYTES_MIN))
        self.fetching_bytes += granted
        return granted

    def hold_fetched(self, size: int) -> None:
        """Messages of so many bytes can't be handed out yet; they count until `release_fetch`."""
        self.fetching_bytes += size

    def release_fetch(self, size: int) -> None:
        self.fetching_bytes -= size

    def slowest(self) -> C | None:
        """The connection to cut, if too much waits to be read. An answer alone is never too much: answers
        have bounds of their own."""
        if self.unread_bytes <= self._send_bytes_max or len(self._unread) < 2:
            return None
        return next(iter(self._unread))
