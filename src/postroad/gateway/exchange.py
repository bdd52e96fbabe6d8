"""A request's head and the reply to it. Who reads the one and writes the other, aiohttp or the short way
(`short_way.py`), is nothing that a dialect has to know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

from aiohttp import web


class Peer(Protocol):
    """The connection that a request came over."""

    @property
    def transport(self) -> asyncio.Transport | None: ...


class Head(NamedTuple):
    """`headers` by their names in lower case; one that stood there twice has both values, with a comma."""

    method: str
    target: str  # path and query as they were sent
    headers: Mapping[str, str]
    origin: str  # scheme, host and port as the client addressed us
    peer: Peer


class Reply(NamedTuple):
    """`action`: what was asked for, in metrics and logs; empty where that could not be read."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    action: str = ""


PlainHandler = Callable[[Head, bytes, Callable[[Reply], None]], Awaitable[Reply] | None]
"""It gets the whole body, and raises nothing. It sees to it that its third argument is called with the reply,
at once or later; or it answers with what gives the reply, and needs a task."""


class PlainRoute(NamedTuple):
    """`admits` tells by the headers whether a request's body is worth waiting for."""

    dialect: str
    action: str  # of replies that don't tell theirs
    handler: PlainHandler
    admits: Callable[[Mapping[str, str]], bool]


def head_of(request: web.Request) -> Head:
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        name = name.lower()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    origin = f"{request.scheme}://{request.host}"
    return Head(request.method, request.raw_path, headers, origin, request.protocol)
