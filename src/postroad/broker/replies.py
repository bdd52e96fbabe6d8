"""How whoever asked for a change hears what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from postroad.errors import ApiError

Reply = Callable[[ApiError | None], None]
"""Called once: when the change is durable (None), or can't be (what the client is told)."""


async def replied(ask: Callable[[Reply], None]) -> None:
    """Await something that replies. Raises the error that it replies with."""
    future: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
    ask(lambda error: None if future.done() else future.set_result(error))
    if (error := await future) is not None:
        raise error
