"""The way of one request: which protocol, who asks, which action, and its answer.

Clients post to `/` or to the queue's own URL; which queue is meant stands in the request all the same.
Whatever goes wrong is answered in the protocol of the request, here and nowhere else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway.access import Keys
from postroad.gateway.app import ACTION
from postroad.gateway.gateway import Gateway
from postroad.gateway.sqs import protocol_json, protocol_query, sigv4
from postroad.gateway.sqs.errors import SqsError, from_postroad
from postroad.gateway.sqs.protocol import Dialect
from postroad.gateway.sqs.service import Caller, Service

QUEUE_PATH: Final = r"/{account:\d{12}}/{queue}"

log = logging.getLogger(__name__)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    """Raises ConfigurationError if the access keys can't be read."""
    answer = _answerer(Service(gateway), Keys.parse(gateway.http.access_keys))
    return [
        web.post("/", answer),
        web.get("/", answer, allow_head=False),
        web.post(QUEUE_PATH, answer),
        web.get(QUEUE_PATH, answer, allow_head=False),
    ]


def _answerer(service: Service, keys: Keys) -> Callable[[web.Request], Awaitable[web.Response]]:
    url = service.gateway.http.url.rstrip("/")

    async def answer(request: web.Request) -> web.Response:
        protocol: Dialect = protocol_json if protocol_json.TARGET in request.headers else protocol_query
        request_id = os.urandom(16).hex()
        try:
            body = await request.read()
            admin = sigv4.check(request, body, keys) if keys.required else True
            call = protocol.read(request, body)
            request[ACTION] = call.action.name
            if call.action.admin and not admin:
                raise SqsError("AccessDeniedException", f"{call.action.name} needs an admin's key.", 403)
            answered = await call.action.handler(service, Caller(request, url, admin), call.request)
            return protocol.answer(call.action, answered, request_id)
        except SqsError as error:
            refused = protocol.refuse(error, request_id)
        except web.HTTPRequestEntityTooLarge as error:
            refused = protocol.refuse(SqsError("RequestEntityTooLarge", str(error.text), 413), request_id)
        except PostroadError as error:
            refused = protocol.refuse(from_postroad(error), request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            refused = protocol.refuse(SqsError("InternalFailure", "See the gateway's log.", 500), request_id)
        return refused

    return answer
