"""ReceiptKey on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.errors import ProtocolError
from postroad.wire import receipt_key as codec


@given(st.integers(-(1 << 15), (1 << 15) - 1), st.binary(min_size=32, max_size=32))
def test_what_is_written_is_read(error: int, key: bytes) -> None:
    response = codec.ReceiptKeyResponse(error, key)
    assert codec.decode_response(codec.encode_response(response, 0), 0) == response


def test_request_is_empty() -> None:
    request = codec.ReceiptKeyRequest()
    assert codec.decode_request(codec.encode_request(request, 0), 0) == request


@given(st.binary(max_size=40))
def test_wrong_bytes_are_a_protocol_error_or_nothing(data: bytes) -> None:
    for decode in (codec.decode_request, codec.decode_response):
        try:
            decode(data, 0)
        except ProtocolError:
            continue


def test_a_key_that_is_cut_off_is_refused() -> None:
    whole = codec.encode_response(codec.ReceiptKeyResponse(0, b"k" * 32), 0)
    for end in range(len(whole) - 1):
        with pytest.raises(ProtocolError):
            codec.decode_response(whole[:end], 0)
