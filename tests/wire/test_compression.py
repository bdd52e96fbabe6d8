"""Compression: both ways, what other implementations write, and hostile input with bounded memory."""

from __future__ import annotations

import contextlib
import gzip
import os
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import CorruptMessage, MessageTooLarge, UnsupportedCompressionType
from postroad.wire import compression
from postroad.wire.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, compress, decompress

CODECS = range(len(NAMES))
MIB = 1024 * 1024


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@pytest.mark.parametrize("size", [0, 1, 100, 32 * 1024, 32 * 1024 + 1, 64 * 1024, 300_000])
def test_what_goes_in_comes_out(codec: int, size: int) -> None:
    for data in (os.urandom(size), b"postroad " * (size // 9)):
        assert decompress(codec, compress(codec, data), MIB) == data
        assert decompress(codec, memoryview(compress(codec, memoryview(data))), MIB) == data


@settings(max_examples=100, deadline=None)
@given(codec=st.sampled_from(CODECS), data=st.binary(max_size=5000))
def test_any_bytes_survive_any_codec(codec: int, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@settings(max_examples=300, deadline=None)
@given(codec=st.sampled_from(CODECS[1:]), data=st.binary(max_size=300))
def test_arbitrary_bytes_give_only_clean_errors(codec: int, data: bytes) -> None:
    with contextlib.suppress(CorruptMessage, MessageTooLarge):
        decompress(codec, data, MIB)


@settings(max_examples=300, deadline=None)
@given(codec=st.sampled_from(CODECS[1:]), cut=st.integers(0, 2000), flip=st.integers(0, 2000))
def test_damaged_bytes_give_only_clean_errors(codec: int, cut: int, flip: int) -> None:
    packed = bytearray(compress(codec, bytes(range(256)) * 40))
    packed[flip % len(packed)] ^= 0x41
    with contextlib.suppress(CorruptMessage, MessageTooLarge):
        decompress(codec, packed[: 1 + cut % len(packed)], MIB)


def test_gzip_of_several_members_is_read_whole() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_raw_snappy_is_read_as_well_as_framed() -> None:
    data = b"from a client that does not frame " * 100
    assert decompress(SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data


def test_snappy_is_written_in_the_framing_of_snappy_java() -> None:
    packed = compress(SNAPPY, b"x" * 40_000)
    assert packed[:16] == b"\x82SNAPPY\0" + b"\0\0\0\1" * 2
    first = int.from_bytes(packed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(packed[20 : 20 + first]) == 32 * 1024


def test_lz4_is_written_with_independent_blocks_because_java_reads_no_others() -> None:
    packed = compress(LZ4, b"x" * 200_000)
    flags = packed[4]
    assert flags >> 6 == 1
    assert flags & 0x20, "block independence"
    assert not flags & 0x08, "no content size, which old readers refuse"


def test_lz4_of_other_writers_is_read_too() -> None:
    data = b"dependent blocks " * 20_000
    assert decompress(LZ4, bytes(cramjam.lz4.compress(data, level=0))) == data


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_output_may_reach_the_limit_but_not_pass_it(codec: int) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, 100_000)) == 100_000
    with pytest.raises(MessageTooLarge, match="99,999"):
        decompress(codec, packed, 99_999)


@pytest.mark.parametrize("codec", [GZIP, LZ4, ZSTD], ids=["gzip", "lz4", "zstd"])
def test_a_bomb_is_refused_with_flat_memory(codec: int) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    tracemalloc.start()
    try:
        with pytest.raises(MessageTooLarge):
            decompress(codec, bomb, 2 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 3.5 * MIB
    finally:
        tracemalloc.stop()


def test_a_snappy_length_that_lies_allocates_nothing() -> None:
    lie = b"\xff\xff\xff\x2f" + b"\x00a"  # claims some 100 MB in two bytes
    tracemalloc.start()
    try:
        with pytest.raises(CorruptMessage, match="larger than snappy"):
            decompress(SNAPPY, lie)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_blocks_of_framed_snappy_share_one_limit() -> None:
    packed = compress(SNAPPY, bytes(10 * 32 * 1024))
    with pytest.raises(MessageTooLarge):
        decompress(SNAPPY, packed, 5 * 32 * 1024)


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_unknown_codecs_are_refused_both_ways(codec: int) -> None:
    with pytest.raises(UnsupportedCompressionType):
        compress(codec, b"")
    with pytest.raises(UnsupportedCompressionType):
        decompress(codec, b"")


def test_names_lead_to_ids() -> None:
    assert [compression.codec_of(name) for name in NAMES] == [NONE, GZIP, SNAPPY, LZ4, ZSTD]
    with pytest.raises(UnsupportedCompressionType, match="'brotli' is not one of none, gzip"):
        compression.codec_of("brotli")
