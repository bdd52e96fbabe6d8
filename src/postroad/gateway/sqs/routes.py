"""The way of one request: which protocol, who asks, which action, and its answer.

Clients post to `/` or to the queue's own URL; which queue is meant stands in the request all the same.
Whatever goes wrong is answered in the protocol of the request, here and nowhere else.
"""

from __future__ import annotations

import logging
import os
from typing import Final

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.access import Keys
from postroad.gateway.app import ACTION
from postroad.gateway.exchange import Head, PlainRoute, Reply, head_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.sqs import protocol_json, protocol_query, sigv4
from postroad.gateway.sqs.actions import ACTIONS
from postroad.gateway.sqs.errors import SqsError, from_postroad
from postroad.gateway.sqs.protocol import Dialect
from postroad.gateway.sqs.service import Caller, Service

DIALECT: Final = "sqs"
QUEUE_PATH: Final = r"/{account:\d{12}}/{queue}"

log = logging.getLogger(__name__)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    """Raises ConfigurationError if the access keys can't be read."""
    clerk = _Clerk(Service(gateway), Keys.parse(gateway.http.access_keys))
    plain = PlainRoute(DIALECT, clerk.answer.__name__, clerk.answer_plain)
    gateway.plain_routes.update({protocol_json.TARGET_PREFIX + name: plain for name in ACTIONS})
    return [
        web.post("/", clerk.answer),
        web.get("/", clerk.answer, allow_head=False),
        web.post(QUEUE_PATH, clerk.answer),
        web.get(QUEUE_PATH, clerk.answer, allow_head=False),
    ]


class _Clerk:
    def __init__(self, service: Service, keys: Keys) -> None:
        self._service = service
        self._keys = keys
        self._url = service.gateway.http.url.rstrip("/")

    async def answer(self, request: web.Request) -> web.Response:
        """What came by aiohttp."""
        head = head_of(request)
        protocol: Dialect = protocol_json if protocol_json.TARGET in head.headers else protocol_query
        try:
            reply = await self._reply(protocol, head, await request.read())
        except web.HTTPRequestEntityTooLarge as error:
            too_large = SqsError("RequestEntityTooLarge", str(error.text), 413)
            reply = protocol.refuse(too_large, _request_id())
        if reply.action:
            request[ACTION] = reply.action
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    async def answer_plain(self, head: Head, body: bytes) -> Reply:
        """What came by the short way, where all requests are in the JSON protocol."""
        return await self._reply(protocol_json, head, body)

    async def _reply(self, protocol: Dialect, head: Head, body: bytes) -> Reply:
        request_id = _request_id()
        name = ""
        try:
            admin = sigv4.check(head, body, self._keys) if self._keys.required else True
            action, asked = protocol.read(head, body)
            name = action.name
            if action.admin and not admin:
                raise SqsError("AccessDeniedException", f"{name} needs an admin's key.", 403)
            answered = await action.handler(self._service, Caller(head, self._url, admin), asked)
            return protocol.answer(action, answered, request_id)
        except SqsError as error:
            refused = error
        except PostroadError as error:
            refused = from_postroad(error)
        except Exception:
            log.exception("request %s failed", request_id)
            refused = SqsError("InternalFailure", "See the gateway's log.", 500)
        return protocol.refuse(refused, request_id)._replace(action=name)


def _request_id() -> str:
    return os.urandom(16).hex()
