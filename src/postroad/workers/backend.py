"""The port between workers and what keeps their messages: a cluster (`kafka`), or a test
(`testing.workers`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from postroad.client.share_message import AckType, ShareMessage
from postroad.errors import PostroadError
from postroad.workers.publishing import Outgoing
from postroad.workers.worker import Worker


class Source(Protocol):
    """A member of a worker's subscription."""

    @property
    def losses(self) -> int:
        """How often what was held then was lost, as when a connection ended."""

    async def take(self, count: int, wait_ms: int) -> list[ShareMessage]:
        """Up to so many, as soon as there are any; none if none came in time."""

    async def collect(self) -> list[ShareMessage]:
        """What `take` has asked for, and what came after it had returned. Asks for nothing more."""

    async def settle(
        self,
        messages: Sequence[ShareMessage],
        kind: AckType,
        *,
        delay_ms: int | None = None,
        reason: str = "",
    ) -> list[tuple[ShareMessage, PostroadError]]:
        """Those of which it was refused, or of which nobody knows."""

    async def commit(self, done: Sequence[tuple[ShareMessage, Sequence[Outgoing]]]) -> None:
        """The messages are accepted and what they published is there, all or nothing. PostroadError: nothing
        is, and the messages come again."""

    async def close(self) -> None:
        """What is held is released, and the member leaves."""


class Backend(Protocol):
    async def open(self) -> None:
        """PostroadError if the cluster can't be reached."""

    async def close(self) -> None: ...

    async def publish(self, messages: Sequence[Outgoing]) -> None:
        """All are stored. PostroadError: some may not be."""

    async def join(self, worker: Worker) -> Source:
        """A member of the worker's subscription, which is there and is as the worker says."""
