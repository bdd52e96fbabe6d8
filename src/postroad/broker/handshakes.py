"""TLS's handshakes that are under way: bounded in number and time, their signatures made in threads.

A peer that connects and says nothing costs a handshake's time; when too many do, the one that has waited
longest makes room: honest ones take milliseconds.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

from postroad.system.stream import Accepted
from postroad.system.tls_handshake import shake_hands
from postroad.system.tls_stream import TlsStream
from postroad.system.workers import Workers

HANDSHAKE_S: Final = 5.0
HANDSHAKES_MAX: Final = 1000

Finished = Callable[[Accepted, TlsStream], None]
Failed = Callable[[Accepted, str], None]


class Handshakes:
    def __init__(self, workers: Workers) -> None:
        self.done = 0  # so far
        self.failed = 0
        self._workers = workers
        self._running: dict[asyncio.Task[TlsStream], None] = {}

    @property
    def count(self) -> int:
        return len(self._running)

    def begin(self, accepted: Accepted, context: ssl.SSLContext, finished: Finished, failed: Failed) -> None:
        """One of the two is called, and the stream is closed if it is `failed`."""
        if len(self._running) >= HANDSHAKES_MAX:
            oldest = next(iter(self._running))
            del self._running[oldest]  # now: more may come before it has ended
            oldest.cancel()
        task = asyncio.create_task(self._shake(accepted, context), name="tls-handshake")
        self._running[task] = None
        task.add_done_callback(partial(self._ended, accepted, finished, failed))

    async def close(self) -> None:
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _shake(self, accepted: Accepted, context: ssl.SSLContext) -> TlsStream:
        async with asyncio.timeout(HANDSHAKE_S):
            return await shake_hands(accepted.stream, context, run=self._workers.call)

    def _ended(
        self, accepted: Accepted, finished: Finished, failed: Failed, task: asyncio.Task[TlsStream]
    ) -> None:
        self._running.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is None and not task.cancelled():
            self.done += 1
            finished(accepted, task.result())
            return
        self.failed += 1
        accepted.stream.close()
        failed(accepted, _reason(error))


def _reason(error: BaseException | None) -> str:
    if error is None:
        return "TLS: its handshake was given up"
    if isinstance(error, TimeoutError):
        return f"TLS: its handshake took longer than {HANDSHAKE_S:g} s"
    return getattr(error, "strerror", None) or str(error)
