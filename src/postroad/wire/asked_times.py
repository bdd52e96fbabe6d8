"""Times that a message's headers ask for: what can be read of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from postroad.wire.header_names import DELAY_MS, DELIVER_AT, EXPIRES_AT

DIGITS_MAX: Final = 15
TIME_HEADERS: Final = (DELIVER_AT, DELAY_MS, EXPIRES_AT)
_SHOWN_MAX: Final = 40


def read_time(value: bytes) -> int | None:
    """ASCII digits, 15 at most; None for anything else."""
    return int(value) if value.isdigit() and len(value) <= DIGITS_MAX else None


def unreadable_time(headers: Iterable[tuple[str, bytes | None]]) -> str | None:
    """What is wrong with the first time among the headers that can't be read; None if all can."""
    for name, value in headers:
        if name in TIME_HEADERS and (value is None or read_time(value) is None):
            given = "null" if value is None else repr(value[:_SHOWN_MAX].decode(errors="replace"))
            return f"{name} is {given}; it must be milliseconds in up to {DIGITS_MAX} digits"
    return None
