"""What stands in the fields of forms, read. Each raises Refused with what would be right."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from typing import Any, Final

from postroad.gateway.console.page import Form
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused

UNITS_MS: Final = {"ms": 1, "": 1000, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h|d|)")


def refused(text: str) -> Refused:
    return Refused(problems.REFUSED, text)


def not_found(text: str) -> Refused:
    return Refused(problems.NOT_FOUND, text)


def check_typed(form: Form, name: str) -> None:
    if form.get("typed", "").strip() != name:
        raise refused(f"Type the name {name} to confirm.")


def whole_number(text: str, label: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise refused(f"{label}: {text.strip()!r} is not a whole number.") from None


def real_number(text: str, label: str) -> float:
    try:
        return float(text.strip())
    except ValueError:
        raise refused(f"{label}: {text.strip()!r} is not a number.") from None


def span_ms(text: str, label: str) -> int:
    """`30s`, `1.5h`, `2d`; without a unit it is seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise refused(f"{label}: {text.strip()!r} is not a duration such as 30s, 15m, 2h or 7d.")
    return int(float(found[1]) * UNITS_MS[found[2]])


def moment_ms(text: str, label: str) -> int:
    """A time such as 2026-03-01T08:00, in UTC where it names no other zone, or `2h` for so long ago."""
    text = text.strip()
    if _SPAN.fullmatch(text):
        return time.time_ns() // 1_000_000 - span_ms(text, label)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise refused(f"{label}: {text!r} is not a time such as 2026-03-01T08:00, or 2h (ago).") from None
    return int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000)


def json_of(text: str, label: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refused(f"{label}: this is not JSON: {error}.") from None


def lines_of(text: str) -> dict[str, str]:
    """Lines such as `name=value`."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_one, value = line.partition("=")
        if not is_one:
            raise refused(f"{line!r} is not of the form name=value.")
        found[name.strip()] = value.strip()
    return found
