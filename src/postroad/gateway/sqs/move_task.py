"""Message move tasks: dead letters go from their queue back to where they came from, or to a queue of choice.

Letters are received as by any consumer, published, and deleted once the copy is durable. So a crash loses
nothing; at worst some letters are sent twice. A task ends when nothing is left to be received, or when what
comes has died since it began: what fails again at once does not go round in circles. What goes back to where
it came from is for the queue's own subscription (`postroad-for`): others of that topic have done with it.

Who carries a task out, and who goes on with it, is the business of `redrives/`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from postroad.client import subscriptions
from postroad.client.producer import Sent
from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import (
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    PostroadError,
)
from postroad.gateway.gateway import Gateway, Message
from postroad.gateway.receiver import Received
from postroad.gateway.redrives import Progress, Task
from postroad.gateway.security.access import Access
from postroad.gateway.security.rights import WRITE
from postroad.gateway.sqs.outgoing import DEAD_DEDUP_ID
from postroad.wire.header_names import (
    DEAD_SUBSCRIPTION,
    DEAD_TOPIC,
    DEDUP_ID,
    DELAY_MS,
    DELIVER_AT,
    EXPIRES_AT,
    FOR,
    tells_of_death,
)

KIND: Final = "sqs"
BATCH: Final = 100
WAIT_MS: Final = 500
PATIENCE_S: Final = 30.0  # while letters are there and none comes
# Ample for a batch, and over before another gateway goes on with the task of one that died (`SILENT_S`).
LOCK_MS: Final = 10_000
# They held for the message that died.
SPENT: Final = frozenset({DELIVER_AT, DELAY_MS, EXPIRES_AT, FOR})


class MoveRequest(Struct, omit_defaults=True):
    """`target` is a topic, None: each letter's own; `destination` the queue that was named."""

    target: str | None = None
    destination: str | None = None
    per_second: int | None = None


class Move:
    """The work of a move task. `source` is the dead-letter queue."""

    def __init__(self, gateway: Gateway, source: str, task: Task) -> None:
        request = msgspec.convert(task.request, MoveRequest)
        self._gateway = gateway
        self._by = task.by
        self._source = source
        self._target = request.target
        self._per_second = request.per_second
        self._began_ms = task.began_ms
        self._total = task.progress.total
        self._moved = task.progress.sent
        self._stopping = asyncio.Event()
        self._last_came = asyncio.get_running_loop().time()

    def progress(self) -> Progress:
        return Progress(total=self._total, seen=self._moved, sent=self._moved)

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> bool:
        loop = asyncio.get_running_loop()
        moved_before, began = self._moved, loop.time()
        while not self._stopping.is_set():
            if not await self._move_some():
                return not self._gateway.closing.is_set()  # then nothing can be received here
            if self._per_second is not None:
                due = began + (self._moved - moved_before) / self._per_second
                await self._pause(due - loop.time())
        return False

    async def _pause(self, pause_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, pause_s)):
                await self._stopping.wait()

    async def _move_some(self) -> bool:
        """False when there is nothing left. Raises PostroadError, and what was not moved is returned."""
        wanted = BATCH if self._per_second is None else min(BATCH, self._per_second)
        access = self._access()
        received = await self._gateway.receive(self._source, wanted, WAIT_MS, LOCK_MS, access=access)
        if not received:
            return await self._are_left()
        self._last_came = asyncio.get_running_loop().time()
        old = [each for each in received if each.message.timestamp <= self._began_ms]
        await self._return([each for each in received if each.message.timestamp > self._began_ms])
        failure = await self._move(old)
        if failure is not None:
            raise failure
        return bool(old)

    async def _are_left(self) -> bool:
        """Whether letters are there that could not be received: a node is gone, and another will lead."""
        left = await subscriptions.receivable(self._gateway.client, self._source)
        if left and asyncio.get_running_loop().time() - self._last_came > PATIENCE_S:
            raise CoordinatorNotAvailable(f"{left} letters can't be received now.")
        return left > 0 and not self._gateway.closing.is_set()

    async def _move(self, letters: Sequence[Received]) -> PostroadError | None:
        """Each on its own topic; those that could not be published are returned. The first error."""
        failure: PostroadError | None = None
        by_target: dict[tuple[str, str | None], list[Received]] = {}
        for each in letters:
            topic = self._target or origin_of(each.message) or each.message.topic
            addressee = None if self._target else subscription_of(each.message)
            by_target.setdefault((topic, addressee), []).append(each)
        for target, those in by_target.items():
            outcomes = await self._publish(*target, [each.message for each in those])
            sent: list[Received] = []
            unsent: list[Received] = []
            for each, outcome in zip(those, outcomes, strict=True):
                (sent if isinstance(outcome, Sent) else unsent).append(each)
            failure = failure or next((got for got in outcomes if isinstance(got, PostroadError)), None)
            await self._gateway.settle([each.receipt for each in sent], AckType.ACCEPT)
            await self._return(unsent)
            self._moved += len(sent)
        return failure

    async def _publish(
        self, topic: str, addressee: str | None, letters: Sequence[ShareMessage]
    ) -> list[Sent | PostroadError]:
        """A topic that is gone is not made anew: nobody would read it."""
        gateway = self._gateway
        try:
            self._access().check_topic(topic, WRITE)  # a letter may name any topic
            await gateway.client.retry(lambda: gateway.client.topic(topic))
            if (
                addressee is not None
                and topic not in (await gateway.directory.subscription(addressee)).topics
            ):
                raise GroupIdNotFound(f"{addressee} does not hold {topic} any more: name a destination.")
        except PostroadError as error:
            return [error] * len(letters)
        return await gateway.publish(topic, [_revived(letter, addressee) for letter in letters])

    def _access(self) -> Access:
        """What may be done by who began the task. Raises GroupAuthorizationFailed."""
        access = self._gateway.identities.of_owner(self._by)
        if access is None:
            raise GroupAuthorizationFailed("Nobody is known in whose name the letters would be moved.")
        return access

    async def _return(self, letters: Sequence[Received]) -> None:
        await self._gateway.settle([each.receipt for each in letters], AckType.RETURN)


def origin_of(letter: ShareMessage) -> str | None:
    """The topic where it was before it died."""
    origin = dict(letter.headers).get(DEAD_TOPIC)
    return origin.decode(errors="replace") if origin else None


def subscription_of(letter: ShareMessage) -> str | None:
    """In which it died."""
    name = dict(letter.headers).get(DEAD_SUBSCRIPTION)
    return name.decode(errors="replace") if name else None


def _revived(letter: ShareMessage, addressee: str | None) -> Message:
    """With its old deduplication id it would be taken for a duplicate of what it was."""
    headers: list[tuple[str, bytes | None]] = []
    for name, value in letter.headers:
        if name in (DEDUP_ID, DEAD_DEDUP_ID):
            headers.append((DEDUP_ID, f"{letter.topic}/{letter.partition}/{letter.offset}".encode()))
        elif not tells_of_death(name) and name not in SPENT:
            headers.append((name, value))
    if addressee is not None:
        headers.append((FOR, addressee.encode()))
    return Message(letter.value, letter.key, headers)
