"""The port to the network: bytes in both directions, and nobody ever blocks.

A stream is what `broker.connection` and `client.connection` read and write. Its methods do what they can at
once and say how much that was; where nothing can be done they raise BlockingIOError, and the event loop
tells when to try again (`loop.add_reader`, `loop.add_writer`, by `fileno`). Other OSErrors mean that the
connection has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

MSG_MORE: Final = 0x8000  # Linux's: more bytes follow at once, so a packet need not go half empty

Buffer = bytes | bytearray | memoryview


class SentFile(Protocol):
    """A file as a stream needs it: by its descriptor where there is one, else by its bytes."""

    def fileno(self) -> int: ...
    def read(self, position: int, length: int) -> bytes: ...


class Stream(Protocol):
    """One connection, from one of its ends. A method may be an attribute that holds a function."""

    def receive_into(self, space: memoryview, /) -> int:
        """How many bytes came; 0: the peer sends no more."""

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """How many bytes were taken. `flags`: MSG_MORE, or none."""

    def send_pieces(self, pieces: Sequence[Buffer], /) -> int:
        """Send bytes that lie apart, as `send` does."""

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        """The same for bytes of a file, which need not pass through our memory; 0: it has none there."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class Accepted(NamedTuple):
    stream: Stream
    host: str
    port: int


class Listening(Protocol):
    """An address that peers connect to."""

    port: int

    def accept(self) -> Accepted: ...

    def fileno(self) -> int: ...

    def close(self) -> None: ...
