"""What joins a producer's transaction by itself (KIP-890): partitions and groups, as something comes there.

The coordinator is asked once for all that wants to join in a turn of the loop: a request that reaches ten
partitions for the first time costs one record of the coordinator, not ten one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Protocol

from postroad.broker.parts import HasTasks
from postroad.errors import ApiError, NotLeaderOrFollower
from postroad.transactions.transaction import Partition, Producer


class Ask(Protocol):
    def __call__(
        self, transactional_id: str, who: Producer, partitions: list[Partition], groups: list[str]
    ) -> Awaitable[None]:
        """Ask the coordinator, wherever it is. Raises ApiError if it refuses, or can't be asked."""


class Join:
    """What joins one transaction with one question."""

    __slots__ = ("groups", "partitions", "waiting")

    def __init__(self) -> None:
        self.partitions: list[Partition] = []
        self.groups: list[str] = []
        self.waiting: list[asyncio.Future[ApiError | None]] = []


class Joins:
    def __init__(self, node: HasTasks, ask: Ask) -> None:
        self._node = node
        self._ask = ask
        self._gathered: dict[tuple[str, Producer], Join] = {}

    async def join(
        self, transactional_id: str, who: Producer, partitions: Iterable[Partition], groups: Iterable[str]
    ) -> None:
        """These are part of the producer's transaction. Raises ApiError."""
        key = transactional_id, who
        found = self._gathered.get(key)
        if found is None:
            found = self._gathered[key] = Join()
            self._node.tasks.start(self._ask_for(key, found), "join-transaction")
        found.partitions += partitions
        found.groups += groups
        answered: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
        found.waiting.append(answered)
        if (error := await answered) is not None:
            raise error

    async def _ask_for(self, key: tuple[str, Producer], found: Join) -> None:
        del self._gathered[key]
        error: ApiError | None = NotLeaderOrFollower("The node stops.")
        try:
            await self._ask(*key, found.partitions, found.groups)
            error = None
        except ApiError as refusal:
            error = refusal
        finally:
            for answered in found.waiting:
                if not answered.done():
                    answered.set_result(error)
