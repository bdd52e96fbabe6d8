"""Waiting for something to become true, with a deadline instead of a sleep."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0  # far above what anything here takes; it only bounds a failure


def until(
    probe: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S, pause_s: float = 0.02
) -> T:
    """The first true value of `probe()`; an AssertionError that names `what` after the deadline."""
    deadline = time.monotonic() + patience_s
    while True:
        value = probe()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {patience_s:g} s: {what}; last seen: {value!r}"
        time.sleep(pause_s)


async def until_async(
    probe: Callable[[], Any], what: str, patience_s: float = PATIENCE_S, pause_s: float = 0.02
) -> Any:
    """`until` on an event loop; `probe` may be a coroutine function."""
    deadline = time.monotonic() + patience_s
    while True:
        answer = probe()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {patience_s:g} s: {what}; last seen: {value!r}"
        await asyncio.sleep(pause_s)
