"""Putting one flipped bit right: the CRC of a batch tells which it was.

A CRC is linear: the difference between the one that was stored and the one that is found depends only on
which bits were flipped. No two single bits of a batch make the same difference, nor does any pair of bits
make that of a single one (CRC32C has Hamming distance 4 at these sizes). So a batch with one flipped bit
comes back exactly, one with two is recognised as lost, and with random damage the chance to be wrong is one
in 2^32 for each bit of the batch.
"""

from __future__ import annotations

from typing import Final

from postroad.wire.batch import CRC_START, HEADER_BYTES, LENGTH_END, MAGIC, crc32c

BATCH_BYTES_MAX: Final = 1 << 20  # some 0.8 s in a thread; larger ones are not looked at

_POLYNOMIAL: Final = 0x82F63B78  # CRC32C, reflected
_CRC_AT: Final = 17


def restored(damaged: bytes) -> bytes | None:
    """The batch as it was, if one bit of it was flipped; `damaged` ends where the batch does."""
    if not HEADER_BYTES <= len(damaged) <= BATCH_BYTES_MAX:
        return None
    batch = bytearray(damaged)
    batch[8:12] = (len(batch) - LENGTH_END).to_bytes(4)  # outside the CRC, and known: the length
    batch[16] = MAGIC  # and the format
    difference = int.from_bytes(batch[_CRC_AT:CRC_START]) ^ crc32c(bytes(batch[CRC_START:]))
    if difference.bit_count() > 1:  # one bit: it is the CRC itself
        flipped = _find(difference, len(batch) - CRC_START)
        if flipped is None:
            return None
        batch[len(batch) - 1 - flipped // 8] ^= 1 << flipped % 8
    batch[_CRC_AT:CRC_START] = crc32c(bytes(batch[CRC_START:])).to_bytes(4)
    return bytes(batch)


def _find(difference: int, size: int) -> int | None:
    """Which bit of so many bytes makes this difference, counted from the last byte backwards."""
    table = _TABLE
    changes = [table[1 << bit] for bit in range(8)]  # of each bit of the last byte
    for byte in range(size):
        if difference in changes:
            return 8 * byte + changes.index(difference)
        changes = [table[change & 0xFF] ^ change >> 8 for change in changes]
    return None


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = [_table_entry(byte) for byte in range(256)]
