"""Where a subscription begins: words, durations and instants."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.cluster.start_at import DURATION_MS_MAX, TIME_MS_MAX, StartAt, StartKind, read_start

DAY_MS = 86_400_000
AGO, AT = StartKind.AGO, StartKind.AT


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("latest", StartAt(StartKind.LATEST)),
        ("earliest", StartAt(StartKind.EARLIEST)),
        ("by_duration:PT30S", StartAt(AGO, 30_000)),
        ("by_duration:P1DT2H", StartAt(AGO, DAY_MS + 7_200_000)),
        ("by_duration:P1DT2H3M4.5S", StartAt(AGO, DAY_MS + 7_384_500)),
        ("by_duration:P2D", StartAt(AGO, 2 * DAY_MS)),
        ("by_duration:PT36H", StartAt(AGO, 36 * 3_600_000)),
        ("by_duration:pt1m", StartAt(AGO, 60_000)),
        ("by_duration:PT0S", StartAt(AGO, 0)),
        ("by_duration:PT0.0019S", StartAt(AGO, 1)),
        ("at:0", StartAt(AT, 0)),
        ("at:1735689600000", StartAt(AT, 1_735_689_600_000)),
        (f"at:{TIME_MS_MAX}", StartAt(AT, TIME_MS_MAX)),
    ],
)
def test_a_start_is_read(text: str, start: StartAt) -> None:
    assert read_start(text) == start


@pytest.mark.parametrize(
    "text",
    ["", "Latest", "none", "latest:", "by_duration", "at", "BY_DURATION:PT1S"]
    + [f"by_duration:{text}" for text in ("", "P", "PT", "P1DT", "P1W", "P1Y", "P1M", "-PT1S", "PT-1S", "1d")]
    + [f"by_duration:{text}" for text in ("PT1S ", "PT1,5S", "PT1S1M", "PT.5S", "PT1.S", "PT١S")]
    + [f"at:{text}" for text in ("", "-1", "+1", "now", "1_000", "١", str(TIME_MS_MAX + 1), "1" * 5000)],
)
def test_what_is_no_start_is_refused_with_all_that_would_be(text: str) -> None:
    with pytest.raises(ValueError, match=r"latest, earliest, by_duration: .* at: "):
        read_start(text)


def test_a_duration_may_be_a_century_long() -> None:
    assert read_start("by_duration:P36525D").ms == DURATION_MS_MAX
    with pytest.raises(ValueError, match="century"):
        read_start("by_duration:P36525DT0.001S")


@settings(max_examples=50)
@given(st.integers(0, 36_524), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59_999))
def test_any_duration_is_read_to_the_millisecond(days: int, hours: int, minutes: int, ms: int) -> None:
    text = f"by_duration:P{days}DT{hours}H{minutes}M{ms // 1000}.{ms % 1000:03d}S"
    assert read_start(text).ms == ((days * 24 + hours) * 60 + minutes) * 60_000 + ms


def test_a_duration_is_counted_back_from_now_and_an_instant_stays() -> None:
    assert read_start("by_duration:PT10S").timestamp_ms(now_ms=50_000) == 40_000
    assert read_start("by_duration:PT10S").timestamp_ms(now_ms=5_000) == 0
    assert read_start("at:123").timestamp_ms(now_ms=50_000) == 123
    assert read_start("latest").timestamp_ms(now_ms=50_000) is None
    assert read_start("earliest").timestamp_ms(now_ms=50_000) is None
