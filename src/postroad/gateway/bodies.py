"""A request's body, read as a whole: within the limit for one, and counted in the limit for all of them."""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

from postroad.gateway.connections import Connection

BODY: Final = web.RequestKey("body", bytes)


class ClientGone(ConnectionError):
    """The client hung up before its request was complete, or was refused: nobody waits for an answer."""


async def read(request: web.Request) -> bytes:
    """Raises HTTPRequestEntityTooLarge, ClientGone, and what aiohttp raises for a body that can't be read.

    It may be asked for again until the request is answered.
    """
    if BODY not in request:
        _check_length(request, request.content_length or 0)
        request[BODY] = b"".join(await _pieces(request))
    return request[BODY]


async def _pieces(request: web.Request) -> list[bytes]:
    connection = request.protocol
    is_packed = hdrs.CONTENT_ENCODING in request.headers
    pieces: list[bytes] = []
    size = 0
    while piece := await _piece(request):
        size += len(piece)
        _check_length(request, size)
        # What a packed body has become is in no count of what came over the connection.
        if is_packed and isinstance(connection, Connection) and not connection.count_arrived(len(piece)):
            raise ClientGone("The gateway has no memory left for the body.")
        pieces.append(piece)
    return pieces


async def _piece(request: web.Request) -> bytes:
    try:
        return await request.content.readany()
    except (OSError, RuntimeError) as error:  # the latter is how aiohttp says it if it knew before
        if not has_gone(request):
            raise
        error.__traceback__ = None  # aiohttp keeps the error with the body, and its traceback would keep us
        raise ClientGone(str(error)) from None


def has_gone(request: web.Request) -> bool:
    """The client has hung up, or was shown out."""
    return request.transport is None or request.transport.is_closing()


def _check_length(request: web.Request, length: int) -> None:
    if length > request.client_max_size:
        raise web.HTTPRequestEntityTooLarge(request.client_max_size, length)
