"""Which backups a prune keeps, by their names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from postroad.backups.keep import Keep

NOW_MS = int(datetime(2026, 11, 19, 12, tzinfo=UTC).timestamp() * 1000)
DAYS = ("20260930", "20261001", "20261031", "20261109", "20261112", "20261115", "20261118", "20261119")
NAMES = [f"{day}T120000.000Z-abcdef" for day in DAYS]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        (Keep(), ["20261119"]),
        (Keep(last=3), ["20261115", "20261118", "20261119"]),
        (Keep(last=100), list(DAYS)),
        (Keep(days=1), ["20261118", "20261119"]),
        (Keep(days=7), ["20261112", "20261115", "20261118", "20261119"]),
        (Keep(weekly=2), ["20261115", "20261119"]),
        (Keep(monthly=2), ["20261031", "20261119"]),
        (Keep(monthly=3), ["20260930", "20261031", "20261119"]),
        (Keep(last=2, monthly=2), ["20261031", "20261118", "20261119"]),
    ],
)
def test_rules_keep_what_they_say_and_the_newest_one(keep: Keep, kept: list[str]) -> None:
    assert [name[:8] for name in keep.kept(NAMES, NOW_MS)] == kept


def test_nothing_is_kept_of_nothing() -> None:
    assert Keep(last=3, monthly=1).kept([], NOW_MS) == []


def test_name_of_no_real_day_is_older_than_all() -> None:
    odd = "20269999T999999.999Z-abcdef"
    assert odd not in Keep(days=7).kept([odd, NAMES[-1]], NOW_MS)
