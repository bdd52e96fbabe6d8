"""The lag of a partition, in seconds, from where its source ended and when that was asked."""

from __future__ import annotations

from postroad.mirrors.lag import ENDS_MAX, Lag


def test_a_copy_that_is_always_a_moment_behind_has_the_lag_of_that_moment() -> None:
    lag = Lag()
    for second in range(1000):
        lag.note(second, 100 * second)
        lag.reach(100 * second - 1)  # the last message is still on its way, each time
        if second > 1:
            assert lag.caught_up_at == second - 1


def test_a_copy_that_stands_still_falls_behind_and_is_known_to_catch_up() -> None:
    lag = Lag()
    for second in range(10_000):
        lag.note(second, 10 * second)
        lag.reach(5_000)
    assert lag.caught_up_at is not None
    assert 490 <= lag.caught_up_at <= 500
    for at in (20_000, 50_000, 99_000):
        lag.reach(at)
        assert at / 10 - 10_000 / ENDS_MAX * 4 <= lag.caught_up_at <= at / 10
    lag.reach(10 * 9_999)
    assert lag.caught_up_at == 9_999


def test_nothing_is_known_before_the_first_end_is_reached() -> None:
    lag = Lag()
    lag.note(1, 7)
    lag.reach(6)
    assert lag.caught_up_at is None
    lag.reach(7)
    assert lag.caught_up_at == 1


def test_a_source_that_ends_earlier_than_before_is_caught_up_with() -> None:
    lag = Lag()
    lag.note(1, 100)
    lag.note(2, 50)
    lag.reach(50)
    assert lag.caught_up_at == 2
