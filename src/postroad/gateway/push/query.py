"""Values of a URL's query, read with care."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web


def number(query: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """None: not given. Raises HTTPBadRequest."""
    text = query.get(name)
    if text is None:
        return None
    value = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else -1
    if not low <= value <= high:
        raise web.HTTPBadRequest(text=f"{name} must be a number from {low:,} to {high:,}.\n")
    return value


def flag(query: Mapping[str, str], name: str) -> bool:
    """Raises HTTPBadRequest."""
    text = query.get(name, "false")
    if text not in ("true", "false"):
        raise web.HTTPBadRequest(text=f"{name} must be true or false.\n")
    return text == "true"
