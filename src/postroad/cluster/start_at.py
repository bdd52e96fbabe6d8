"""Where a subscription begins on a partition that it has never seen: `share.auto.offset.reset`.

latest and earliest are Kafka's, `by_duration:P1DT2H` too (so long before now, KIP-1106);
`at:1735689600000` is our own: an instant that stays where it is however late the partition is met.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from postroad.cluster.config_definition import Value

TIME_MS_MAX: Final = 253_402_300_799_999  # the last millisecond of the year 9999
DURATION_MS_MAX: Final = 36_525 * 86_400_000  # a century: longer than any log is kept

_DURATION: Final = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_RIGHT: Final = (
    "latest, earliest, by_duration: with an ISO 8601 duration such as P1DT2H or PT30S, "
    "or at: with milliseconds since 1970"
)


class StartKind(StrEnum):
    LATEST = "latest"
    EARLIEST = "earliest"
    AGO = "by_duration"
    AT = "at"


class StartAt(NamedTuple):
    kind: StartKind
    ms: int = 0  # AGO: so long before now. AT: since 1970

    def timestamp_ms(self, now_ms: int) -> int | None:
        """The first record that is not older than this is where to begin; None for latest and earliest."""
        if self.kind is StartKind.AGO:
            return max(now_ms - self.ms, 0)
        return self.ms if self.kind is StartKind.AT else None


def read_start(text: str) -> StartAt:
    """Raises ValueError, with what would be right."""
    word, _, rest = text.partition(":")
    if text in (StartKind.LATEST, StartKind.EARLIEST):
        return StartAt(StartKind(text))
    if word == StartKind.AGO:
        return StartAt(StartKind.AGO, _duration_ms(rest))
    if word == StartKind.AT:
        return StartAt(StartKind.AT, _instant_ms(rest))
    raise ValueError(_RIGHT)


def start_rule(value: Value) -> str | None:
    """`read_start` as a rule of a definition."""
    try:
        read_start(str(value))
    except ValueError as error:
        return str(error)
    return None


def _duration_ms(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None or found.lastindex is None:
        raise ValueError(_RIGHT)
    days, hours, minutes, seconds, fraction = found.groups(default="0")
    ms = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60_000 + int(seconds) * 1000
    ms += int(fraction.ljust(3, "0")[:3])
    if ms > DURATION_MS_MAX:
        raise ValueError("a duration of a century at most")
    return ms


def _instant_ms(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) > TIME_MS_MAX:
        raise ValueError(_RIGHT)
    return int(text)
