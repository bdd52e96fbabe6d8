"""Frames that are not masked are found, however they arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postroad.gateway.masks import MaskCheck


def frame(length: int, masked: bool = True) -> bytes:
    bit = 0x80 if masked else 0
    if length < 126:
        head = bytes([0x82, bit | length])
    elif length < 1 << 16:
        head = bytes([0x82, bit | 126]) + length.to_bytes(2)
    else:
        head = bytes([0x82, bit | 127]) + length.to_bytes(8)
    return head + b"mask" * masked + bytes(length)


@given(
    lengths=st.lists(st.sampled_from([0, 1, 2, 125, 126, 127, 300, 65_535, 65_536]), max_size=5),
    bad=st.none() | st.integers(0, 5),
    cuts=st.lists(st.integers(0, 200_000), max_size=20),
)
def test_one_frame_without_a_mask_is_found_wherever_bytes_are_cut(
    lengths: list[int], bad: int | None, cuts: list[int]
) -> None:
    data = b"".join(frame(length, masked=index != bad) for index, length in enumerate(lengths))
    ends = sorted(min(cut, len(data)) for cut in cuts)
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    check = MaskCheck()
    passed = all(check.passes(piece) for piece in pieces if piece)
    assert passed == (bad is None or bad >= len(lengths))
