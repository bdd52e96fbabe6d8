"""Server-Sent Events: figures of topics, subscriptions, groups and nodes, as soon as they have changed.

    GET /v1/events?of=topic,subscription&prefix=orders

The first event has all that the caller may describe, each further one what is other than in the one before.
Figures are those that this gateway samples (`history`), so there is an event every few seconds at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Final, get_args

import msgspec
from aiohttp import web
from msgspec import Struct

from postroad.gateway.gateway import Gateway
from postroad.gateway.push.tail import HEADERS, HEARTBEAT_S, RETRY_MS, STUCK_S
from postroad.gateway.rest import problems
from postroad.gateway.rest.history import Kind, may_see
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security.access import OPEN, Access, UserAccess

STREAMS_MAX: Final = 100
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
NAME_MAX: Final = 249

log = logging.getLogger(__name__)


class Change(Struct):
    """`gone`: names of which nothing is sampled any more, or that the caller may not describe any more."""

    of: Kind
    sampled_at_ms: int
    figures: dict[str, dict[str, float]]
    gone: list[str]


class Events:
    def __init__(self, gateway: Gateway, heartbeat_s: float = HEARTBEAT_S, stuck_s: float = STUCK_S) -> None:
        self._gateway = gateway
        self._heartbeat_s = heartbeat_s
        self._stuck_s = stuck_s
        self._encode = msgspec.json.Encoder().encode
        self._open = 0

    async def events(self, request: web.Request, access: Access = OPEN) -> web.StreamResponse:
        """Raises Refused."""
        kinds, prefix = _kinds(request), request.query.get("prefix", "")
        if len(prefix) > NAME_MAX:
            raise Refused(problems.MALFORMED, f"query: prefix: at most {NAME_MAX} characters")
        if self._open >= STREAMS_MAX:
            raise Refused(problems.UNAVAILABLE, f"This gateway already has {STREAMS_MAX} of these streams.")
        self._open += 1
        try:
            response = web.StreamResponse(headers=HEADERS)
            await response.prepare(request)
            await self._follow(request, response, _Sent(self._gateway, kinds, prefix, access))
        finally:
            self._open -= 1
        return response

    async def _follow(self, request: web.Request, response: web.StreamResponse, sent: _Sent) -> None:
        try:
            await self._send(response, b"retry: %d\n\n" % RETRY_MS)
            while not self._gateway.closing.is_set() and not sent.is_over and request.transport is not None:
                news = [b"data: %b\n\n" % self._encode(change) for change in sent.changes()]
                await self._send(response, b"".join(news) or b": nothing new\n\n")
                await self._wait()
        except (ConnectionError, TimeoutError) as error:
            log.info("the events for %s end: %s", request.remote, error or type(error).__name__)
            if request.transport is not None:
                request.transport.abort()  # what it didn't take would wait for ever

    async def _wait(self) -> None:
        """For a sample, or until it is time for a sign of life, or the gateway ends."""
        waits = [
            asyncio.create_task(self._gateway.history.sampled(), name="wait for a sample"),
            asyncio.create_task(self._gateway.closing.wait(), name="wait for the end"),
        ]
        try:
            await asyncio.wait(waits, timeout=self._heartbeat_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*waits, return_exceptions=True)

    async def _send(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(self._stuck_s):
            await response.write(data)


class _Sent:
    """What one caller has, and what is other now."""

    def __init__(self, gateway: Gateway, kinds: Sequence[Kind], prefix: str, access: Access) -> None:
        self._history = gateway.history
        self._prefix = prefix
        self._access = access
        self._known: dict[Kind, dict[str, dict[str, float]]] = {kind: {} for kind in kinds}

    @property
    def is_over(self) -> bool:
        """The caller's session has ended."""
        return isinstance(self._access, UserAccess) and self._access.session.has_ended

    def changes(self) -> list[Change]:
        found: list[Change] = []
        for kind, before in self._known.items():
            now = {
                name: dict(values)
                for name, values in self._history.latest[kind].items()
                if name.startswith(self._prefix) and may_see(self._access, kind, name)
            }
            news = {name: values for name, values in now.items() if before.get(name) != values}
            gone = sorted(before.keys() - now.keys())
            if news or gone:
                found.append(Change(kind, self._history.sampled_at_ms, news, gone))
            self._known[kind] = now
        return found


def _kinds(request: web.Request) -> list[Kind]:
    """Raises Refused."""
    named = [each.strip() for each in request.query.get("of", "").split(",") if each.strip()]
    unknown = [each for each in named if each not in KINDS]
    if unknown:
        raise Refused(problems.MALFORMED, f"query: of: {unknown[0][:40]!r} is none of {', '.join(KINDS)}.")
    return [kind for kind in KINDS if not named or kind in named]
