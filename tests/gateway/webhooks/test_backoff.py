"""How long a message waits after a failed delivery."""

from __future__ import annotations

import pytest

from postroad.gateway.webhooks.backoff import FACTOR_CONFIG, INITIAL_CONFIG, MAX_CONFIG, delay_ms

OWN = {INITIAL_CONFIG: "1000", FACTOR_CONFIG: "10.0", MAX_CONFIG: "50000"}
NONE = {INITIAL_CONFIG: "0", FACTOR_CONFIG: "2.0", MAX_CONFIG: "600000"}


@pytest.mark.parametrize(("attempt", "wait_ms"), [(1, 1000), (2, 2000), (9, 256_000), (99_999, 300_000)])
def test_without_one_of_the_subscription_it_doubles_up_to_five_minutes(attempt: int, wait_ms: int) -> None:
    assert delay_ms(NONE, attempt, 0, 0.0) == wait_ms
    assert wait_ms * 0.8 <= (delay_ms(NONE, attempt, 0, 0.999) or 0) < wait_ms


@pytest.mark.parametrize(("attempt", "own_ms"), [(1, 1000), (2, 10_000), (3, 50_000), (99_999, 50_000)])
def test_the_subscriptions_own_is_left_to_the_node_unless_the_endpoint_asks_for_more(
    attempt: int, own_ms: int
) -> None:
    assert delay_ms(OWN, attempt, 0, 0.5) is None
    assert delay_ms(OWN, attempt, own_ms, 0.5) is None
    assert delay_ms(OWN, attempt, own_ms + 1, 0.5) == own_ms + 1


def test_what_the_endpoint_asks_for_makes_no_wait_shorter() -> None:
    assert delay_ms(NONE, 3, 1, 0.0) == 4000
    assert delay_ms(NONE, 3, 5000, 0.0) == 5000
