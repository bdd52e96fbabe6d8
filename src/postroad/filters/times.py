"""Times such as `2026-03-01T08:00:30.5+01:00` in milliseconds since 1970. Without a zone they are UTC."""

from __future__ import annotations

import re
from typing import Final

DAY_MS: Final = 86_400_000

_TIME: Final = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"(?P<zone>Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def parse(text: str) -> int | None:
    """None if it is no such time."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (
        int(found[name] or 0) for name in ("year", "month", "day", "hour", "minute", "second")
    )
    is_day = year >= 1 and 1 <= month <= 12 and 1 <= day <= _days_of(year, month)
    if not is_day or hour > 23 or minute > 59 or second > 59:
        return None
    seconds = (hour * 60 + minute) * 60 + second
    fraction_ms = int((found["fraction"] or "").ljust(3, "0")[:3])
    return (
        _days_since_1970(year, month, day) * DAY_MS + seconds * 1000 + fraction_ms - _zone_ms(found["zone"])
    )


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_of(year: int, month: int) -> int:
    return 29 if month == 2 and _is_leap(year) else _DAYS[month - 1]


def _days_since_1970(year: int, month: int, day: int) -> int:
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400
    return days + sum(_days_of(year, each) for each in range(1, month)) + day - 1 - 719_162


def _zone_ms(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-minutes if zone[0] == "-" else minutes) * 60_000
