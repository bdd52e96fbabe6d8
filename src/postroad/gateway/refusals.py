"""Answers from the door itself, to requests that are not read to their end.

They have no body: what SDKs make of a 5xx without one is "try again later".
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Refused(NamedTuple):
    status: int
    data: bytes


TOO_BUSY: Final = Refused(
    503,
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
)
LONG_HEAD: Final = Refused(
    431,
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
)
BAD_LINE: Final = Refused(400, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
