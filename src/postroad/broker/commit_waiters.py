"""Those who wait until an offset of a partition is committed: producers with acks=all, the node itself."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from postroad.errors import ApiError, RequestTimedOut

NEVER: Final = 1 << 62  # a deadline that does not come

Committed = Callable[[ApiError | None], None]
"""Called once: when the offset is committed (None), or when waiting for it has ended (the error)."""

log = logging.getLogger(__name__)


class CommitWaiters:
    """They wait in the order of their appends, and hear in that order."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: deque[tuple[int, Committed, int]] = deque()  # offset, call, deadline

    def add(self, offset: int, call: Committed, deadline_ms: int) -> None:
        self.waiting.append((offset, call, deadline_ms))

    def commit(self, offset: int) -> None:
        """Everything below the offset is committed."""
        waiting = self.waiting
        while waiting and waiting[0][0] <= offset:
            _tell(waiting.popleft()[1], None)

    def fail(self, error: ApiError) -> None:
        """Nobody needs to wait any longer."""
        waiting, self.waiting = self.waiting, deque()
        for _, call, _ in waiting:
            _tell(call, error)

    def send_away(self, error: ApiError) -> None:
        """Clients need not wait any longer; they have a deadline.

        The node itself has none, and waits on: what it has written may still be committed, and it must not
        decide anything as if it were not.
        """
        waiting, self.waiting = self.waiting, deque()
        for waiter in waiting:
            if waiter[2] == NEVER:
                self.waiting.append(waiter)
            else:
                _tell(waiter[1], error)

    def expire(self, now_ms: int) -> None:
        """Whoever has waited as long as it wanted hears so; what it waits for may still be committed."""
        if not any(deadline_ms <= now_ms for _, _, deadline_ms in self.waiting):
            return
        waiting, self.waiting = self.waiting, deque()
        for waiter in waiting:
            if waiter[2] <= now_ms:
                _tell(
                    waiter[1],
                    RequestTimedOut(
                        "The message was not committed in time; it may still be committed later."
                    ),
                )
            else:
                self.waiting.append(waiter)


def _tell(call: Committed, error: ApiError | None) -> None:
    """One that can't be told must not keep the others from hearing."""
    try:
        call(error)
    except Exception:
        log.exception("a producer could not be told of its commit")
