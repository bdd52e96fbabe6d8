"""`SecurityNews`: what has lately changed of users and ACLs, for gateways that follow them.

Revisions are this process's own count (`Security.revision`), so they mean something together with its
`incarnation` only. Whoever is further behind than `REMEMBERED` changes is told all there is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

REMEMBERED: Final = 10_000  # keys of the store that changed


class SecurityNews:
    def __init__(self, incarnation: str, revision: int) -> None:
        self.incarnation = incarnation
        self.revision = revision
        self._complete_from = revision  # changes behind this revision are all remembered
        self._changed: deque[tuple[int, str]] = deque()
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._closed = False

    def note(self, revision: int, changed: Sequence[str]) -> None:
        """These keys of the store have changed; whoever waits is woken."""
        self.revision = revision
        self._changed.extend((revision, key) for key in changed)
        while len(self._changed) > REMEMBERED:
            self._complete_from, _ = self._changed.popleft()
        self._wake()

    def since(self, incarnation: str, revision: int) -> list[str] | None:
        """The keys that changed after this revision; None: that can't be told."""
        if incarnation != self.incarnation or not self._complete_from <= revision <= self.revision:
            return None
        return list(dict.fromkeys(key for at, key in self._changed if at > revision))

    async def wait(self, incarnation: str, revision: int, timeout_s: float) -> None:
        """Until there is something to tell, the node stops, or the time is up."""
        if self._closed or (incarnation, revision) != (self.incarnation, self.revision):
            return
        woken = asyncio.get_running_loop().create_future()
        self._waiting[woken] = None
        try:
            async with asyncio.timeout(timeout_s):
                await woken
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(woken, None)

    def end_waits(self) -> None:
        """The node stops: what is asked is answered at once from here on."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        for woken in list(self._waiting):
            if not woken.done():
                woken.set_result(None)
