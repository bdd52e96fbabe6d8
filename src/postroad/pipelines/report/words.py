"""Numbers, sizes, times and foreign text as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

KEY_CHARS_MAX: Final = 48
NAME_CHARS_MAX: Final = 60
NOTHING: Final = "–"

_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_THOUSANDS: Final = ("", " k", " M", " G", " T")
_HOUR_S: Final = 3600


def count(number: int | float | None) -> str:
    """`1,234,567`"""
    return NOTHING if number is None else f"{number:,.0f}"


def some(number: int, noun: str) -> str:
    """`1 message`, `1,200 messages`"""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def short(number: float) -> str:
    """`1.2 M`, where there is little room."""
    return _scaled(number, 1000, _THOUSANDS)


def size(number: float | None) -> str:
    """`1.5 KiB`"""
    return NOTHING if number is None else _scaled(number, 1024, tuple(f" {unit}" for unit in _BYTES))


def _scaled(number: float, by: int, units: tuple[str, ...]) -> str:
    topic_partition = 0
    while abs(number) >= by and topic_partition < len(units) - 1:
        number, topic_partition = number / by, topic_partition + 1
    text = f"{number:.1f}" if topic_partition and abs(number) < 10 else f"{number:.0f}"
    return text.removesuffix(".0") + units[topic_partition]


def duration(ms: float | None) -> str:
    """`350 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`"""
    if ms is None:
        return NOTHING
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    seconds = int(ms / 1000)
    for unit_s, unit, below_s, below in ((86_400, "d", _HOUR_S, "h"), (_HOUR_S, "h", 60, "min")):
        if seconds >= unit_s:
            return _two(seconds // unit_s, unit, seconds % unit_s // below_s, below)
    return _two(seconds // 60, "min", seconds % 60, "s")


def rough(ms: float) -> str:
    """One number and one unit, for a scale: `16 ms`, `4 s`, `17 min`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
    return next(f"{ms / unit_ms:.0f} {unit}" for unit_ms, unit in units if ms >= unit_ms)


def _two(large: int, unit: str, small: int, below: str) -> str:
    return f"{large:,} {unit}" + (f" {small} {below}" if small else "")


def percent(part: float, whole: float) -> str:
    """`31 %`; what is not nothing is not called so."""
    if not whole:
        return NOTHING
    share = 100 * part / whole
    if share == 0:
        return "0 %"
    return "< 0.1 %" if share < 0.1 else f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


def times(ratio: float) -> str:
    return f"{ratio:.1f}×"


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def period(first: datetime, last: datetime) -> str:
    """The day is said twice only if there are two."""
    end = last.strftime("%H:%M:%S") if first.date() == last.date() else moment(last)
    return f"{moment(first)} to {end} UTC"


def key(raw: bytes) -> str:
    """As text if it is one that can be shown, otherwise in hex; long ones are cut."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = ""
    if not raw:
        return "(empty)"
    if not text.isprintable() or not text.strip():
        text = "0x" + raw.hex()
    return _cut(text, KEY_CHARS_MAX, f" ({size(len(raw))})")


def name(text: str | None) -> str:
    """What others called something. Characters that are not to be seen, or turn the text around, are not."""
    if not text:
        return NOTHING
    return _cut("".join(c if c.isprintable() else "�" for c in text), NAME_CHARS_MAX, "")


def _cut(text: str, most: int, note: str) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…{note}"
