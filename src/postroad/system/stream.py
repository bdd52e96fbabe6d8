"""The port to the network: bytes in both directions, and nobody ever blocks.

A stream is what `broker.connection` and `client.connection` read and write. Its methods do what they can at
once and say how much that was; where nothing can be done they raise BlockingIOError, and the event loop
tells when to try again (`start_reading`, and `loop.add_writer` by `fileno`). Other OSErrors mean that the
connection has ended.

Whoever is told that bytes were not taken must offer the same bytes next: a stream that encrypts may have
done that with them already.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Sequence
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

    def start_reading(self, loop: AbstractEventLoop, call: Callable[[], object]) -> None:
        """Call back in each turn of the loop in which something can be received, until `stop_reading`."""

    def stop_reading(self, loop: AbstractEventLoop) -> None: ...

    def expect(self, count: int) -> None:
        """`count` more bytes belong together: whoever reads need not be called for a few of them."""

    def call_from(self, count: int) -> None:
        """Call back for `count` bytes or more, from now on; for fewer where the system can't tell."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


Connect = Callable[[str, int], Awaitable[Stream]]


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
