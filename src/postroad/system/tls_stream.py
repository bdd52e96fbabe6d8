"""TLS in front of another stream, within the own loop: an SSLObject between two buffers.

Two things differ from a plain stream, and both stay in here:

1. Bytes may be left that no readiness of the descriptor tells of: the socket was read dry, the space that
   they go to was full. Then whoever reads is called again in the next turn, also after a pause.
2. What was encrypted can't be taken back. If the socket does not take all of it, the bytes that it was made
   of are reported as sent only once it has gone; until then the sender is told to wait. It offers the same
   bytes again, as `Stream` demands, and they are not encrypted a second time.

Bounds: at most RECEIVED_BYTES of what the peer sent are held encrypted; the loop is held for no more than
ENCRYPTED_BYTES_MAX at a time (1 MiB would take it a millisecond); files pass through memory in pieces.
"""

from __future__ import annotations

import contextlib
import ssl
import threading
from asyncio import AbstractEventLoop, Handle
from collections.abc import Callable, Sequence
from typing import Any, Final

from postroad.system.stream import Buffer, SentFile, Stream

RECEIVED_BYTES: Final = (
    256 * 1024
)  # with 64 KiB the node took a sixth more processor time for a large produce
SENT_BYTES: Final = 64 * 1024  # four records: more at a time gained nothing
ENCRYPTED_BYTES_MAX: Final = 256 * 1024
CALLED_FROM: Final = 128 * 1024  # bytes of a large frame: a quarter less processor time for a large produce
RECORD_BYTES_MAX: Final = 5 + 16 * 1024 + 2048  # encrypted (RFC 5246; 1.3 has less)


class _Cipher(threading.local):
    """What a socket is received into before it is decrypted: one space for each thread, so for each loop."""

    def __init__(self) -> None:
        self.space = memoryview(bytearray(RECEIVED_BYTES))


_cipher = _Cipher()


