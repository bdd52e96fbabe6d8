from __future__ import annotations

import pytest

from postroad.wire.subscription_names import default_dead_letter_topic


@pytest.mark.parametrize(
    ("group", "topic"),
    [
        ("orders", "orders.dead"),
        ("orders.eu_1-a", "orders.eu_1-a.dead"),
        ("größe/klein ok", "gr__e_klein_ok.dead"),
        ("x" * 300, "x" * 244 + ".dead"),
    ],
)
def test_dead_letters_have_a_topic_that_may_exist_whatever_the_subscription_is_called(
    group: str, topic: str
) -> None:
    assert default_dead_letter_topic(group) == topic
