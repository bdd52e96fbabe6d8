"""Samples in rings: newest last, gaps are gaps, minutes are means, and there is an end to how many."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from postroad.gateway.history.ring import COARSE_SLOTS, FINE_SLOTS, FINE_STEP_S, Ring, SeriesKey

START_S = 1_767_225_600  # a whole minute
IN = SeriesKey("topic", "orders", "in")


def sampled(values: Sequence[float | None], series_max: int = 2000) -> Ring:
    ring = Ring(series_max)
    for slot, value in enumerate(values):
        ring.add(START_S + slot * FINE_STEP_S, {} if value is None else {IN: value})
    return ring


def test_newest_sample_is_last() -> None:
    assert sampled([1, 2, 3]).fine(IN, 3) == [1, 2, 3]
    assert sampled([1, 2, 3]).fine(IN, 2) == [2, 3]


def test_what_was_not_sampled_is_a_gap() -> None:
    assert sampled([1, None, 3]).fine(IN, 4) == [None, 1, None, 3]


def test_a_gap_longer_than_the_ring_leaves_nothing_old() -> None:
    ring = sampled([7] * 10)
    ring.add(START_S + 10 * FINE_SLOTS * FINE_STEP_S, {IN: 1})
    assert ring.fine(IN) == [None] * (FINE_SLOTS - 1) + [1]
    assert [mean for mean in ring.coarse(IN) if mean is not None] == [7]


def test_an_hour_is_kept_in_fine_steps_and_no_more() -> None:
    values = list(range(FINE_SLOTS + 5))
    assert sampled(list(values)).fine(IN) == values[5:]


def test_minutes_are_means_of_what_was_sampled() -> None:
    ring = sampled([1] * 12 + [2, 4, *[None] * 10] + [9])
    assert ring.coarse(IN, 3) == [None, 1, 3]


def test_a_day_is_kept_in_minutes() -> None:
    ring = Ring()
    for minute in range(COARSE_SLOTS + 3):
        ring.add(START_S + minute * 60, {IN: minute})
    assert ring.coarse(IN) == list(range(2, COARSE_SLOTS + 2))


def test_a_full_ring_leaves_out_what_is_new() -> None:
    ring = sampled([1], series_max=1)
    ring.add(START_S + 5, {SeriesKey("topic", "new", "in"): 1, IN: 2})
    assert len(ring) == 1
    assert ring.fine(IN, 2) == [1, 2]


def test_a_series_that_ended_an_hour_ago_makes_room() -> None:
    ring = sampled([1], series_max=1)
    new = SeriesKey("topic", "new", "in")
    ring.add(START_S + FINE_SLOTS * FINE_STEP_S, {new: 5})
    assert ring.fine(new, 1) == [5]
    assert ring.fine(IN) == []


@pytest.mark.parametrize("back_s", [3600, 5])
def test_a_clock_that_was_set_back_breaks_nothing(back_s: int) -> None:
    ring = sampled([1, 2, 3])
    ring.add(START_S - back_s, {IN: 9})
    assert ring.fine(IN, 3) == [1, 2, 9]
