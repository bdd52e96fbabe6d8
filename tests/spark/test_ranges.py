"""Ranges: admission and splitting, by arithmetic alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postroad.spark import ranges
from postroad.spark.ranges import OffsetRange

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=20)


def positions(backlogs: list[int]) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """Start and latest of a topic whose partitions are behind by these."""
    start = {("t", number): number * 7 for number in range(len(backlogs))}
    return start, {
        topic_partition: start[topic_partition] + backlogs[topic_partition[1]] for topic_partition in start
    }


def test_all_is_admitted_within_the_limit() -> None:
    start, latest = positions([10, 20])
    assert ranges.admit_offsets(start, latest, 30) == latest


def test_shares_are_proportional_to_the_backlogs() -> None:
    start, latest = positions([1000, 3000, 0])
    end = ranges.admit_offsets(start, latest, 400)
    assert ranges.backlog(start, end) == {("t", 0): 100, ("t", 1): 300, ("t", 2): 0}


def test_small_partition_is_not_starved_by_a_large_one() -> None:
    start, latest = positions([1_000_000, 1])
    assert ranges.admit_offsets(start, latest, 10)["t", 1] == latest["t", 1]


@given(sizes, st.integers(0, 20_000))
def test_packed_ranges_are_the_same_in_groups_of_one_topic_and_none_could_take_the_next(
    backlogs: list[int], least: int
) -> None:
    parts = [
        OffsetRange(f"t{number // 5}", number, 7, 7 + size) for number, size in enumerate(backlogs) if size
    ]
    groups = ranges.pack(parts, least)
    assert [part for group in groups for part in group] == parts
    assert all(len({part.topic for part in group}) == 1 for group in groups)
    sizes_of = [sum(part.size for part in group) for group in groups]
    assert all(size <= least or len(group) == 1 for size, group in zip(sizes_of, groups, strict=True))
    for (one, size), other in zip(zip(groups, sizes_of, strict=True), groups[1:], strict=False):
        assert one[0].topic != other[0].topic or size + other[0].size > least


@given(sizes, st.integers(1, 20_000))
def test_admission_goes_forward_and_never_far_over_the_limit(backlogs: list[int], limit: int) -> None:
    start, latest = positions(backlogs)
    end = ranges.admit_offsets(start, latest, limit)
    taken = ranges.backlog(start, end)
    assert all(
        start[topic_partition] <= end[topic_partition] <= latest[topic_partition] for topic_partition in start
    )
    assert sum(taken.values()) < limit + len(backlogs)
    assert any(taken.values()) == any(backlogs)


def test_bytes_are_shared_as_the_backlogs_are_large() -> None:
    start, latest = positions([100, 100])
    end = ranges.admit_bytes(start, latest, {("t", 0): 10.0, ("t", 1): 30.0}, 1000)
    assert ranges.backlog(start, end) == {("t", 0): 25, ("t", 1): 25}


def test_record_larger_than_the_limit_is_admitted_alone() -> None:
    start, latest = positions([5])
    assert ranges.admit_bytes(start, latest, {("t", 0): 1e6}, 10)["t", 0] == start["t", 0] + 1


def test_batch_waits_for_enough_or_for_long_enough() -> None:
    start, latest = positions([10])
    assert ranges.is_worth_it(start, latest, 10, 0, 1000)
    assert not ranges.is_worth_it(start, latest, 11, 999, 1000)
    assert ranges.is_worth_it(start, latest, 11, 1000, 1000)


def test_ranges_leave_out_what_is_empty() -> None:
    assert ranges.between({("a", 0): 5, ("b", 1): 5}, {("b", 1): 9, ("a", 0): 5}) == [
        OffsetRange("b", 1, 5, 9)
    ]


def test_long_range_is_cut_into_equal_parts() -> None:
    assert ranges.split([OffsetRange("t", 0, 10, 20)], 1, 4) == [
        OffsetRange("t", 0, 10, 13),
        OffsetRange("t", 0, 13, 16),
        OffsetRange("t", 0, 16, 20),
    ]


def test_more_tasks_are_made_of_the_longest_ranges() -> None:
    parts = ranges.split([OffsetRange("t", 0, 0, 900), OffsetRange("t", 1, 0, 100)], 10, None)
    assert len(parts) == 10
    assert [part.partition for part in parts] == [0] * 9 + [1]


@given(sizes, st.integers(1, 50), st.none() | st.integers(1, 5000))
def test_splitting_loses_and_repeats_nothing(backlogs: list[int], least: int, most: int | None) -> None:
    start, latest = positions(backlogs)
    whole = ranges.between(start, latest)
    parts = ranges.split(whole, least, most)
    for each in whole:
        own = [part for part in parts if part.topic_partition == each.topic_partition]
        bounds = [own[0].start, *(part.until for part in own)]
        assert bounds == sorted(set(bounds))
        assert [part.start for part in own[1:]] == bounds[1:-1]
        assert (bounds[0], bounds[-1]) == (each.start, each.until)
    assert len(parts) >= min(least, sum(backlogs))
    assert most is None or all(part.size <= most for part in parts)
