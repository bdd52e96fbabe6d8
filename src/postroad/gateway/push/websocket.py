"""The WebSocket edge: who may connect, in which format, and how the connection ends.

    GET /v1/subscriptions/{name}/stream?batch=100&lock_ms=30000&credit=1000&receipts=true

A client that answers no ping, or takes nothing from its socket, is cut off: its messages go to others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from aiohttp import ClientConnectionResetError, WSCloseCode, WSMsgType, hdrs, web

from postroad.gateway.connections import Connection
from postroad.gateway.consumers import consumer_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.push import binary_frames, json_frames
from postroad.gateway.push.binary_frames import BinaryFormat
from postroad.gateway.push.frames import CREDIT_MAX, FRAME_BYTES_MAX, MS_MAX, Format
from postroad.gateway.push.json_frames import JsonFormat
from postroad.gateway.push.query import flag, number
from postroad.gateway.push.stream import Ending, Options, Stream
from postroad.gateway.rest import problems
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security.access import OPEN, Access

BATCH_MAX: Final = 1000
PING_S: Final = 20.0  # after so long without a word; half of it more without an answer is the end
STUCK_S: Final = 30.0  # a frame that can't be sent for so long
CLOSE_S: Final = 2.0
CLOSE_TEXT_BYTES: Final = 120  # a close frame holds no more

SUBPROTOCOLS: Final = (json_frames.SUBPROTOCOL, binary_frames.SUBPROTOCOL)

log = logging.getLogger(__name__)


class WebSocketEdge:
    def __init__(self, gateway: Gateway, ping_s: float = PING_S, stuck_s: float = STUCK_S) -> None:
        self._gateway = gateway
        self._ping_s = ping_s
        self._stuck_s = stuck_s

    async def stream(self, request: web.Request, access: Access = OPEN) -> web.StreamResponse:
        """Raises Refused, PostroadError."""
        options = _options(request)
        format_ = _format(request, options)
        name = request.match_info["name"]
        await self._gateway.directory.subscription(name)
        socket = web.WebSocketResponse(
            heartbeat=self._ping_s,
            protocols=SUBPROTOCOLS,
            compress=False,  # a few bytes may unpack to many
            max_msg_size=FRAME_BYTES_MAX,
            timeout=CLOSE_S,
        )
        await socket.prepare(request)
        send = partial(self._send, socket, format_)
        connection = request.protocol
        count = connection.count_ahead if isinstance(connection, Connection) else _not_counted
        stream = Stream(self._gateway, name, options, format_, send, count, access)
        agent = request.headers.get(hdrs.USER_AGENT, "")
        consumer = consumer_of("websocket", request.remote or "", agent, access.owner)
        with self._gateway.consumers.connected(name, consumer):
            await self._serve(request, socket, stream, format_)
        return socket

    async def _serve(
        self, request: web.Request, socket: web.WebSocketResponse, stream: Stream, format_: Format
    ) -> None:
        try:
            await stream.run(_frames(request, socket))
        except Ending as ending:
            await self._end(socket, format_, ending)
        except (ConnectionError, ClientConnectionResetError, TimeoutError) as error:
            log.info("the stream to %s ends: %s", request.remote, error or type(error).__name__)
        finally:
            if socket.close_code in (None, WSCloseCode.ABNORMAL_CLOSURE) and request.transport is not None:
                request.transport.abort()  # what it didn't take would wait for ever

    async def _send(self, socket: web.WebSocketResponse, format_: Format, frame: bytes) -> None:
        async with asyncio.timeout(self._stuck_s):
            await socket.send_frame(frame, WSMsgType.TEXT if format_.is_text else WSMsgType.BINARY)

    async def _end(self, socket: web.WebSocketResponse, format_: Format, ending: Ending) -> None:
        try:
            async with asyncio.timeout(CLOSE_S * 2):
                await self._send(socket, format_, format_.error(ending.code, str(ending)))
                await socket.close(code=ending.code, message=str(ending).encode()[:CLOSE_TEXT_BYTES])
        except (ConnectionError, TimeoutError) as error:
            log.info("the stream could not be ended: %s", error or type(error).__name__)


async def _frames(request: web.Request, socket: web.WebSocketResponse) -> AsyncIterator[str | bytes]:
    connection = request.protocol
    async for message in socket:
        if isinstance(connection, Connection):
            connection.frame_came()
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            return
        yield message.data


def _not_counted(_: int) -> None:
    """Without a door of our own nobody bounds the memory of all connections."""


def _options(request: web.Request) -> Options:
    """Raises Refused."""
    query = request.query
    return Options(
        batch=number(query, "batch", 1, BATCH_MAX) or 1,
        lock_ms=number(query, "lock_ms", 1, MS_MAX),
        receipts=flag(query, "receipts"),
        credit=number(query, "credit", 0, CREDIT_MAX) or 0,
    )


def _format(request: web.Request, options: Options) -> Format:
    """JSON unless the client names something else. Raises Refused."""
    named = request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, [])
    offered = [name.strip() for names in named for name in names.split(",") if name.strip()]
    for name in offered or [json_frames.SUBPROTOCOL]:
        if name == json_frames.SUBPROTOCOL:
            return JsonFormat(options.batch)
        if name == binary_frames.SUBPROTOCOL:
            return BinaryFormat()
    raise Refused(problems.MALFORMED, f"The subprotocols are {' and '.join(SUBPROTOCOLS)}.")
