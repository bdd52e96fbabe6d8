"""One task as this gateway carries it out, and the beat by which others see that it does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from postroad.errors import PostroadError
from postroad.gateway.redrives.book import Book, Page
from postroad.gateway.redrives.task import TEXT_MAX, Task, Work

BEAT_S: Final = 2.0
FIRST_BEAT_S: Final = 0.3  # another may have begun at the same moment
STOP_S: Final = 4.0  # what is under way has so long; a gateway that ends has 5 s
UNEXPECTED: Final = "an unexpected error; the gateway's log tells which"

log = logging.getLogger(__name__)


class Runner:
    """`run` until the task has ended, another gateway has it, or this one ends and hands it over."""

    def __init__(self, book: Book, subscription: str, task: Task, work: Work, closing: asyncio.Event) -> None:
        self._book = book
        self._subscription = subscription
        self._task = task
        self._work = work
        self._closing = closing
        self._cancelled = asyncio.Event()
        self._is_mine = True

    @property
    def task(self) -> Task:
        """The task as it is now, a little ahead of what is written down."""
        state = self._task.state
        if state == "running" and self._cancelled.is_set():
            state = "cancelling"
        return replace(self._task, state=state, progress=self._work.progress())

    def cancel(self) -> None:
        self._cancelled.set()

    async def run(self) -> None:
        working = asyncio.create_task(self._work.run(), name=f"redrive {self._subscription}")
        ends = [asyncio.create_task(event.wait()) for event in (self._closing, self._cancelled)]
        try:
            await self._watch(working, ends)
            await self._stop(working)
        finally:
            for each in (working, *ends):
                each.cancel()
        if self._is_mine:
            await self._conclude(working)

    async def _watch(self, working: asyncio.Task[bool], ends: Sequence[asyncio.Task[bool]]) -> None:
        """Return when there is a reason to stop."""
        pause_s = FIRST_BEAT_S
        while True:
            done, _ = await asyncio.wait(
                [working, *ends], timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
            )
            if done or not self._is_mine:
                return
            pause_s = BEAT_S
            try:
                await self._beat()
            except PostroadError as error:
                log.info("the redrive of %s can't tell how far it is: %s", self._subscription, error)

    async def _stop(self, working: asyncio.Task[bool]) -> None:
        if not working.done():
            self._work.stop()
            await asyncio.wait([working], timeout=STOP_S)
        working.cancel()  # no effect on one that has ended
        await asyncio.gather(working, return_exceptions=True)

    async def _beat(self) -> None:
        page = await self._page_if_mine()
        if page is None:
            return
        if page.cancel == self._task.id:
            self._cancelled.set()
        self._task = replace(self._task, beat=self._task.beat + 1, progress=self._work.progress())
        await self._book.write(self._subscription, [self._task, *page.tasks[1:]])

    async def _page_if_mine(self) -> Page | None:
        page = await self._book.read(self._subscription)
        found = page.running
        self._is_mine = found is not None and (found.id, found.owner) == (self._task.id, self._task.owner)
        if not self._is_mine:
            log.info("the redrive of %s is not this gateway's any more", self._subscription)
        return page if self._is_mine else None

    async def _conclude(self, working: asyncio.Task[bool]) -> None:
        """The last word; without it another gateway will go on, and soon find the end."""
        over = _concluded(self.task, working, self._cancelled.is_set())
        try:
            page = await self._page_if_mine()
            if page is not None:
                tasks = [over, *page.tasks[1:]]
                await self._book.write(self._subscription, tasks, clear_cancel=over.has_ended)
                self._task = over
        except PostroadError as error:
            log.warning("the end of the redrive of %s can't be written down: %s", self._subscription, error)


def _concluded(task: Task, working: asyncio.Task[bool], cancelled: bool) -> Task:
    """What has become of it. Stopped and not cancelled, it is left to another gateway."""
    error = None if working.cancelled() else working.exception()
    if isinstance(error, PostroadError):
        return replace(task, state="failed", owner="", failure=str(error)[:TEXT_MAX])
    if error is not None:
        log.error("redrive %s", task.id, exc_info=error)
        return replace(task, state="failed", owner="", failure=UNEXPECTED)
    if not working.cancelled() and working.result():
        return replace(task, state="completed", owner="")
    return replace(task, state="cancelled" if cancelled else "running", owner="")
