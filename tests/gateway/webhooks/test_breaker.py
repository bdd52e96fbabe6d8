"""Circuit breaker and pace, with a clock that is handed in."""

from __future__ import annotations

from postroad.gateway.webhooks.breaker import FAILURES_MAX, OPEN_FIRST_S, OPEN_MAX_S, Breaker
from postroad.gateway.webhooks.pace import Pace


def opened() -> Breaker:
    breaker = Breaker()
    for _ in range(FAILURES_MAX):
        breaker.failed(0.0)
    return breaker


def test_it_opens_after_failures_in_a_row() -> None:
    breaker = Breaker()
    for _ in range(FAILURES_MAX - 1):
        breaker.failed(0.0)
    breaker.succeeded()
    for _ in range(FAILURES_MAX - 1):
        breaker.failed(0.0)
    assert breaker.allowed(0.0, 8) == 8
    breaker.failed(0.0)
    assert breaker.state(0.0) == "open"
    assert breaker.allowed(0.0, 8) == 0


def test_after_its_time_one_request_is_tried_and_a_success_closes_it() -> None:
    breaker = opened()
    assert breaker.wait_s(0.0) == OPEN_FIRST_S
    assert breaker.allowed(OPEN_FIRST_S, 8) == 1
    breaker.succeeded()
    assert breaker.allowed(OPEN_FIRST_S, 8) == 8


def test_each_failed_try_doubles_its_time_up_to_a_bound() -> None:
    breaker = opened()
    now, waits = 0.0, []
    for _ in range(10):
        waits.append(breaker.wait_s(now))
        now += breaker.wait_s(now)
        breaker.failed(now)
    assert waits[:4] == [OPEN_FIRST_S, OPEN_FIRST_S * 2, OPEN_FIRST_S * 4, OPEN_FIRST_S * 8]
    assert max(waits) == OPEN_MAX_S


def test_what_fails_while_it_is_open_does_not_prolong_it() -> None:
    breaker = opened()
    breaker.failed(OPEN_FIRST_S / 2)
    assert breaker.allowed(OPEN_FIRST_S, 8) == 1


def test_an_endpoint_may_ask_for_time_and_is_closed_afterwards() -> None:
    breaker = Breaker()
    breaker.pause(0.0, 30.0)
    assert breaker.allowed(29.9, 8) == 0
    assert breaker.allowed(30.0, 8) == 8


def test_a_pace_lets_as_many_go_as_its_rate_says() -> None:
    pace = Pace(10.0, now=0.0)
    gone = 0
    for tick in range(1000):
        count = pace.available(tick / 100, 8)
        pace.take(count)
        gone += count
    assert 99 <= gone <= 101


def test_after_a_pause_no_more_than_a_second_s_worth_goes_at_once() -> None:
    pace = Pace(10.0, now=0.0)
    assert pace.available(1000.0, 500) == 10


def test_a_pace_tells_how_long_to_wait() -> None:
    pace = Pace(0.5, now=0.0)
    assert pace.available(0.0, 1) == 1
    pace.take(1)
    assert pace.available(0.0, 1) == 0
    assert pace.wait_s() == 2.0


def test_without_a_rate_everything_goes() -> None:
    pace = Pace(0.0, now=0.0)
    assert pace.available(0.0, 64) == 64
    pace.take(64)
    assert pace.available(0.0, 64) == 64
    assert pace.wait_s() == 0.0
