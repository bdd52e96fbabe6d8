"""Durations as people write them."""

from __future__ import annotations

import pytest

from postroad.cli.duration import parse


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("500ms", 500),
        ("30s", 30_000),
        ("15m", 900_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1m1s1ms", 61_001),
    ],
)
def test_durations_are_milliseconds(text: str, ms: int) -> None:
    assert parse(text) == ms


@pytest.mark.parametrize("text", ["", "30", "-1s", "1.5s", "s", "1 s", "1w", "1sm"])
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse(text) is None
