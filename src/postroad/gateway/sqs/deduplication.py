"""Duplicates of FIFO messages, as far as this gateway has sent them itself.

A message whose deduplication id was sent within five minutes is answered like the first one, and not
published again. That duplicates are never *delivered*, whichever gateway they came through, is the node's
promise (`postroad.deduplicate.ms`); here they are only given the answer that SQS gives.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from postroad.client.producer import Sent
from postroad.errors import PostroadError

REMEMBERED_S: Final = 300.0
ENTRIES_MAX: Final = 100_000

Outcome = Sent | PostroadError


class Claim(NamedTuple):
    """`first`: whoever claimed it publishes, and says what came of it to `Duplicates.settle`."""

    first: bool
    outcome: asyncio.Future[Outcome]


class Duplicates:
    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, tuple[float, asyncio.Future[Outcome]]] = OrderedDict()

    def known(self, keys: Iterable[bytes]) -> list[tuple[bytes, asyncio.Future[Outcome]]]:
        """Those that were claimed before, and what came or comes of it."""
        return [(key, self._seen[key][1]) for key in keys if key in self._seen]

    def forget(self, key: bytes, outcome: asyncio.Future[Outcome]) -> None:
        """The next one is the first again; unless it is claimed anew already."""
        if key in self._seen and self._seen[key][1] is outcome:
            del self._seen[key]

    def claim(self, key: bytes) -> Claim:
        """For a topic and a deduplication id, as one word."""
        loop = asyncio.get_running_loop()
        self._forget_before(loop.time() - REMEMBERED_S)
        known = self._seen.get(key)
        if known is not None:
            return Claim(False, known[1])
        outcome: asyncio.Future[Outcome] = loop.create_future()
        self._seen[key] = loop.time(), outcome
        return Claim(True, outcome)

    def settle(self, key: bytes, outcome: Outcome) -> None:
        """Those who wait hear it. A failure is not remembered: the next one tries again."""
        _, waiting = self._seen[key] if isinstance(outcome, Sent) else self._seen.pop(key)
        waiting.set_result(outcome)

    def _forget_before(self, before: float) -> None:
        while self._seen:
            at, outcome = next(iter(self._seen.values()))
            if not outcome.done() or (at > before and len(self._seen) < ENTRIES_MAX):
                return
            self._seen.popitem(last=False)
