"""Frames and headers: how requests are cut from a stream of bytes, without any I/O.

    frame    := length (int32) payload           length counts the payload only
    request  := api key (int16) version (int16) correlation (int32) client id (nullable string)
                [tagged fields, where the version is flexible] body
    response := correlation (int32) [tagged fields, where flexible; never for ApiVersions] body

A FrameBuffer is the receive side of one connection. Memory follows the bytes that came, never a
length that was merely declared: the buffer at most doubles each time it is full.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from postroad.errors import ProtocolError

BUFFER_BYTES_MIN: Final = 16 * 1024  # 1,000 idle connections hold 16 MB
LARGE_FRAME_BYTES: Final = 64 * 1024  # from here on a read stops at the frame's end: nothing to move

_LENGTH: Final = Struct(">i")
REQUEST_HEADER: Final = Struct(">hhih")  # api key, version, correlation, length of the client id
CORRELATION_END: Final = 8
_SMALL: Final = [bytes([value]) for value in range(0x80)]
_RESPONSE: Final = Struct(">ii")
_RESPONSE_FLEXIBLE: Final = Struct(">iib")

FOREIGN_GREETINGS: Final = {
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"HEAD": "HTTP",
    b"PUT ": "HTTP",
    b"OPTI": "HTTP",
    b"HTTP": "HTTP",
    b"PRI ": "HTTP/2",
    b"SSH-": "SSH",
    b"AMQP": "AMQP",
}
# A handshake or an alert, and the version; how long it is follows.
TLS_GREETINGS: Final = (b"\x16\x03\x01", b"\x16\x03\x03", b"\x15\x03\x01", b"\x15\x03\x03")


class FrameBuffer:
    """Bytes in, frames out.

    Ask for `space()`, fill it, and `take` the frames that are whole. They are views into the buffer:
    valid, and writable, until the next `space()`.
    """

    __slots__ = (
        "_buffer",
        "_end",
        "_start",
        "_view",
        "foreign",
        "frame_bytes_max",
        "grown_bytes",
        "partial",
        "wrong",
    )

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.partial = False  # an unfinished frame is here
        self.wrong = ""  # why no frame can follow
        self.foreign = ""  # the other protocol that the peer speaks, if it is a known one
        self.grown_bytes = 0  # since the owner last looked; it resets it
        self._start = 0  # first byte that was not handed out as a frame
        self._end = 0  # first byte that was not received
        self._allocate(BUFFER_BYTES_MIN)

    @property
    def missing(self) -> int:
        """Bytes of the frame that has begun and is not whole; 0 while unknown."""
        begun = self._end - self._start
        if begun < 4:
            return 0
        return 4 + int(_LENGTH.unpack_from(self._view, self._start)[0]) - begun

    @property
    def capacity(self) -> int:
        return len(self._buffer)

    def space(self) -> memoryview:
        """Where to receive into; never empty."""
        if self._start == self._end:  # the usual case: whole frames were received
            self._start = self._end = 0
            return self._view
        if self._start:
            self._move_to_front()
        wanted = self._wanted()
        if self._end == len(self._buffer):
            self._grow(wanted)
        if wanted > LARGE_FRAME_BYTES:
            return self._view[self._end : min(wanted, len(self._buffer))]
        return self._view[self._end :]

    def take(self, received: int) -> list[memoryview]:
        """Take the bytes that were received into `space()`; returns the payloads of all whole frames.

        Where no frame can follow them `wrong` says why; nothing more is to be received then.
        """
        whole: list[memoryview] = []
        start, end, view = self._start, self._end + received, self._view
        while start + 4 <= end:
            (length,) = _LENGTH.unpack_from(view, start)
            if not 0 < length <= self.frame_bytes_max:
                self.wrong = self._wrong_length(length, start)
                break
            stop = start + 4 + length
            if stop > end:
                break
            whole.append(view[start + 4 : stop])
            start = stop
        self._start, self._end = start, end
        self.partial = start != end
        return whole

    def shrink(self) -> None:
        """Give memory back; only between two frames."""
        if self._start == self._end and len(self._buffer) > BUFFER_BYTES_MIN:
            self._start = self._end = 0
            self._allocate(BUFFER_BYTES_MIN)

    def _wanted(self) -> int:
        """Bytes of the frame that has begun, its length field included; 0 while unknown."""
        if self._end < 4:
            return 0
        return 4 + int(_LENGTH.unpack_from(self._buffer)[0])

    def _move_to_front(self) -> None:
        left = self._end - self._start
        self._view[:left] = self._view[self._start : self._end]
        self._start, self._end = 0, left

    def _grow(self, wanted: int) -> None:
        # A new buffer, not a resize: views of the old one may still be held.
        old = self._view[: self._end]
        size = len(self._buffer)
        self._allocate(min(2 * size, 1 << (wanted - 1).bit_length()))
        self.grown_bytes += len(self._buffer) - size
        self._view[: self._end] = old

    def _allocate(self, size: int) -> None:
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)

    def _wrong_length(self, length: int, start: int) -> str:
        greeting = bytes(self._view[start : start + 4])
        self.foreign = "TLS" if greeting[:3] in TLS_GREETINGS else FOREIGN_GREETINGS.get(greeting, "")
        if self.foreign:
            return f"these bytes are {self.foreign}; this port speaks the Kafka protocol only"
        return f"a frame of {length} bytes was announced; 1 to {self.frame_bytes_max} are allowed"


def body_at(frame: memoryview, client_bytes: int, flexible: bool) -> int:
    """Where the body of a request begins, `client_bytes` being what its header says of the client id."""
    at = REQUEST_HEADER.size + client_bytes if client_bytes > 0 else REQUEST_HEADER.size
    if client_bytes < -1 or at > len(frame):
        raise ProtocolError("the client id is longer than the frame")
    return skip_tags(frame, at) if flexible else at


def client_id(frame: memoryview) -> str | None:
    """The client's name for itself, from a header that `body_at` has passed."""
    *_, client_bytes = REQUEST_HEADER.unpack_from(frame)
    if client_bytes < 0:
        return None
    try:
        return str(frame[REQUEST_HEADER.size : REQUEST_HEADER.size + client_bytes], "utf-8")
    except UnicodeDecodeError:
        raise ProtocolError("the client id is not UTF-8") from None


def response_head(body_bytes: int, correlation: int, flexible: bool) -> bytes:
    """What stands before a response's body: length, correlation and an empty tag section."""
    if flexible:
        return _RESPONSE_FLEXIBLE.pack(body_bytes + 5, correlation, 0)
    return _RESPONSE.pack(body_bytes + 4, correlation)


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """(value, position after it); at most 32 bits, as Kafka's lengths are."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise ProtocolError("a variable-length number is cut or longer than 32 bits")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def write_uvarint(value: int) -> bytes:
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tags(data: memoryview, at: int) -> int:
    """The position after a section of tagged fields, none of which we know."""
    if at < len(data) and data[at] == 0:
        return at + 1
    count, at = read_uvarint(data, at)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
        if at > len(data):
            raise ProtocolError("a tagged field is longer than the frame")
    return at
