"""Tasks that somebody owns: named, cancelled and awaited when the node stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from postroad.errors import PostroadError, RequestTimedOut

T = TypeVar("T")

RETRY_FIRST_S: Final = 1.0
RETRY_LONGEST_S: Final = 60.0

log = logging.getLogger(__name__)


class Tasks:
    def __init__(self) -> None:
        self._running: dict[asyncio.Task[Any], None] = {}

    def start(self, work: Coroutine[object, object, T], name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running[task] = None
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task %s failed", task.get_name(), exc_info=error)


async def until_done(work: Callable[[], Awaitable[None]], what: str) -> None:
    """Do it, and where it fails again and again, with growing pauses: one error is not the end of it."""
    pause_s = RETRY_FIRST_S
    while True:
        try:
            await work()
            return
        except RequestTimedOut as error:  # the coordination store is away: nobody has to do anything here
            log.warning("%s: %s; trying again in %g s", what, error, pause_s)
        except (OSError, PostroadError) as error:
            log.error("%s: %s; trying again in %g s", what, error, pause_s)
        except Exception:
            log.exception("%s; trying again in %g s", what, pause_s)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, RETRY_LONGEST_S)
