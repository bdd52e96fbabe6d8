"""Plain requests: the few that can be read in one way only, and so without aiohttp.

    POST / HTTP/1.1 CRLF                      or the path of a queue, /<12 digits>/<name>
    <name>: <value> CRLF …                    visible ASCII and blanks; each name once
    CRLF
    <body>                                    as many bytes as Content-Length says

A plain request has one Host, one Content-Length in decimal digits and one X-Amz-Target, and no header that
changes where it ends or how it is to be read (`_NOT_PLAIN`). It is complete in itself: nothing that came
before it matters. Everything else, be it wrong or only unusual, is not judged here: aiohttp gets its bytes
as they came. So what is read here must be read in the same way by aiohttp, and by any proxy before us.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

TARGET: Final = "x-amz-target"
LINES_MAX: Final = 64

_BEGINNING: Final = b"POST /"
_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n\r\n"
_VISIBLE: Final = bytes(range(0x20, 0x7F))  # and the blank
_REQUEST_LINE: Final = re.compile(r"POST (/(?:[0-9]{12}/[A-Za-z0-9][A-Za-z0-9_-]*(?:\.fifo)?)?) HTTP/1\.1")
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HOST: Final = re.compile(r"[A-Za-z0-9.:\[\]_-]+")
_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_NOT_PLAIN: Final = re.compile(
    "content-encoding|expect|http2-settings|keep-alive|proxy-.*|sec-.*|te|trailer|transfer-encoding|upgrade"
)


class Plain(NamedTuple):
    target: str  # of the request line
    headers: dict[str, str]  # by their names in lower case
    body_at: int
    end: int  # of the body


class Unread:
    """Why there is no plain request."""


MORE: Final = Unread()  # it may become one: the end of its head has not come yet
OTHER: Final = Unread()  # it is none


def read_head(data: bytes | bytearray, head_bytes_max: int, body_bytes_max: int) -> Plain | Unread:
    """Read the head of the request that `data` begins with."""
    at = data.find(_END)
    if at < 0:
        return MORE if len(data) < head_bytes_max and _may_become_plain(data) else OTHER
    if at > head_bytes_max or not data.startswith(_BEGINNING):
        return OTHER
    head = bytes(data[:at])
    first, *lines = head.decode("latin-1").split("\r\n")
    if head.translate(None, _VISIBLE) != _LINE_END * len(lines):  # nothing else, and no half of a line's end
        return OTHER
    line = _REQUEST_LINE.fullmatch(first)
    headers = _headers(lines)
    if line is None or headers is None or not _HOST.fullmatch(headers.get("host", "")):
        return OTHER
    length = headers.get("content-length", "")
    if TARGET not in headers or not _LENGTH.fullmatch(length) or int(length) > body_bytes_max:
        return OTHER
    body_at = at + len(_END)
    return Plain(line[1], headers, body_at, body_at + int(length))


def _headers(lines: list[str]) -> dict[str, str] | None:
    if len(lines) > LINES_MAX:
        return None
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        known = _KNOWN.get(name) or _lower(name)
        if not colon or not known or known in headers:
            return None
        headers[known] = value.strip(" ")
    connection = headers.get("connection")
    return headers if connection is None or connection.lower() == "keep-alive" else None


def _lower(name: str) -> str:
    """Empty if it is no name, or none of a plain request."""
    lower = name.lower()
    return lower if _NAME.fullmatch(lower) and not _NOT_PLAIN.fullmatch(lower) else ""


def _may_become_plain(data: bytes | bytearray) -> bool:
    """A beginning that nobody will like is not waited with: aiohttp refuses it at once."""
    lines = data.count(b"\r\n")
    returns = data.count(b"\r") - data.endswith(b"\r")
    beginning = bytes(data[: len(_BEGINNING)])
    return _BEGINNING.startswith(beginning) and data.count(b"\n") == lines == returns and data.isascii()


# As SDKs write them; others are looked at letter by letter.
_KNOWN: Final = {
    spelling: name.lower()
    for name in (
        "Accept",
        "Accept-Encoding",
        "Amz-Sdk-Invocation-Id",
        "Amz-Sdk-Request",
        "Authorization",
        "Connection",
        "Content-Length",
        "Content-Type",
        "Host",
        "User-Agent",
        "X-Amz-Content-Sha256",
        "X-Amz-Date",
        "X-Amz-Security-Token",
        "X-Amz-Target",
        "X-Amz-User-Agent",
        "X-Amzn-Query-Mode",
    )
    for spelling in (name, name.lower())
}
