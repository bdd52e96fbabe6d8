"""Sharing out what there is: equally, and nobody goes away empty-handed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postroad.queues.fair_share import fair_share, level

COUNTS = st.integers(0, 10_000)


@given(st.integers(1, 50), COUNTS)
def test_f1_members_that_ask_one_after_the_other_get_equal_parts(members: int, available: int) -> None:
    held = [0] * members
    left = available
    for member in range(members):
        if left:
            others = held[:member] + held[member + 1 :]
            held[member] = min(fair_share(available, left, 0, others, others_wait=True), left)
            left -= held[member]
    assert left == 0
    assert max(held) <= -(-available // members)


@given(st.integers(1, 500), st.integers(1, 10_000), COUNTS, st.lists(COUNTS, max_size=20), st.booleans())
def test_f2_share_is_at_least_one_and_at_most_what_is_wanted(
    wanted: int, available: int, held: int, others: list[int], others_wait: bool
) -> None:
    assert 1 <= fair_share(wanted, available, held, others, others_wait) <= wanted


@given(COUNTS, st.lists(COUNTS, min_size=1, max_size=20))
def test_level_takes_just_what_is_available(available: int, held: list[int]) -> None:
    height = level(available, held)
    assert sum(max(height - each, 0) for each in held) >= available
    assert sum(max(height - 1 - each, 0) for each in held) < max(available, 1)


def test_member_that_holds_much_gets_one_while_others_wait_and_more_while_they_do_not() -> None:
    assert fair_share(500, 300, 100, [0, 0, 0], others_wait=True) == 1
    assert fair_share(500, 300, 100, [0, 0, 0], others_wait=False) == 38
    assert fair_share(500, 300, 0, [100, 0, 0], others_wait=True) == 100


def test_member_alone_gets_all_that_it_wants() -> None:
    assert fair_share(500, 400, 1_000, [], others_wait=False) == 400
