"""Frames of a WebSocket client must be masked (RFC 6455, 5.1), which aiohttp does not look at.

A mask keeps a page in a browser from choosing the bytes that a proxy between it and us sees. Only the heads
of frames are read here:

    opcode (1 byte) · masked (1 bit), length (7 bits) · length (0, 2 or 8 bytes) · mask (4 bytes) · payload
"""

from __future__ import annotations

from typing import Final

_CONTROL: Final = 0x08  # a bit of the opcode: a close, a ping or a pong
_CONTROL_BYTES_MAX: Final = 125  # the payload of one; aiohttp ends a connection that sends more
_MASKED: Final = 0x80
_MASK_BYTES: Final = 4
_LENGTHS: Final = {126: 2, 127: 8}  # bytes that the length has


class MaskCheck:
    """One connection's: it sees all bytes that the client sends, in any pieces."""

    __slots__ = ("_head", "_skip_bytes", "control_bytes")

    def __init__(self) -> None:
        self.control_bytes = 0  # of all pings, pongs and closes: nobody keeps them
        self._head = b""  # of a frame, not complete yet
        self._skip_bytes = 0  # of the frame whose head is read

    def passes(self, data: bytes) -> bool:
        """False: a frame is not masked, and nothing behind it was looked at."""
        if self._head:
            data, self._head = self._head + data, b""
        at = 0
        while True:
            skip = min(self._skip_bytes, len(data) - at)
            self._skip_bytes -= skip
            at += skip
            if len(data) - at < 2:
                break
            if not data[at + 1] & _MASKED:
                return False
            size = _LENGTHS.get(data[at + 1] & ~_MASKED, 0)
            if len(data) - at < 2 + size + _MASK_BYTES:
                break
            length = int.from_bytes(data[at + 2 : at + 2 + size]) if size else data[at + 1] & ~_MASKED
            if data[at] & _CONTROL:
                self.control_bytes += 2 + size + _MASK_BYTES + min(length, _CONTROL_BYTES_MAX)
            at += 2 + size + _MASK_BYTES
            self._skip_bytes = length
        self._head = data[at:]
        return True
