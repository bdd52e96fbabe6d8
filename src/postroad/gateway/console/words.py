"""Numbers, sizes, times and bytes as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from postroad.markup import Html, tag

NONE: Final = "–"
HIDDEN: Final = "hidden"  # of a payload, with console.payloads = hide
THOUSANDS: Final = "\u202f"  # a narrow space that does not break
SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
SPANS: Final = (("d", 86_400.0), ("h", 3600.0), ("min", 60.0))
TIME_MS_MAX: Final = 253_402_300_799_999


def count(number: float | None) -> str:
    """`12 345`: every digit, so that two of them can be compared."""
    return NONE if number is None else f"{number:,.0f}".replace(",", THOUSANDS)


def rate(number: float | None) -> str:
    """A number for each second, with as many digits as say something."""
    if number is None:
        return NONE
    return count(number) if number >= 100 or number == int(number) else f"{number:.1f}"


def size(number: float | None) -> str:
    if number is None:
        return NONE
    value, unit = float(number), 0
    while value >= 1024 and unit < len(SIZES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {SIZES[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {SIZES[unit]}"


def span(seconds: float | None) -> str:
    """`7 d`, `90 min`, `12 s`, `0.3 s`: rounded to what matters."""
    if seconds is None:
        return NONE
    for unit, length in SPANS:
        if seconds >= 2 * length or seconds == length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"


def span_ms(milliseconds: float | None) -> str:
    if milliseconds is not None and 0 < milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    return span(None if milliseconds is None else milliseconds / 1000)


def moment(milliseconds: int | None) -> Html:
    """A time: in UTC here, and in the reader's own once the page's script has seen it."""
    if milliseconds is None or not 0 <= milliseconds <= TIME_MS_MAX:
        return tag("span", NONE)
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    text = at.strftime("%Y-%m-%d %H:%M:%S")
    return tag("time", f"{text} UTC", datetime=f"{text.replace(' ', 'T')}Z", data_ms=milliseconds)


def plural(number: int, one: str, many: str = "") -> str:
    return f"{count(number)} {one if number == 1 else many or one + 's'}"
