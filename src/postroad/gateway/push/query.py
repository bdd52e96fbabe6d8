"""Values of a URL's query, read with care."""

from __future__ import annotations

from collections.abc import Mapping

from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused


def number(query: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """None: not given. Raises Refused."""
    text = query.get(name)
    if text is None:
        return None
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    if not low <= value <= high:
        raise Refused(problems.MALFORMED, f"{name} must be a number from {low:,} to {high:,}.")
    return value


def flag(query: Mapping[str, str], name: str) -> bool:
    """Raises Refused."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise Refused(problems.MALFORMED, f"{name} must be true or false.")
    return text == "true"
