from __future__ import annotations

from postroad.log.flipped_bit import restored

from .logs import batch

CRC_COVERED = 21


def flipped(content: bytes, *bits: int) -> bytes:
    damaged = bytearray(content)
    for bit in bits:
        damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_batch_with_one_flipped_bit_comes_back_as_it_was() -> None:
    """But for base offset and leader epoch, which no checksum covers."""
    whole = bytes(batch(3))
    for bit in range(8 * 8, 8 * len(whole)):
        if bit // 8 not in range(12, 16):
            assert restored(flipped(whole, bit)) == whole, f"bit {bit}"


def test_batch_with_two_flipped_bits_is_given_up() -> None:
    whole = bytes(batch(2))
    for first in range(8 * CRC_COVERED, 8 * len(whole), 7):
        for second in range(first + 1, 8 * len(whole), 11):
            assert restored(flipped(whole, first, second)) is None, f"bits {first} and {second}"


def test_what_is_no_batch_is_given_up() -> None:
    assert restored(b"") is None
    assert restored(b"\xa5" * 60) is None
    assert restored(b"\xa5" * 600) is None
