"""Tables, sets of ranges and schedules, against plain dicts and sets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.queues.ranges import RangeSet
from postroad.queues.schedule import Schedule
from postroad.queues.table import Row, Table

pytestmark = pytest.mark.usefixtures("small_chunks")

OFFSETS = st.integers(0, 60)
RANGES = st.tuples(OFFSETS, st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def offsets_of(ranges: list[tuple[int, int]]) -> list[int]:
    return [offset for first, last in ranges for offset in range(first, last + 1)]


def as_dict(rows: list[Row]) -> dict[int, tuple[int, ...]]:
    found = {offset: row[2:] for row in rows for offset in range(row[0], row[1] + 1)}
    assert len(found) == sum(row[1] - row[0] + 1 for row in rows), "rows overlap"
    return found


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["add", "add", "add", "carve", "take", "drop"]), RANGES)))
def test_range_set_is_a_set_of_offsets(steps: list[tuple[str, tuple[int, int]]]) -> None:
    ranges, model = RangeSet(), set[int]()
    for step, (first, last) in steps:
        span = set(range(first, last + 1))
        if step == "add":
            ranges.add(first, last)
            model |= span
        elif step == "carve":
            assert offsets_of([(row[0], row[1]) for row in ranges.carve(first, last)]) == sorted(model & span)
            model -= span
        elif step == "take":
            wanted = sorted(offset for offset in model if offset < last)[: first % 7]
            assert offsets_of(ranges.take(first % 7, last)) == wanted
            model -= set(wanted)
        else:
            ranges.drop_below(first % 20)
            model = {offset for offset in model if offset >= first % 20}
        ranges.check()
        assert offsets_of(list(ranges)) == sorted(model)
        assert offsets_of(ranges.missing(first, last)) == sorted(span - model)
        assert ranges.contains(first) == (first in model)
        assert ranges.first_missing(first) == min(o for o in range(first, 100) if o not in model)
        low, high = ranges.around(first, last)
        assert {*range(low, first), *range(last + 1, high + 1)} <= model
        assert low - 1 not in model
        assert high + 1 not in model


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["insert", "put", "put", "carve", "split"]), RANGES, st.integers(0, 2))
    )
)
def test_table_keeps_the_values_of_every_offset(steps: list[tuple[str, tuple[int, int], int]]) -> None:
    table, model = Table(2), dict[int, tuple[int, ...]]()
    for step, (first, last), value in steps:
        known = {offset: values for offset, values in model.items() if first <= offset <= last}
        if step == "split":
            table.split(first)
        elif step == "carve" or known:
            assert as_dict(table.carve(first, last)) == known
            model = {offset: values for offset, values in model.items() if offset not in known}
        else:
            (table.insert if step == "insert" else table.put)(first, last, value, 7)
            model |= dict.fromkeys(range(first, last + 1), (value, 7))
        table.check()
        assert as_dict(list(table.each())) == model
        assert as_dict(table.pieces(0, 99)) == {offset: model.get(offset, (0, 0)) for offset in range(100)}
        assert [row for row in table.each() if row[1] >= first and row[0] <= last] == table.overlapping(
            first, last
        )
        assert (table.find(first) or ())[2:] == model.get(first, ())


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "add", "add", "remove", "due", "drop"]), st.integers(0, 9), OFFSETS)
    )
)
def test_schedule_hands_out_what_is_due_in_the_order_of_time(steps: list[tuple[str, int, int]]) -> None:
    schedule, model, last = Schedule(), list[tuple[int, int, int]](), 0
    for step, time, number in steps:
        if step == "add":
            # Ranges do not overlap, but come in any order of offsets.
            first = 100 * number + len(model) if number else last + 1
            if any(first <= each[2] and first + 1 >= each[1] for each in model):
                continue
            last = first + 1
            schedule.add(time, first, last)
            model.append((time, first, last))
        elif step == "remove" and model:
            gone = model.pop(number % len(model))
            schedule.remove(gone[0], gone[2])
        elif step == "due":
            due = sorted((each for each in model if each[0] <= time), key=lambda row: (row[0], row[2]))[
                :number
            ]
            assert schedule.take_due(time, number) == [(low, high) for _, low, high in due]
            model = [each for each in model if each not in due]
        elif step == "drop":
            schedule.drop_below(10 * number)
            model = [(at, max(low, 10 * number), high) for at, low, high in model if high >= 10 * number]
        schedule.check()
        assert list(schedule) == sorted(model, key=lambda row: (row[0], row[2]))
        assert schedule.next_at == min((at for at, _, _ in model), default=None)
        assert schedule.overlapping(150, 999) == sorted(
            (each for each in model if each[2] >= 150 and each[1] <= 999), key=lambda row: row[1]
        )
