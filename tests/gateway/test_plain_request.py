"""Plain requests are few, and each of them is understood by aiohttp in the same way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, HttpVersion11
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.gateway.plain_request import MORE, OTHER, Plain, Unread, read_head

HEAD_MAX, BODY_MAX = 16 * 1024, 1024 * 1024

LINE = b"POST / HTTP/1.1\r\n"
HOST = b"Host: 127.0.0.1:8080\r\n"
TARGET = b"X-Amz-Target: AmazonSQS.SendMessage\r\n"
LENGTH = b"Content-Length: 5\r\n"
SOUND = LINE + HOST + TARGET + LENGTH + b"\r\nhello"


def read(data: bytes) -> Plain | Unread:
    return read_head(data, HEAD_MAX, BODY_MAX)


def test_plain_request_is_read_with_its_bounds() -> None:
    plain = read(SOUND + b"POST / HTTP/1.1")
    assert isinstance(plain, Plain)
    assert SOUND[plain.body_at : plain.end] == b"hello"
    assert plain.target == "/"
    assert plain.headers == {
        "host": "127.0.0.1:8080",
        "x-amz-target": "AmazonSQS.SendMessage",
        "content-length": "5",
    }


@pytest.mark.parametrize(
    "line", [b"POST /000000000000/jobs HTTP/1.1", b"POST /000000000000/jobs-2_b.fifo HTTP/1.1"]
)
def test_queue_may_be_addressed(line: bytes) -> None:
    assert isinstance(read(line + b"\r\n" + HOST + TARGET + LENGTH + b"\r\n"), Plain)


@pytest.mark.parametrize("more", [b"Connection: keep-alive\r\n", b"User-Agent: aws-sdk/1\r\nx-own: \r\n"])
def test_headers_that_change_nothing_are_plain(more: bytes) -> None:
    assert isinstance(read(LINE + HOST + more + TARGET + LENGTH + b"\r\n"), Plain)


def test_beginning_of_a_plain_request_may_become_one() -> None:
    head = SOUND.index(b"\r\n\r\n") + 4
    assert all(read(SOUND[:at]) is MORE for at in range(1, head))


REQUEST_LINES = {
    "another method": b"GET / HTTP/1.1",
    "lower case": b"post / HTTP/1.1",
    "a longer method": b"POSTS / HTTP/1.1",
    "HTTP/1.0": b"POST / HTTP/1.0",
    "HTTP/1.2": b"POST / HTTP/1.2",
    "lower-case protocol": b"POST / http/1.1",
    "two blanks": b"POST  / HTTP/1.1",
    "a tab": b"POST\t/ HTTP/1.1",
    "a blank at the end": b"POST / HTTP/1.1 ",
    "a blank before": b" POST / HTTP/1.1",
    "an empty line before": b"\r\nPOST / HTTP/1.1",
    "absolute form": b"POST http://127.0.0.1/ HTTP/1.1",
    "authority form": b"POST 127.0.0.1:80 HTTP/1.1",
    "asterisk form": b"POST * HTTP/1.1",
    "two slashes": b"POST // HTTP/1.1",
    "a query": b"POST /?Action=SendMessage HTTP/1.1",
    "a fragment": b"POST /#a HTTP/1.1",
    "an escape": b"POST /000000000000/%6aobs HTTP/1.1",
    "dots": b"POST /000000000000/.. HTTP/1.1",
    "another path": b"POST /v1/topics HTTP/1.1",
    "digits of others": "POST /00000000000٠/a HTTP/1.1".encode(),
}
HEADERS = {
    "two lengths": LENGTH + b"Content-Length: 6\r\n",
    "a length twice": LENGTH + LENGTH,
    "a length twice in other letters": LENGTH + b"content-length: 5\r\n",
    "a list of lengths": b"Content-Length: 5, 5\r\n",
    "no length": b"",
    "an empty length": b"Content-Length:\r\n",
    "a plus": b"Content-Length: +5\r\n",
    "a minus": b"Content-Length: -5\r\n",
    "hex": b"Content-Length: 0x5\r\n",
    "an underscore": b"Content-Length: 1_0\r\n",
    "zeros before": b"Content-Length: 05\r\n",
    "blanks within": b"Content-Length: 5 5\r\n",
    "huge": b"Content-Length: 99999999999999999999\r\n",
    "beyond the limit": b"Content-Length: 1048577\r\n",
    "length and chunks": LENGTH + b"Transfer-Encoding: chunked\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n",
    "chunks that are none": LENGTH + b"Transfer-Encoding: xchunked\r\n",
    "chunks behind a blank": LENGTH + b"Transfer-Encoding : chunked\r\n",
    "chunks behind a tab": LENGTH + b"Transfer-Encoding:\tchunked\r\n",
    "a blank before the colon": LENGTH + b"X : a\r\n",
    "a blank before the name": LENGTH + b" X: a\r\n",
    "a folded line": LENGTH + b"X: a\r\n b\r\n",
    "a line that is folded with a tab": LENGTH + b"X: a\r\n\tb\r\n",
    "no colon": LENGTH + b"X\r\n",
    "no name": LENGTH + b": a\r\n",
    "a name that is no token": LENGTH + b"X(a): b\r\n",
    "a name in other letters": LENGTH + "Ä: b\r\n".encode(),
    "a value in other letters": LENGTH + b"X: \xe4\r\n",
    "a line feed alone": LENGTH + b"X: a\nContent-Length: 7\r\n",
    "a carriage return alone": LENGTH + b"X: a\rY: b\r\n",
    "a null byte": LENGTH + b"X: a\0\r\n",
    "a null byte in a name": LENGTH + b"X\0: a\r\n",
    "a delete": LENGTH + b"X: a\x7f\r\n",
    "expect": LENGTH + b"Expect: 100-continue\r\n",
    "upgrade": LENGTH + b"Upgrade: websocket\r\n",
    "connection close": LENGTH + b"Connection: close\r\n",
    "connection names a header": LENGTH + b"Connection: keep-alive, Host\r\n",
    "trailer": LENGTH + b"Trailer: x\r\n",
    "te": LENGTH + b"TE: trailers\r\n",
    "packed": LENGTH + b"Content-Encoding: gzip\r\n",
    "two hosts": LENGTH + b"Host: b\r\n",
    "two targets": LENGTH + TARGET,
    "many lines": LENGTH + b"".join(b"X-%d: a\r\n" % number for number in range(100)),
    "a long head": LENGTH + b"X: " + b"a" * HEAD_MAX + b"\r\n",
}


@pytest.mark.parametrize("line", REQUEST_LINES.values(), ids=REQUEST_LINES)
def test_other_request_lines_are_left_to_aiohttp(line: bytes) -> None:
    assert read(line + b"\r\n" + HOST + TARGET + LENGTH + b"\r\nhello") is OTHER


@pytest.mark.parametrize("lines", HEADERS.values(), ids=HEADERS)
def test_other_headers_are_left_to_aiohttp(lines: bytes) -> None:
    assert read(LINE + HOST + TARGET + lines + b"\r\nhello") is OTHER


@pytest.mark.parametrize("host", [b"", b"Host:\r\n", b"Host: a b\r\n", b"Host: a/b\r\n", b"Host: a@b\r\n"])
def test_request_without_a_clear_host_is_left_to_aiohttp(host: bytes) -> None:
    assert read(LINE + host + TARGET + LENGTH + b"\r\nhello") is OTHER


@pytest.mark.parametrize(
    "beginning",
    [
        b"G",
        b"\r\n",
        b"\x16\x03\x01",
        b"POST / HTTP/1.1\nHost: a\n",
        b"POST / HTTP/1.1\r\nX: a\rb",
        b"POST / HTTP/1.1\r\nX: \xe4",
        b"POST /" + b"a" * HEAD_MAX,
    ],
)
def test_beginning_that_can_become_none_is_not_waited_with(beginning: bytes) -> None:
    assert read(beginning) is OTHER


# --- the same as aiohttp ---------------------------------------------------------------------------

_PIECES = [
    *(line + b"\r\n" for line in REQUEST_LINES.values()),
    *(lines for lines in HEADERS.values() if len(lines) < 200),
    *(LINE, HOST, TARGET, LENGTH, b"\r\n", b"hello"),
    *(b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"0", b"9", b"\x80", b"X-A: b\r\n"),
]


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Sound ones with something in them changed, added or taken away."""
    data = SOUND if draw(st.booleans()) else SOUND.replace(HOST, HOST + draw(st.sampled_from(_PIECES)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        until = at + draw(st.sampled_from([0, 0, 0, 1, 2, 20]))
        data = data[:at] + draw(st.sampled_from([b"", *_PIECES]) | st.binary(max_size=2)) + data[until:]
    return data


@pytest.fixture(scope="module")
def loop() -> Any:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


@settings(max_examples=2000, deadline=None)
@given(data=requests())
def test_whatever_is_plain_is_the_same_request_to_aiohttp(
    loop: asyncio.AbstractEventLoop, data: bytes
) -> None:
    plain = read(data)
    if not isinstance(plain, Plain) or plain.end > len(data):
        return
    parser = HttpRequestParser(
        BaseProtocol(loop), loop, 2**16, max_line_size=HEAD_MAX, max_field_size=HEAD_MAX
    )
    ((message, payload),), upgraded, _ = parser.feed_data(data[: plain.end])
    assert (message.method, message.path, message.version) == ("POST", plain.target, HttpVersion11)
    assert {name.lower(): value for name, value in message.headers.items()} == plain.headers
    assert len(message.headers) == len(plain.headers)
    assert (message.chunked, message.upgrade, message.compression, message.should_close, upgraded) == (
        False,
        False,
        None,
        False,
        False,
    )
    body = data[plain.body_at : plain.end]
    assert payload.is_eof(), "its end is where aiohttp sees it"
    assert (payload.read_nowait() if body else b"") == body
