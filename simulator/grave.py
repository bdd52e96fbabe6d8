"""What is left of a process that has ended.

Its tasks are kept as they were: a coroutine that is dropped runs its `finally` blocks, and the dead must not
do anything. When the world is over they are closed one by one, where it can disturb nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

Close = Callable[[], object]


class Grave:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tasks: list[asyncio.Task[Any]],
        generators: list[AsyncGenerator[Any, Any]],
    ) -> None:
        self.loop = loop
        self._tasks = tasks
        self._generators = generators

    def bury(self) -> bool:
        """Close what was suspended; whether all of it is closed.

        Whatever it raises is of no interest: its process is dead. A coroutine that waits once more while it
        is closed is closed by the interpreter when nobody holds it any more; what that raises is reported to
        `sys.unraisablehook`.
        """
        closed = True
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            coroutine: Any = task.get_coro()
            if coroutine is not None:
                closed &= _quietly(coroutine.close)
        for generator in self._generators:
            closed &= _quietly(lambda found=generator: found.aclose().send(None))  # type: ignore[misc]
        self._tasks.clear()
        self._generators.clear()
        return closed


def _quietly(close: Close) -> bool:
    try:
        close()
    except StopIteration:
        return True
    except BaseException:
        return False
    return True
