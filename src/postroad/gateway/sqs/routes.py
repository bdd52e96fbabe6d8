"""The way of one request: which protocol, who asks, which action, and its answer.

Clients post to `/` or to the queue's own URL; which queue is meant stands in the request all the same.
Whatever goes wrong is answered in the protocol of the request, here and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import getrandbits
from typing import Final

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway import bodies, welcome
from postroad.gateway.access import Keys
from postroad.gateway.app import ACTION
from postroad.gateway.exchange import Head, PlainRoute, Reply, head_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.origin import is_browser
from postroad.gateway.sqs import protocol_json, protocol_query, protocol_query_json, sigv4
from postroad.gateway.sqs.actions import ACTIONS, Action
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.errors import SqsError, from_postroad
from postroad.gateway.sqs.protocol import Call, Dialect
from postroad.gateway.sqs.service import Caller, Service

READING: Final = ("Get", "List")  # actions that change nothing begin so
DIALECT: Final = "sqs"
QUEUE_PATH: Final = r"/{account:\d{12}}/{queue}"

log = logging.getLogger(__name__)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    """Raises ConfigurationError if the access keys can't be read."""
    handler = _RequestHandler(Service(gateway), Keys.parse(gateway.http.access_keys))
    plain = PlainRoute(DIALECT, handler.answer.__name__, handler.answer_plain, handler.admits)
    gateway.plain_routes.update({protocol_json.TARGET_PREFIX + name: plain for name in ACTIONS})
    return [
        web.post("/", handler.answer),
        web.get("/", welcome.before(handler.answer), allow_head=False),
        web.post(QUEUE_PATH, handler.answer),
        web.get(QUEUE_PATH, handler.answer, allow_head=False),
    ]


class _RequestHandler:
    def __init__(self, service: Service, keys: Keys) -> None:
        self._service = service
        self._keys = keys
        self._visitors = service.gateway.visitors
        self._url = service.gateway.http.url.rstrip("/")

    async def answer(self, request: web.Request) -> web.Response:
        """What came by aiohttp."""
        head = head_of(request)
        protocol = _protocol_of(head)
        try:
            self._check_caller(head.headers, head.target)
            reply = await self._reply(protocol, head, await bodies.read(request))
        except SqsError as refused:
            reply = protocol.refuse(refused, _request_id())
        except web.HTTPRequestEntityTooLarge as error:
            too_large = SqsError("RequestEntityTooLarge", str(error.text), 413)
            reply = protocol.refuse(too_large, _request_id())
        if reply.action:
            request[ACTION] = reply.action
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    def admits(self, headers: Mapping[str, str]) -> bool:
        """By the headers alone, of a request that comes by the short way."""
        try:
            self._check_caller(headers, "/")
        except SqsError:
            return False
        return True

    def answer_plain(self, head: Head, body: bytes, done: Callable[[Reply], None]) -> Awaitable[Reply] | None:
        """What came by the short way, where all requests are in the JSON protocol."""
        request_id = _request_id()
        try:
            call, caller = self._read(protocol_json, head, body)
        except Exception as error:
            done(_refused(protocol_json, error, request_id))
            return None
        if call.action.begin is None:
            return self._reply_to(call, caller, protocol_json, request_id)
        return self._begin(call, caller, request_id, done)

    def _begin(
        self, call: Call, caller: Caller, request_id: str, done: Callable[[Reply], None]
    ) -> Awaitable[Reply] | None:
        """Without a task, if that is possible now."""
        action, asked = call
        assert action.begin is not None, "asked before"
        try:
            _check_right(action, caller)
            if action.begin(
                self._service, caller, asked, lambda outcome: done(self._written(action, outcome, request_id))
            ):
                return None
        except Exception as error:
            done(_refused(protocol_json, error, request_id, action.name))
            return None
        return self._reply_to(call, caller, protocol_json, request_id)

    async def _reply(self, protocol: Dialect, head: Head, body: bytes) -> Reply:
        request_id = _request_id()
        try:
            call, caller = self._read(protocol, head, body)
        except Exception as error:
            return _refused(protocol, error, request_id)
        return await self._reply_to(call, caller, protocol, request_id)

    def _check_caller(self, headers: Mapping[str, str], target: str) -> None:
        """As far as it can be told before the body has come. Raises SqsError."""
        if (refusal := self._visitors.refusal(headers)) is not None:
            raise SqsError("AccessDeniedException", refusal, 403)
        if self._keys.required:
            sigv4.identify(headers, target, self._keys)

    def _read(self, protocol: Dialect, head: Head, body: bytes) -> tuple[Call, Caller]:
        """What is asked for, and by whom. Raises SqsError."""
        if (refusal := self._visitors.refusal(head.headers)) is not None:
            raise SqsError("AccessDeniedException", refusal, 403)
        admin = sigv4.check(head, body, self._keys) if self._keys.required else True
        call = protocol.read(head, body)
        if head.method == "GET" and not self._keys.required:  # a page can't make a signature
            _refuse_change_by_browser(call.action, head)
        return call, Caller(head, self._url, admin)

    async def _reply_to(self, call: Call, caller: Caller, protocol: Dialect, request_id: str) -> Reply:
        action, asked = call
        try:
            _check_right(action, caller)
            return protocol.answer(action, await action.handler(self._service, caller, asked), request_id)
        except Exception as error:
            return _refused(protocol, error, request_id, action.name)

    @staticmethod
    def _written(action: Action, outcome: Callable[[], SqsAnswer], request_id: str) -> Reply:
        try:
            return protocol_json.answer(action, outcome(), request_id)
        except (Exception, asyncio.CancelledError) as error:  # the latter: the gateway ends before
            return _refused(protocol_json, error, request_id, action.name)


def _protocol_of(head: Head) -> Dialect:
    if protocol_json.TARGET in head.headers:
        return protocol_json
    return protocol_query_json if protocol_query_json.is_wanted(head) else protocol_query


def _refuse_change_by_browser(action: Action, head: Head) -> None:
    if not action.name.startswith(READING) and is_browser(head.headers):
        raise SqsError("AccessDeniedException", f"In a browser {action.name} must be sent by POST.", 403)


def _check_right(action: Action, caller: Caller) -> None:
    if action.admin and not caller.admin:
        raise SqsError("AccessDeniedException", f"{action.name} needs an admin's key.", 403)


def _refused(protocol: Dialect, error: BaseException, request_id: str, action: str = "") -> Reply:
    if isinstance(error, PostroadError):
        error = from_postroad(error)
    elif not isinstance(error, SqsError):
        log.error("request %s failed", request_id, exc_info=error)
        error = SqsError("InternalFailure", "See the gateway's log.", 500)
    return protocol.refuse(error, request_id)._replace(action=action)


def _request_id() -> str:
    """Make a name for the request, to find it in logs. It is no secret."""
    return f"{getrandbits(128):032x}"
