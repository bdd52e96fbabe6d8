"""One watch of everything below our prefix, served by one member of etcd after another.

Whatever ends a stream (the member stopped, lost its leader, or fell behind), the next stream begins after
the last revision that was handed out, at the next member. So nothing is left out and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import groupby
from typing import Final

from postroad.cluster import etcd_messages as messages
from postroad.cluster.etcd_gateway import (
    PAUSE_S,
    WATCH_OPEN_S,
    AnswerTooLarge,
    EtcdGateway,
    NoAnswer,
    WatchStream,
)
from postroad.cluster.etcd_messages import Watched, WatchedEvent
from postroad.cluster.store import PROGRESS, Event, Events
from postroad.errors import HistoryCompacted

logger = logging.getLogger(__name__)


STEADY_S: Final = 1.0  # a stream that lasted so long was none of a row of failures
ROUNDS_MAX: Final = 3  # from then on the time for opening a stream grows no further


class EtcdWatch:
    """Make one for each reader; `arrived` is the last revision that has come."""

    def __init__(self, gateway: EtcdGateway, prefix: bytes, after: int) -> None:
        self.arrived = after
        self._after = after  # the last revision that was handed out
        self._gateway = gateway
        self._prefix = prefix
        self._member = 0
        self._failures = 0  # in a row
        self._stream: WatchStream | None = None  # while it is waited for
        self._missing_since: float | None = None  # on the loop's clock

    async def events(self) -> AsyncGenerator[Events, None]:
        """The events of each revision, one after another, until the store is closed.

        Raises HistoryCompacted if etcd no longer has those that come next.
        """
        while not self._gateway.closed.is_set():
            try:
                async with aclosing(self._read()) as stream:
                    async for events in stream:
                        self._after = events[0].revision
                        yield events
            except AnswerTooLarge as error:
                raise HistoryCompacted(str(error)) from error
            except NoAnswer as error:
                await self._move_on(error)

    def check(self, revision: int, now: float, patience_s: float) -> None:
        """Leave the member if this revision, which changed a key of ours, has not come for so long.

        A reader who is busy has not asked for it: that is nobody's fault.
        """
        if self._stream is None or self.arrived >= revision:
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        elif now - self._missing_since >= patience_s:
            logger.warning("etcd at %s is behind; following it at another member", self._stream.endpoint)
            self._stream.abort()

    async def _read(self) -> AsyncGenerator[Events, None]:
        loop = asyncio.get_running_loop()
        request = messages.watch(self._prefix, end_of(self._prefix), self._after + 1)
        rounds = min(self._failures // len(self._gateway.endpoints), ROUNDS_MAX)
        async with self._gateway.watch(self._member, request, WATCH_OPEN_S * 2**rounds) as stream:
            opened = loop.time()
            try:
                while True:
                    for events in self._decoded(await self._next(stream)):
                        yield events
            finally:
                if loop.time() - opened >= STEADY_S:
                    self._failures = 0

    async def _next(self, stream: WatchStream) -> Watched:
        self._stream, self._missing_since = stream, None
        try:
            answer = await stream.next()
        finally:
            self._stream = None
        if answer.events:
            self.arrived = answer.events[-1].kv.mod_revision
        return answer

    def _decoded(self, answer: Watched) -> list[Events]:
        if answer.compact_revision:
            raise HistoryCompacted(f"etcd keeps changes from revision {answer.compact_revision} on only.")
        if answer.canceled:
            raise NoAnswer(f"etcd ended the watch: {answer.cancel_reason or 'no reason given'}.")
        grouped = groupby(map(self._event, answer.events), lambda event: event.revision)
        return [list(events) for _, events in grouped]

    def _event(self, event: WatchedEvent) -> Event:
        key = event.kv.key[len(self._prefix) :].decode()
        deleted = event.type == "DELETE" or key == PROGRESS
        return Event(key, None if deleted else event.kv.value, event.kv.mod_revision)

    async def _move_on(self, error: NoAnswer) -> None:
        self._member += 1
        self._failures += 1
        if self._failures % len(self._gateway.endpoints) == 0:
            if self._failures == len(self._gateway.endpoints):
                logger.warning("no member of etcd serves the watch; still trying: %s", error)
            await self._gateway.pause(PAUSE_S)


def end_of(prefix: bytes) -> bytes:
    """The first bytes behind everything that begins with the prefix (UTF-8 holds no 0xFF)."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