class TlsStream:
    """A stream whose handshake is done (`tls_handshake`)."""

    __slots__ = (
        "_call",
        "_called_from",
        "_encrypted",
        "_ended",
        "_expected",
        "_incoming",
        "_is_left",
        "_loop",
        "_more",
        "_outgoing",
        "_owed",
        "_read",
        "_stream",
        "_unsent",
        "_write",
        "fileno",
        "tls",
    )

    def __init__(
        self, stream: Stream, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self.tls = tls
        self.fileno = stream.fileno
        self._stream = stream
        self._incoming = incoming
        self._outgoing = outgoing
        # What SSLObject hands on to, where it has that: each of many small records would cost a call more.
        inner: Any = getattr(tls, "_sslobj", tls)
        self._read: Callable[[int, memoryview], int] = inner.read
        self._write: Callable[[Buffer], int] = inner.write
        self._unsent: Buffer = b""  # encrypted, and not taken by the stream
        self._owed = 0  # bytes of the sender in that, which it believes unsent
        self._encrypted = 0  # bytes since the sender was last told to wait
        self._is_left = True  # something may be here to decrypt: at first, what came with the handshake
        self._expected = 0  # bytes that the reader waits for as one
        self._called_from = 1  # bytes that the stream is to call for
        self._ended = False  # the peer has said good-bye, or its connection has ended
        self._loop: AbstractEventLoop | None = None  # while somebody reads
        self._call: Callable[[], object] | None = None
        self._more: Handle | None = None  # the call that is due because of 1

    # --- in

    def receive_into(self, space: memoryview, /) -> int:
        """Less than the space has room for only if nothing else is here."""
        count = self._decrypt(space) if self._is_left else 0
        while not count and not self._ended:
            cipher = _cipher.space
            received = self._stream.receive_into(cipher)
            if received:
                self._incoming.write(cipher[:received])
            else:
                self._incoming.write_eof()
            count = self._decrypt(space)
        if count and self._loop is not None and (self._ended or self._is_left) and self._is_more_here():
            self._call_again(self._loop)
        if self._expected > 0:
            self.expect(self._expected - count)
        if self._outgoing.pending:  # an answer to the peer's change of keys
            self._send_own()
        return count

    def expect(self, count: int) -> None:
        """Each call for a few records has its price, so the stream calls for many, as long as all of them are
        sure to come: what is held here of those bytes, a part of a record among them, comes no more."""
        self._expected = count
        to_come = count - self._incoming.pending - RECORD_BYTES_MAX
        call_from = CALLED_FROM if to_come >= CALLED_FROM else 1
        if call_from != self._called_from:
            self._called_from = call_from
            self._stream.call_from(call_from)

    def call_from(self, count: int) -> None:
        """Nothing: for how many encrypted bytes they come is not known."""

    def _decrypt(self, space: memoryview) -> int:
        """A call of OpenSSL yields one record at most: take what there is room for.

        One that fails costs more than one that decrypts a small request: none is made where nothing is left.
        """
        size, read = len(space), self._read
        count = 0
        self._is_left = False
        try:
            count = got = read(size, space)
            if 0 < got < size and not self._incoming.pending:
                return got
            while got and count < size:
                got = read(size - count, space[count:])
                count += got
        except ssl.SSLWantReadError:
            return count
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._ended = True  # frames have lengths: one that was cut off is noticed all the same
            return count
        self._is_left = count == size
        self._ended = not got
        return count

    def _is_more_here(self) -> bool:
        return bool(self._ended or self._incoming.pending or self.tls.pending())

    def start_reading(self, loop: AbstractEventLoop, call: Callable[[], object]) -> None:
        self._loop, self._call = loop, call
        self._stream.start_reading(loop, call)
        if self._is_more_here():
            self._call_again(loop)

    def stop_reading(self, loop: AbstractEventLoop) -> None:
        self._loop = self._call = None
        if self._more is not None:
            self._more.cancel()
            self._more = None
        self._stream.stop_reading(loop)

    def _call_again(self, loop: AbstractEventLoop) -> None:
        if self._more is None:
            self._more = loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._more = None
        if self._call is not None:
            self._call()

    # --- out

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        if self._unsent:
            self._send_unsent()
        if self._owed:
            sent, self._owed = self._owed, 0
            return sent
        sent, view = 0, memoryview(data)
        while sent < len(view):
            if self._encrypted >= ENCRYPTED_BYTES_MAX:
                self._encrypted = 0
                return _sent_or_wait(sent)
            piece = view[sent : sent + SENT_BYTES]
            self._write(piece)
            self._encrypted += len(piece)
            if not self._send_encrypted(flags):
                self._owed = len(piece)
                return _sent_or_wait(sent)
            sent += len(piece)
        return sent

    def send_pieces(self, pieces: Sequence[Buffer], /) -> int:
        joined, size = [], 0
        for piece in pieces:
            joined.append(piece)
            size += len(piece)
            if size >= ENCRYPTED_BYTES_MAX:
                break
        return self.send(b"".join(joined))

    def send_file(self, file: SentFile, position: int, length: int) -> int:
        if self._owed:
            return self.send(b"")
        sent = 0
        while sent < length:
            piece = file.read(position + sent, min(length - sent, SENT_BYTES))
            if not piece:
                break
            try:
                taken = self.send(piece)
            except BlockingIOError:
                return _sent_or_wait(sent)
            sent += taken
            if taken < len(piece):
                break
        return sent

    def _send_encrypted(self, flags: int) -> bool:
        """Send what was encrypted just now; False, and it is kept, if the stream does not take all of it."""
        cipher = self._outgoing.read()
        try:
            sent = self._stream.send(cipher, flags)
        except (BlockingIOError, InterruptedError):
            sent = 0
        if sent < len(cipher):
            self._unsent = memoryview(cipher)[sent:]
        return sent == len(cipher)

    def _send_unsent(self) -> None:
        """BlockingIOError unless all of it has gone."""
        while self._unsent:
            self._unsent = self._unsent[self._stream.send(self._unsent) :]

    def _send_own(self) -> None:
        """Send what TLS itself has to say; what is not taken goes before the next bytes of the sender."""
        if not self._unsent:
            self._send_encrypted(0)

    # --- its end

    def close(self) -> None:
        """Say good-bye if the stream takes it at once, so that the peer can tell the end from a cut."""
        if not self._unsent and self.fileno() >= 0:
            with contextlib.suppress(ssl.SSLError, ValueError):  # it would wait for the peer's good-bye
                self.tls.unwrap()
            with contextlib.suppress(OSError):
                if self._outgoing.pending:
                    self._stream.send(self._outgoing.read())
        self._stream.close()


def _sent_or_wait(sent: int) -> int:
    if not sent:
        raise BlockingIOError("the peer has to take what was encrypted")
    return sent
