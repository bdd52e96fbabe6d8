"""Middleware: code around each job and each publish, such as tracing, metrics, or a database's connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postroad.workers.message import Message
    from postroad.workers.publishing import Outgoing


class Middleware:
    """Override what you need. The first one that an app was given is outermost."""

    async def work(self, message: Message, call_next: Callable[[], Awaitable[None]]) -> None:
        """Around a worker's function. What it raises is as if the worker had raised it; whoever does not call
        `call_next` has handled the message."""
        await call_next()

    async def publish(self, outgoing: Outgoing, call_next: Callable[[Outgoing], Awaitable[None]]) -> None:
        """Around the publishing of a message, which may be another one: `outgoing.with_header(…)`."""
        await call_next(outgoing)
