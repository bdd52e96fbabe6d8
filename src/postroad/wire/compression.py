"""The four compressions of a record batch, each way, with a hard cap on what may come out.

    id  name    what is written                                   what is read
    0   none    the bytes                                         the bytes
    1   gzip    one member, level 6                               one or more members
    2   snappy  snappy-java's framing of blocks of 32 KiB         that framing, or one raw block
    3   lz4     a frame of independent blocks of 64 KiB           any lz4 frame
    4   zstd    one frame, level 3                                one or more frames

Why by hand what a library offers: Java's consumer refuses lz4 frames whose blocks depend on each
other (cramjam writes those), and it knows no snappy but snappy-java's own framing:

    82 "SNAPPY" 00 | int32 1 (version) | int32 1 (oldest compatible) | { int32 length, raw block } …

Nothing is allocated from a length that a peer declared without a check: output goes into a buffer
that grows by factors up to `limit`, and no further. A bomb costs `limit` bytes for a moment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import cramjam

from postroad.errors import CorruptMessage, MessageTooLarge, UnsupportedCompressionType

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")

# What could not have been sent uncompressed (Kafka's socket.request.max.bytes) need not be unpacked.
OUTPUT_BYTES_MAX: Final = 100 * 1024 * 1024

Data: TypeAlias = bytes | bytearray | memoryview

_GZIP_LEVEL: Final = 6
_ZSTD_LEVEL: Final = 3
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\0\0\0\x01\0\0\0\x01"
_SNAPPY_BLOCK_BYTES: Final = 32 * 1024
_SNAPPY_RATIO_MAX: Final = 24  # the densest element is 3 bytes for 64; a larger claim is a lie
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")  # independent blocks of 64 KiB, no checksums
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_LZ4_STORED: Final = 0x80000000
_LZ4_END: Final = b"\0\0\0\0"
_FIRST_GUESS: Final = 6  # batches of text shrink to about a fifth
_GROWTH: Final = 4
_GUESS_BYTES_MIN: Final = 16 * 1024


def compress(codec: int, data: Data) -> Data:
    """`data` packed as Kafka's clients expect it; UnsupportedCompressionType for an unknown codec. `data`
    itself, and no copy, where nothing is to be packed."""
    if codec == NONE:
        return data
    pack = _PACKERS.get(codec)
    if pack is None:
        raise UnsupportedCompressionType()
    return pack(data)


def decompress(codec: int, data: Data, limit: int = OUTPUT_BYTES_MAX) -> bytes:
    """What was packed. CorruptMessage if it can't be read, MessageTooLarge if it is above `limit`."""
    if codec == NONE:
        if len(data) > limit:
            raise _too_large(limit)
        return bytes(data)
    if codec == SNAPPY:
        return _snappy_unpack(memoryview(data), limit)
    library = _UNPACKERS.get(codec)
    if library is None:
        raise UnsupportedCompressionType()
    return _unpack(library.decompress_into, data, limit)


def codec_of(name: str) -> int:
    """The id for a name such as a `compression.type`."""
    if name not in NAMES:
        raise UnsupportedCompressionType(f"{name!r} is not one of {', '.join(NAMES)}.")
    return NAMES.index(name)


def _unpack(decompress_into: Callable[[Any, Any], int], data: Data, limit: int) -> bytes:
    """Try with a guess at the size; where that is too small, again with more, up to `limit`."""
    size = min(limit, max(_GUESS_BYTES_MIN, len(data) * _FIRST_GUESS))
    while (output := _unpack_into(decompress_into, data, size)) is None:
        if size >= limit:
            raise _too_large(limit)
        size = min(limit, size * _GROWTH)
    return output


def _unpack_into(decompress_into: Callable[[Any, Any], int], data: Data, size: int) -> bytes | None:
    """What was packed, or None if it is larger than `size`."""
    output = bytearray(size)
    try:
        length = decompress_into(data, output)
    except cramjam.DecompressionError as error:
        if "write whole buffer" in str(error):
            return None
        raise CorruptMessage(f"The batch can't be unpacked: {error}.") from None
    return bytes(memoryview(output)[:length])


def _too_large(limit: int) -> MessageTooLarge:
    return MessageTooLarge(f"The batch unpacks to more than {limit:,} bytes.")


def _gzip_pack(data: Data) -> bytes:
    return bytes(cramjam.gzip.compress(data, level=_GZIP_LEVEL))


def _zstd_pack(data: Data) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _lz4_pack(data: Data) -> bytes:
    parts = [_LZ4_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        block = view[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (len(packed).to_bytes(4, "little"), packed)
        else:
            parts += ((len(block) | _LZ4_STORED).to_bytes(4, "little"), bytes(block))
    parts.append(_LZ4_END)
    return b"".join(parts)


def _snappy_pack(data: Data) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        packed = bytes(cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        parts += (len(packed).to_bytes(4, "big"), packed)
    return b"".join(parts)


def _snappy_unpack(data: memoryview, limit: int) -> bytes:
    blocks = [data]
    if bytes(data[: len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
        blocks = _xerial_blocks(data)
    output = bytearray()
    for block in blocks:
        output += _snappy_block(block)
        if len(output) > limit:
            raise _too_large(limit)
    return bytes(output)


def _xerial_blocks(data: memoryview) -> list[memoryview]:
    blocks: list[memoryview] = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4
        if position + length > len(data):
            raise CorruptMessage("A snappy block reaches past the end of its batch.")
        blocks.append(data[position : position + length])
        position += length
    return blocks


def _snappy_block(block: memoryview) -> bytearray:
    """At most 24 times the block: what it claims beyond that is refused before anything is allocated."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_RATIO_MAX:
            raise CorruptMessage("A snappy block claims to be larger than snappy can pack.")
        output = bytearray(size)
        cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise CorruptMessage(f"The batch can't be unpacked: {error}.") from None
    return output


_PACKERS: Final[dict[int, Callable[[Data], bytes]]] = {
    GZIP: _gzip_pack,
    SNAPPY: _snappy_pack,
    LZ4: _lz4_pack,
    ZSTD: _zstd_pack,
}
_UNPACKERS: Final[dict[int, Any]] = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}
