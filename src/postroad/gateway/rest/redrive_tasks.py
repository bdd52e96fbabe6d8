"""Redrives that this gateway runs: dead letters on their way back (`client.redrive`), with their progress.

They live in the gateway that began them, and end with it; what they had not sent back is still among the dead
letters, and another redrive goes on from there. Others don't know of them, which costs nothing but the view:
two redrives of one dead-letter topic share its letters like any two consumers.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from typing import Final, Literal

from postroad.client.redrive import Redrive
from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway

RUNNING_MAX: Final = 16
REMEMBERED_MAX: Final = 1000
ID_BYTES: Final = 8

State = Literal["running", "completed", "cancelled", "failed"]

log = logging.getLogger(__name__)


@dataclass
class RedriveTask:
    """`total` letters were there when it began."""

    id: str
    subscription: str
    dead_letter_topic: str
    dry_run: bool
    began_ms: int
    redrive: Redrive
    state: State = "running"
    total: int = 0
    failure: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class TooManyRedrives(Exception):
    """As many as may run are running."""


class Redrives:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tasks: dict[str, RedriveTask] = {}

    def start(self, subscription: str, topic: str, redrive: Redrive, dry_run: bool) -> RedriveTask:
        """Raises TooManyRedrives."""
        if len(self.running()) >= RUNNING_MAX:
            raise TooManyRedrives
        made = RedriveTask(
            os.urandom(ID_BYTES).hex(), subscription, topic, dry_run, self._gateway.now_ms(), redrive
        )
        self._tasks[made.id] = made
        self._forget_oldest()
        made.task = asyncio.create_task(self._run(made), name=f"redrive {subscription}")
        return made

    def find(self, redrive_id: str) -> RedriveTask | None:
        return self._tasks.get(redrive_id)

    def all(self) -> list[RedriveTask]:
        return list(self._tasks.values())

    def running(self) -> list[RedriveTask]:
        return [task for task in self._tasks.values() if task.state == "running"]

    async def cancel(self, task: RedriveTask) -> None:
        """It has ended when this returns. A letter that was under way may be sent once more by the next."""
        if task.task is not None:
            task.task.cancel()
            await asyncio.gather(task.task, return_exceptions=True)

    async def _run(self, task: RedriveTask) -> None:
        closing = asyncio.create_task(self._gateway.closing.wait())
        work = asyncio.create_task(self._work(task))
        try:
            await asyncio.wait([closing, work], return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            work.cancel()
            await asyncio.gather(closing, work, return_exceptions=True)

    async def _work(self, task: RedriveTask) -> None:
        def note(_: int, total: int) -> None:
            task.total = total

        try:
            await task.redrive.run(note)
            task.state = "completed"
        except asyncio.CancelledError:
            task.state = "cancelled"
        except PostroadError as error:
            task.state, task.failure = "failed", str(error)
        except Exception:
            task.state, task.failure = "failed", "Something went wrong here; the gateway's log tells what."
            log.exception("redrive of %s", task.subscription)

    def _forget_oldest(self) -> None:
        ended = [task.id for task in self._tasks.values() if task.state != "running"]
        for redrive_id in ended[: max(0, len(self._tasks) - REMEMBERED_MAX)]:
            del self._tasks[redrive_id]
