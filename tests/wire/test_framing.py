"""Frames come out as they went in, whatever the pieces; memory follows bytes, not promises."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import ProtocolError
from postroad.wire import framing
from postroad.wire.framing import BUFFER_BYTES_MIN, FrameBuffer


def feed(buffer: FrameBuffer, data: bytes) -> list[bytes]:
    """Give all bytes, in as many reads as the buffer's space asks for; the frames that came out."""
    frames = []
    while data:
        space = buffer.space()
        assert len(space) > 0
        count = min(len(space), len(data))
        space[:count] = data[:count]
        data = data[count:]
        frames += [bytes(frame) for frame in buffer.take(count)]
        if buffer.wrong:
            raise ProtocolError(buffer.wrong)
    return frames


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@given(
    st.lists(st.integers(1, 200_000), max_size=4),
    st.lists(st.integers(3_000, 90_000), min_size=1, max_size=8),
)
def test_frames_survive_any_cutting(sizes: list[int], cuts: list[int]) -> None:
    payloads = [bytes([n % 251]) * size for n, size in enumerate(sizes)]
    stream = b"".join(framed(payload) for payload in payloads)
    buffer = FrameBuffer(1_000_000)
    out: list[bytes] = []
    at = turn = 0
    while at < len(stream):
        step = cuts[turn % len(cuts)]
        out += feed(buffer, stream[at : at + step])
        at += step
        turn += 1
    assert out == payloads
    assert not buffer.partial


def test_many_small_frames_come_from_one_read() -> None:
    buffer = FrameBuffer(1000)
    assert feed(buffer, framed(b"x") * 1000) == [b"x"] * 1000
    assert buffer.capacity == BUFFER_BYTES_MIN


def test_a_declared_length_allocates_nothing() -> None:
    buffer = FrameBuffer(1 << 30)
    assert feed(buffer, struct.pack(">i", 1 << 29) + b"x" * 100) == []
    buffer.space()
    assert buffer.capacity == BUFFER_BYTES_MIN


def test_the_buffer_at_most_doubles_what_was_received() -> None:
    buffer = FrameBuffer(1 << 30)
    received = 0
    feed(buffer, struct.pack(">i", 10_000_000))
    for _ in range(200):
        space = buffer.space()
        buffer.take(min(len(space), 30_000))
        received += min(len(space), 30_000)
        assert buffer.capacity <= max(2 * received, BUFFER_BYTES_MIN)


@pytest.mark.parametrize("length", [0, -1, -(1 << 31), 1001, (1 << 31) - 1])
def test_lengths_out_of_bounds_are_refused(length: int) -> None:
    with pytest.raises(ProtocolError, match="1 to 1000 are allowed"):
        feed(FrameBuffer(1000), struct.pack(">i", length))


@pytest.mark.parametrize(
    ("greeting", "name"),
    [(b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01", "TLS"), (b"SSH-2.0", "SSH")],
)
def test_other_protocols_are_called_by_name(greeting: bytes, name: str) -> None:
    with pytest.raises(ProtocolError, match=f"these bytes are {name}"):
        feed(FrameBuffer(1 << 20), greeting)


def test_frames_before_a_wrong_length_are_still_handed_out() -> None:
    buffer = FrameBuffer(1000)
    stream = framed(b"good") + struct.pack(">i", -5)
    buffer.space()[: len(stream)] = stream
    assert buffer.take(len(stream)) == [b"good"]
    assert buffer.wrong


def test_memory_is_given_back_between_frames_only() -> None:
    buffer = FrameBuffer(1 << 20)
    feed(buffer, framed(b"x" * 500_000))
    grown = buffer.capacity
    feed(buffer, b"\0")
    buffer.shrink()
    assert buffer.capacity == grown
    feed(buffer, b"\0\0\1x")
    buffer.shrink()
    assert buffer.capacity == BUFFER_BYTES_MIN
    assert feed(buffer, framed(b"y")) == [b"y"]


@pytest.mark.parametrize(("came", "missing"), [(0, 0), (3, 0), (4, 100_000), (60_000, 40_004), (100_004, 0)])
def test_what_is_missing_of_a_frame_is_known_once_its_length_is(came: int, missing: int) -> None:
    buffer = FrameBuffer(1_000_000)
    feed(buffer, framed(b"first") + framed(bytes(100_000))[:came])
    assert buffer.missing == missing


@given(st.integers(0, (1 << 32) - 1))
def test_uvarints_come_back(value: int) -> None:
    data = framing.write_uvarint(value)
    assert framing.read_uvarint(memoryview(data), 0) == (value, len(data))


@given(st.binary(max_size=40), st.integers(-(1 << 15), (1 << 15) - 1), st.booleans())
def test_headers_of_any_bytes_are_read_or_refused(data: bytes, client_bytes: int, flexible: bool) -> None:
    frame = memoryview(struct.pack(">hhih", 3, 9, 7, client_bytes) + data)
    with contextlib.suppress(ProtocolError):
        assert framing.REQUEST_HEADER.size <= framing.body_at(frame, client_bytes, flexible) <= len(frame)
        framing.client_id(frame)


def test_a_flexible_header_skips_unknown_tags() -> None:
    data = struct.pack(">hhih", 3, 9, 7, 4) + b"kcat" + b"\x02\x00\x01a\x05\x02bc" + b"BODY"
    assert data[framing.body_at(memoryview(data), 4, True) :] == b"BODY"
    assert framing.client_id(memoryview(data)) == "kcat"
