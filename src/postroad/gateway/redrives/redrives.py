"""All redrives: begun here, seen and cancelled from anywhere, carried on when their gateway is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web
from msgspec.structs import replace

from postroad.client.client import Client
from postroad.errors import PostroadError
from postroad.gateway.directory import Directory
from postroad.gateway.redrives.book import Book, Page, read_tasks
from postroad.gateway.redrives.runner import Runner
from postroad.gateway.redrives.task import AlreadyRunning, Kind, Progress, Task, TooMany

if TYPE_CHECKING:
    from postroad.gateway.gateway import Gateway

RUNNING_MAX: Final = 16  # at one gateway
ID_BYTES: Final = 8
LOOK_S: Final = 3.0
# A task whose record has not changed for so long has lost its gateway. By then the locks have ended that it
# may have held on letters (`LOCK_MS` in `sqs/move_task.py`), so whoever goes on finds all that is left.
SILENT_S: Final = 15.0
CANCEL_S: Final = 5.0
ASK_AGAIN_S: Final = 0.2
UNREADABLE: Final = "what was asked for can't be read"

log = logging.getLogger(__name__)


class Redrives:
    """`kinds`: who makes the work of a task, by its kind; each dialect enters its own."""

    def __init__(self, client: Client, directory: Directory, closing: asyncio.Event) -> None:
        self.kinds: dict[str, Kind] = {}
        self._book = Book(client, directory)
        self._closing = closing
        self._id = os.urandom(ID_BYTES).hex()  # of this gateway
        self._runners: dict[str, tuple[Runner, asyncio.Task[None]]] = {}  # by subscription
        self._beginning = asyncio.Lock()
        self._unchanged: dict[str, tuple[str, float]] = {}  # records of others' tasks, and since when

    # --- begun, seen, cancelled

    async def start(
        self, subscription: str, kind: str, request: Any, began_ms: int, total: int = 0, by: str = ""
    ) -> Task:
        """It is written down when this returns. Raises AlreadyRunning, TooMany."""
        async with self._beginning:
            page = await self._book.read(subscription)
            if page.running is not None or subscription in self._runners:
                raise AlreadyRunning
            task = Task(
                os.urandom(ID_BYTES).hex(), kind, began_ms, msgspec.to_builtins(request), owner=self._id,
                progress=Progress(total), by=by,
            )  # fmt: skip
            return await self._carry_out(subscription, task, page.tasks)

    async def of(self, subscription: str) -> list[Task]:
        """The newest first."""
        return self._as_it_is(subscription, await self._book.read(subscription))

    async def all(self) -> list[tuple[str, Task]]:
        """All redrives, each with its subscription."""
        found: list[tuple[str, Task]] = []
        for subscription, text in (await self._book.texts()).items():
            page = Page(read_tasks(text), "")
            found += ((subscription, task) for task in self._as_it_is(subscription, page))
        return found

    async def find(self, task_id: str) -> tuple[str, Task] | None:
        """The redrive with its subscription; None if there is none."""
        for subscription, task in await self.all():
            if task.id == task_id:
                return subscription, next((t for t in await self.of(subscription) if t.id == task_id), task)
        return None

    async def cancel(self, subscription: str, task_id: str) -> Task | None:
        """The redrive as it is afterwards: ended, unless its gateway does not answer in time; None if there
        is none."""
        runner = self._runners.get(subscription)
        if runner is not None and runner[0].task.id == task_id:
            runner[0].cancel()
        elif any(task.id == task_id and not task.has_ended for task in await self.of(subscription)):
            await self._book.ask_to_cancel(subscription, task_id)
        deadline = time.monotonic() + CANCEL_S
        while True:
            found = next((task for task in await self.of(subscription) if task.id == task_id), None)
            if found is None or found.has_ended or time.monotonic() > deadline:
                return found
            await asyncio.sleep(ASK_AGAIN_S)

    async def end(self, subscription: str) -> None:
        """The subscription is about to be deleted."""
        running = (await self._book.read(subscription)).running
        if running is not None:
            await self.cancel(subscription, running.id)

    def _as_it_is(self, subscription: str, page: Page) -> list[Task]:
        """With what is known here and not yet written down."""
        runner = self._runners.get(subscription)
        tasks = list(page.tasks)
        for number, task in enumerate(tasks):
            if runner is not None and runner[0].task.id == task.id:
                tasks[number] = runner[0].task
            elif task.id == page.cancel and not task.has_ended:
                tasks[number] = replace(task, state="cancelling")
        return tasks

    # --- carried out

    async def _carry_out(self, subscription: str, task: Task, others: Sequence[Task]) -> Task:
        if len(self._runners) >= RUNNING_MAX:
            raise TooMany
        work = self.kinds[task.kind](subscription, task)
        await self._book.write(subscription, [task, *others])
        runner = Runner(self._book, subscription, task, work, self._closing)
        running = asyncio.create_task(runner.run(), name=f"redrive {task.id}")
        self._runners[subscription] = runner, running
        running.add_done_callback(lambda _: self._runners.pop(subscription, None))
        return task

    async def finished(self) -> None:
        """What runs here has ended or is handed over, once the gateway is closing."""
        await asyncio.gather(*(running for _, running in self._runners.values()), return_exceptions=True)

    # --- carried on

    async def look_after_others(self) -> None:
        """For ever: tasks that have lost their gateway get this one."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except PostroadError as error:
                log.info("redrives could not be looked for: %s", error)

    async def _look(self) -> None:
        now = time.monotonic()
        unchanged: dict[str, tuple[str, float]] = {}
        for subscription, text in (await self._book.texts()).items():
            running = Page(read_tasks(text), "").running
            if running is None or subscription in self._runners:
                continue
            before = self._unchanged.get(subscription)
            since = before[1] if before is not None and before[0] == text else now
            unchanged[subscription] = text, since
            if not running.owner or now - since >= SILENT_S:
                await self._take_over(subscription, running)
        self._unchanged = unchanged

    async def _take_over(self, subscription: str, seen: Task) -> None:
        async with self._beginning:
            page = await self._book.read(subscription)
            if page.running != seen or seen.kind not in self.kinds or len(self._runners) >= RUNNING_MAX:
                return
            others = page.tasks[1:]
            if page.cancel == seen.id:
                over = replace(seen, state="cancelled", owner="")
                await self._book.write(subscription, [over, *others], clear_cancel=True)
                return
            log.info("the redrive of %s has lost its gateway, and goes on here", subscription)
            try:
                await self._carry_out(subscription, replace(seen, owner=self._id, beat=seen.beat + 1), others)
            except msgspec.ValidationError:
                over = replace(seen, state="failed", owner="", failure=UNREADABLE)
                await self._book.write(subscription, [over, *others])


def context(gateway: Gateway) -> Callable[[web.Application], AsyncIterator[None]]:
    """For the application's `cleanup_ctx`: while it runs, tasks that have lost their gateway are found."""

    async def serve(_: web.Application) -> AsyncIterator[None]:
        looking = asyncio.create_task(gateway.redrives.look_after_others(), name="redrives")
        yield
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        await gateway.redrives.finished()

    return serve
