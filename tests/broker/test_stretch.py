"""Cutting what was acquired out of a stretch of log: nothing is lost, nothing is sent unasked."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from postroad.broker.subscriptions.stretch import RANGE_BYTES, WHOLE_BYTES_MAX, Stretch
from postroad.wire import batch as batches
from postroad.wire.compression import GZIP, NONE
from postroad.wire.records import Record, decode_records, encode_batch


def batch(first: int, count: int, compression: int = NONE, size: int = 20) -> bytes:
    records = [Record(first + n, 1000, None, b"x" * size) for n in range(count)]
    return bytes(encode_batch(records, base_offset=first, compression=compression))


def offsets_in(parts: list[memoryview | bytes]) -> list[int]:
    data = memoryview(b"".join(parts))
    return [
        record.offset
        for position, header in batches.walk(data)
        for record in decode_records(data[position : position + header.size])
    ]


@st.composite
def stretches(draw: st.DrawFn) -> tuple[Stretch, list[tuple[int, int]], int]:
    """Some batches, ascending ranges of which the first begins in them, and a limit."""
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    first = draw(st.integers(0, 100))
    data, offset = b"", first
    for count in counts:
        data += batch(offset, count)
        offset += count
    bounds = draw(st.lists(st.integers(first, offset + 10), min_size=2, max_size=12, unique=True).map(sorted))
    ranges = [(a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=False)]
    if not ranges or ranges[0][0] >= offset:
        ranges = [(first, first)]
    return Stretch(data), ranges, draw(st.integers(0, len(data) + 100))


@given(stretches(), st.booleans())
def test_a_cut_holds_exactly_the_messages_of_the_ranges_up_to_where_it_got(
    given_: tuple[Stretch, list[tuple[int, int]], int], one_at_least: bool
) -> None:
    stretch, ranges, bytes_max = given_
    parts, size, reached = stretch.cut(ranges, bytes_max, one_at_least)
    wanted = [n for first, last in ranges for n in range(first, last + 1) if n < min(reached, stretch.upto)]
    assert offsets_in(parts) == wanted
    cut = sum(first < reached for first, _ in ranges if first < stretch.upto)
    assert size >= sum(map(len, parts)) + RANGE_BYTES * cut
    if one_at_least:
        assert parts, "one batch there is always"
    assert size <= bytes_max or (one_at_least and len(list(batches.walk(memoryview(b"".join(parts))))) == 1)


@given(stretches())
def test_cut_after_cut_comes_to_the_end_of_the_stretch(
    given_: tuple[Stretch, list[tuple[int, int]], int],
) -> None:
    stretch, ranges, bytes_max = given_
    found: list[int] = []
    left = ranges
    while left and left[0][0] < stretch.upto:
        parts, _, reached = stretch.cut(left, bytes_max)
        found += offsets_in(parts)
        assert reached > left[0][0]
        left = [(max(first, reached), last) for first, last in left if last >= reached]
    assert found == [n for first, last in ranges for n in range(first, last + 1) if n < stretch.upto]


def test_whole_batches_leave_as_they_lie_in_the_log_and_as_one_piece() -> None:
    data = batch(0, 3) + batch(3, 3) + batch(6, 3)
    parts, size, reached = Stretch(data).cut([(0, 5)], 1 << 20)
    assert [bytes(part) for part in parts] == [batch(0, 3) + batch(3, 3)]
    assert (size, reached) == (len(batch(0, 3)) * 2 + RANGE_BYTES, 6)


def test_range_that_goes_on_in_the_next_stretch_ends_with_this_one() -> None:
    parts, _, reached = Stretch(batch(0, 4) + batch(4, 4)).cut([(0, 3), (4, 100)], 1 << 20)
    assert offsets_in(parts) == list(range(8))
    assert reached == 8


def test_small_compressed_batch_is_sent_whole_and_a_large_one_is_cut() -> None:
    small = batch(0, 4, GZIP)
    parts, _, _ = Stretch(small).cut([(1, 2)], 1 << 20)
    assert [bytes(part) for part in parts] == [small]
    noise = random.Random(1)
    records = [Record(n, 1000, None, noise.randbytes(5000)) for n in range(40)]
    large = bytes(encode_batch(records, compression=GZIP))
    assert len(large) > WHOLE_BYTES_MAX
    parts, _, _ = Stretch(large).cut([(1, 2)], 1 << 20)
    assert offsets_in(parts) == [1, 2]


def test_cut_ends_where_compaction_took_a_batch_and_holes_tell_which_messages_it_held() -> None:
    stretch = Stretch(batch(10, 5) + batch(20, 5) + batch(40, 5))
    parts, _, reached = stretch.cut([(12, 13), (16, 22)], 10_000)
    assert (offsets_in(parts), reached) == ([12, 13], 16)
    assert stretch.cut([(16, 22)], 10_000) == ([], 0, 16)
    assert stretch.holes([(16, 22), (24, 30), (39, 60)]) == [(16, 19), (25, 30), (39, 39)]
    assert stretch.holes([(0, 2), (9, 10), (20, 24)]) == [(0, 2), (9, 9)]
