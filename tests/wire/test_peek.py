"""Peek's codec: what is written is read again, and no bytes do harm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import ProtocolError, UnsupportedVersion
from postroad.wire import peek

EXAMPLES = 100

int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(max_size=200)
ranges = st.builds(peek.PeekRange, int64, int64, text, int64, st.none() | text, int64, int32)
requests = st.builds(peek.PeekRequest, text, st.binary(min_size=16, max_size=16), int32, int64, int32)
responses = st.builds(
    peek.PeekResponse,
    st.integers(-(2**15), 2**15 - 1),
    st.none() | text,
    int64,
    int64,
    *[int32] * 5,
    st.lists(ranges, max_size=5),
)


@settings(max_examples=EXAMPLES)
@given(requests)
def test_request_survives_the_wire(request: peek.PeekRequest) -> None:
    assert peek.decode_request(peek.encode_request(request, 0), 0) == request


@settings(max_examples=EXAMPLES)
@given(responses)
def test_response_survives_the_wire(response: peek.PeekResponse) -> None:
    assert peek.decode_response(peek.encode_response(response, 0), 0) == response


def test_the_bytes_are_as_documented() -> None:
    request = peek.PeekRequest("jobs", bytes(range(16)), 3, -1, 100)
    assert peek.encode_request(request, 0) == (
        b"\x05jobs" + bytes(range(16)) + b"\0\0\0\x03" + b"\xff" * 8 + b"\0\0\0\x64" + b"\0"
    )
    held = peek.PeekRange(1, 2, "held", 0, "m", 5, 3)
    response = peek.PeekResponse(0, None, 1, 9, 2, 3, 4, 5, 6, [held])
    counts = b"".join(count.to_bytes(4, "big") for count in (2, 3, 4, 5, 6))
    assert peek.encode_response(response, 0) == (
        b"\0\0" + b"\0" + (1).to_bytes(8, "big") + (9).to_bytes(8, "big") + counts + b"\x02"
        + (1).to_bytes(8, "big") + (2).to_bytes(8, "big") + b"\x05held" + bytes(8) + b"\x02m"
        + (5).to_bytes(8, "big") + (3).to_bytes(4, "big") + b"\0" + b"\0"
    )  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(requests, st.data())
def test_a_cut_request_is_refused(request: peek.PeekRequest, data: st.DataObject) -> None:
    body = peek.encode_request(request, 0)
    with pytest.raises(ProtocolError):
        peek.decode_request(body[: data.draw(st.integers(0, len(body) - 1))], 0)


@settings(max_examples=EXAMPLES)
@given(responses, st.data())
def test_a_cut_response_is_refused(response: peek.PeekResponse, data: st.DataObject) -> None:
    body = peek.encode_response(response, 0)
    with pytest.raises(ProtocolError):
        peek.decode_response(body[: data.draw(st.integers(0, len(body) - 1))], 0)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for decode in (peek.decode_request, peek.decode_response):
        try:
            decode(body, 0)
        except ProtocolError:
            continue


@pytest.mark.parametrize(
    "length", [b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80\x80"]
)
def test_a_length_beyond_the_body_is_refused_before_memory_is_taken(length: bytes) -> None:
    with pytest.raises(ProtocolError):
        peek.decode_request(length + bytes(100), 0)
    with pytest.raises(ProtocolError):
        peek.decode_response(bytes(3 + 36) + length + bytes(100), 0)


def test_null_where_none_is_allowed_is_refused() -> None:
    with pytest.raises(ProtocolError, match="null"):
        peek.decode_request(bytes(50), 0)
    with pytest.raises(ProtocolError, match="null"):
        peek.decode_response(bytes(60), 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    request = peek.PeekRequest("jobs", bytes(16), 0, 7, 10)
    body = peek.encode_request(request, 0)[:-1] + b"\x02\x00\x03abc\x07\x01x"
    assert peek.decode_request(body, 0) == request


def test_other_versions_are_unsupported() -> None:
    with pytest.raises(UnsupportedVersion):
        peek.encode_request(peek.PeekRequest(), 1)
    with pytest.raises(UnsupportedVersion):
        peek.decode_response(b"", 1)


def test_values_that_do_not_fit_are_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="Peek request v0"):
        peek.encode_request(peek.PeekRequest("g", bytes(16), 2**31), 0)
    with pytest.raises(ValueError, match="Peek response v0"):
        peek.encode_response(peek.PeekResponse(ranges=[peek.PeekRange(2**63)]), 0)
