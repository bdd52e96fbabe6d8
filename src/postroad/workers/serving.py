"""A process that runs an app's workers until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING, Final

from postroad import process

if TYPE_CHECKING:
    from postroad.workers.app import App

SIGNAL_BASE: Final = 128  # what shells add to the number of the signal that ended a process

log = logging.getLogger("postroad.worker")


def serve(app: App, *, ends_with_stdin: bool = False) -> None:
    """Until SIGTERM or Ctrl-C: then the jobs that run are finished. A second signal cancels them, a third
    ends the process. `ends_with_stdin`: the end of standard input counts as a signal, too."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signals = _Signals(app)
    with process.event_loop() as runner:
        runner.run(_serve(app, signals, ends_with_stdin))
        if signals.count > 1:
            signals.end_process()  # threads that still run would be waited for


class _Signals:
    def __init__(self, app: App) -> None:
        self.count = 0
        self._app = app
        self._last = signal.SIGTERM

    def take(self, number: signal.Signals) -> None:
        self.count += 1
        self._last = number
        if self.count == 1:
            log.info("stopping: the jobs that run are finished; stop once more to cancel them")
            self._app.stop()
        elif self.count == 2:
            log.warning("cancelling the jobs that run: their messages come again")
            self._app.cancel()
        else:
            self.end_process()

    def end_process(self) -> None:
        logging.shutdown()
        os._exit(SIGNAL_BASE + self._last)


async def _serve(app: App, signals: _Signals, ends_with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.take, number)
    orphaned = asyncio.Event()
    if ends_with_stdin:
        process.end_with_stdin(orphaned)
    watching = asyncio.create_task(_stop_when(orphaned, signals))
    log.info("working on %s", ", ".join(worker.subscription for worker in app.workers))
    try:
        await app.work()
    finally:
        watching.cancel()
        await app.close()


async def _stop_when(orphaned: asyncio.Event, signals: _Signals) -> None:
    await orphaned.wait()
    signals.take(signal.SIGTERM)
