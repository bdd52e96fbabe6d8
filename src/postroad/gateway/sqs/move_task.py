"""Message move tasks: dead letters go from their queue back to where they came from, or to a queue of choice.

Letters are received as by any consumer, published, and deleted once the copy is durable. So a crash loses
nothing; at worst some letters are sent twice. A task ends when nothing can be received, or when what comes
has died since it began: what fails again at once does not go round in circles.

Tasks live in the gateway that started them. If it ends they end too, and are not listed elsewhere; what they
had not moved is still in its queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from postroad.client.producer import Sent
from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import PostroadError
from postroad.gateway.gateway import Gateway, Message
from postroad.gateway.receiver import Received
from postroad.gateway.sqs.outgoing import DEAD_DEDUP_ID
from postroad.wire.header_names import DEAD, DEAD_TOPIC, DEDUP_ID, DELAY_MS, DELIVER_AT, EXPIRES_AT

RUNNING: Final = "RUNNING"
COMPLETED: Final = "COMPLETED"
CANCELLING: Final = "CANCELLING"
CANCELLED: Final = "CANCELLED"
FAILED: Final = "FAILED"

BATCH: Final = 100
WAIT_MS: Final = 500
LOCK_MS: Final = 60_000
TASKS_MAX: Final = 10  # remembered of one queue
# They held for the message that died.
SPENT: Final = frozenset({DELIVER_AT, DELAY_MS, EXPIRES_AT})

log = logging.getLogger(__name__)


class MoveTask:
    """`target` is a topic, None: each letter's own."""

    def __init__(
        self, gateway: Gateway, source: str, target: str | None, to_move: int, per_second: int | None
    ) -> None:
        self.id = str(uuid4())
        self.source = source
        self.target = target
        self.destination: str | None = None  # the queue that was named
        self.to_move = to_move
        self.per_second = per_second
        self.moved = 0
        self.status = RUNNING
        self.failure: str | None = None
        self.started_ms = gateway.now_ms()
        self._gateway = gateway
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"move {self.source}")

    def cancel(self) -> None:
        """What is under way is seen through."""
        if self.status == RUNNING:
            self.status = CANCELLING

    async def _run(self) -> None:
        try:
            while self.status == RUNNING and await self._move_some():
                await self._pace()
        except PostroadError as error:
            self.status, self.failure = FAILED, str(error)
        except Exception:
            self.status, self.failure = FAILED, "an unexpected error; see the gateway's log"
            log.exception("moving messages of %s", self.source)
        else:
            self.status = COMPLETED if self.status == RUNNING else CANCELLED

    async def _move_some(self) -> bool:
        """False when there is nothing left. Raises PostroadError, and what was not moved is released."""
        wanted = BATCH if self.per_second is None else min(BATCH, self.per_second)
        received = await self._gateway.receive(self.source, wanted, WAIT_MS, LOCK_MS)
        old = [each for each in received if each.message.timestamp <= self.started_ms]
        await self._release([each for each in received if each.message.timestamp > self.started_ms])
        failure = await self._move(old)
        if failure is not None:
            raise failure
        return bool(old)

    async def _move(self, letters: Sequence[Received]) -> PostroadError | None:
        """Each on its own topic; those that could not be published are released. The first error."""
        failure: PostroadError | None = None
        by_topic: dict[str, list[Received]] = {}
        for each in letters:
            by_topic.setdefault(self.target or origin_of(each.message) or each.message.topic, []).append(each)
        for topic, those in by_topic.items():
            outcomes = await self._publish(topic, [_revived(each.message) for each in those])
            sent: list[Received] = []
            unsent: list[Received] = []
            for each, outcome in zip(those, outcomes, strict=True):
                (sent if isinstance(outcome, Sent) else unsent).append(each)
            failure = failure or next((got for got in outcomes if isinstance(got, PostroadError)), None)
            await self._gateway.settle([each.receipt for each in sent], AckType.ACCEPT)
            await self._release(unsent)
            self.moved += len(sent)
        return failure

    async def _publish(self, topic: str, messages: Sequence[Message]) -> list[Sent | PostroadError]:
        """A topic that is gone is not made anew: nobody would read it."""
        try:
            await self._gateway.client.retry(lambda: self._gateway.client.topic(topic))
        except PostroadError as error:
            return [error] * len(messages)
        return await self._gateway.publish(topic, messages)

    async def _release(self, letters: Sequence[Received]) -> None:
        await self._gateway.settle([each.receipt for each in letters], AckType.RELEASE, delay_ms=0)

    async def _pace(self) -> None:
        if self.per_second is not None:
            due_ms = self.started_ms + self.moved * 1000 / self.per_second
            await asyncio.sleep(max(0.0, (due_ms - self._gateway.now_ms()) / 1000))


class MoveTasks:
    """Of all queues, the newest of each first."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._tasks: dict[str, deque[MoveTask]] = {}

    def of(self, source: str) -> Sequence[MoveTask]:
        return self._tasks.get(source, ())

    def running(self, source: str) -> MoveTask | None:
        return next((task for task in self.of(source) if task.status in (RUNNING, CANCELLING)), None)

    def start(self, task: MoveTask) -> None:
        self._tasks.setdefault(task.source, deque(maxlen=TASKS_MAX)).appendleft(task)
        task.start()

    def find(self, task_id: str) -> MoveTask | None:
        for tasks in self._tasks.values():
            for task in tasks:
                if task.id == task_id:
                    return task
        return None

    def stop(self, source: str) -> None:
        """The queue is deleted."""
        for task in self._tasks.pop(source, ()):
            task.cancel()


def origin_of(letter: ShareMessage) -> str | None:
    """The topic where it was before it died."""
    origin = dict(letter.headers).get(DEAD_TOPIC)
    return origin.decode(errors="replace") if origin else None


def _revived(letter: ShareMessage) -> Message:
    """With its old deduplication id it would be taken for a duplicate of what it was."""
    headers: list[tuple[str, bytes | None]] = []
    for name, value in letter.headers:
        if name in (DEDUP_ID, DEAD_DEDUP_ID):
            headers.append((DEDUP_ID, f"{letter.topic}/{letter.partition}/{letter.offset}".encode()))
        elif not name.startswith(DEAD) and name not in SPENT:
            headers.append((name, value))
    return Message(letter.value, letter.key, headers)
