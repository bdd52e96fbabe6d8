"""The way of one request: which protocol, who asks, which action, and its answer.

Clients post to `/` or to the queue's own URL; which queue is meant stands in the request all the same.
Whatever goes wrong is answered in the protocol of the request, here and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from random import getrandbits
from typing import Final, NamedTuple

from aiohttp import web

from postroad.errors import PostroadError
from postroad.gateway import bodies, welcome
from postroad.gateway.app import ACTION
from postroad.gateway.exchange import Head, PlainRoute, Reply, head_of
from postroad.gateway.gateway import Gateway
from postroad.gateway.origin import is_browser
from postroad.gateway.security import rights
from postroad.gateway.security.access import OPEN, Access
from postroad.gateway.security.credentials import Scope
from postroad.gateway.sqs import names, protocol_json, protocol_query, protocol_query_json, sigv4
from postroad.gateway.sqs.actions import ACTIONS, Action
from postroad.gateway.sqs.answers import SqsAnswer
from postroad.gateway.sqs.errors import SqsError, from_postroad
from postroad.gateway.sqs.protocol import Call, Dialect
from postroad.gateway.sqs.service import Caller, Service
from postroad.gateway.sqs.sigv4 import Signed
from postroad.security.access_keys import ID_CHARACTERS_MAX

READING: Final = ("Get", "List")  # actions that change nothing begin so
DIALECT: Final = "sqs"
QUEUE_PATH: Final = r"/{account:\d{12}}/{queue}"
REGION_CHARACTERS_MAX: Final = 64
# A request whose key is not known yet is kept while a node is asked, unless it is larger.
STRANGERS_BYTES_MAX: Final = 64 * 1024

log = logging.getLogger(__name__)


class Shown(NamedTuple):
    """Whose a request is; if something is signed, only if it is signed with this signing key."""

    access: Access
    signed: Signed | None = None
    key: bytes = b""


_OPEN: Final = Shown(OPEN)


def routes(gateway: Gateway) -> list[web.RouteDef]:
    handler = _RequestHandler(Service(gateway))
    plain = PlainRoute(DIALECT, handler.answer.__name__, handler.answer_plain, handler.admits)
    gateway.plain_routes.update({protocol_json.TARGET_PREFIX + name: plain for name in ACTIONS})
    return [
        web.post("/", handler.answer),
        web.get("/", welcome.before(handler.answer, gateway.http.console), allow_head=False),
        web.post(QUEUE_PATH, handler.answer),
        web.get(QUEUE_PATH, handler.answer, allow_head=False),
    ]


class _RequestHandler:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._identities = service.gateway.identities
        self._visitors = service.gateway.visitors
        self._url = service.gateway.http.url.rstrip("/")

    @rights.declared(rights.BY_ACTION)
    async def answer(self, request: web.Request) -> web.Response:
        """What came by aiohttp."""
        head = head_of(request)
        protocol = _protocol_of(head)
        try:
            shown = await self._find(head)
            reply = await self._reply(protocol, head, await bodies.read(request), shown)
        except (SqsError, PostroadError) as refused:
            reply = _refused(protocol, refused, _request_id())
        except web.HTTPRequestEntityTooLarge as error:
            too_large = SqsError("RequestEntityTooLarge", str(error.text), 413)
            reply = protocol.refuse(too_large, _request_id())
        if reply.action:
            request[ACTION] = reply.action
        return web.Response(body=reply.body, status=reply.status, headers=reply.headers)

    def admits(self, headers: Mapping[str, str]) -> bool:
        """By the headers alone, of a request that comes by the short way."""
        try:
            is_known = self._known(headers, "/", None) is not None
        except (SqsError, PostroadError):
            return False
        return is_known or int(headers["content-length"]) <= STRANGERS_BYTES_MAX

    def answer_plain(self, head: Head, body: bytes, done: Callable[[Reply], None]) -> Awaitable[Reply] | None:
        """What came by the short way, where all requests are in the JSON protocol."""
        request_id = _request_id()
        try:
            shown = self._known(head.headers, head.target, head.peer.transport)
            if shown is None:
                return self._reply(protocol_json, head, body)
            call, caller = self._read(protocol_json, head, body, shown)
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

    async def _reply(self, protocol: Dialect, head: Head, body: bytes, shown: Shown | None = None) -> Reply:
        request_id = _request_id()
        try:
            call, caller = self._read(protocol, head, body, shown or await self._find(head))
        except Exception as error:
            return _refused(protocol, error, request_id)
        return await self._reply_to(call, caller, protocol, request_id)

    # --- who asks

    def _known(
        self, headers: Mapping[str, str], target: str, transport: asyncio.BaseTransport | None
    ) -> Shown | None:
        """Whose the request is, as far as it can be told without its body; None: a node has to be asked.
        Raises SqsError, PostroadError."""
        if (refusal := self._visitors.refusal(headers)) is not None:
            raise SqsError("AccessDeniedException", refusal, 403)
        identities = self._identities
        if not identities.required:
            return _OPEN
        if identities.following is not None:
            identities.following.check_current()
            if not sigv4.is_shown(headers, target):
                access = identities.by_certificate(transport) if "authorization" not in headers else None
                return None if access is None else Shown(access)
        signed = sigv4.read(headers, target)
        claim = signed.claim
        if (key := identities.keys.find(claim.key_id)) is not None:
            signing_key = sigv4.key_of_secret(key.secret, claim.day, claim.region)
            return Shown(identities.of_key(key, transport), signed, signing_key)
        if not identities.are_users:
            raise sigv4.unknown_key()
        found = identities.known_signing_key(_scope_of(signed))
        if found is None:
            return None
        return Shown(identities.of_signing_key(found, transport), signed, found.key)

    async def _find(self, head: Head) -> Shown:
        """The same, and the nodes are asked. Raises SqsError, PostroadError."""
        transport = head.peer.transport
        shown = self._known(head.headers, head.target, transport)
        if shown is not None:
            return shown
        if not sigv4.is_shown(head.headers, head.target):
            access = await self._identities.by_header(head.headers.get("authorization", ""), transport)
            if access is None:
                raise _nobody(head.headers)
            return Shown(access)
        signed = sigv4.read(head.headers, head.target)
        found = await self._identities.signing_key(_scope_of(signed))
        if found is None:
            raise sigv4.unknown_key()
        return Shown(self._identities.of_signing_key(found, transport), signed, found.key)

    # --- what is asked for

    def _read(self, protocol: Dialect, head: Head, body: bytes, shown: Shown) -> tuple[Call, Caller]:
        """What is asked for, and by whom. Raises SqsError."""
        access, signed, key = shown
        if signed is not None:
            sigv4.check(head, body, signed, key)
        call = protocol.read(head, body)
        if head.method == "GET" and signed is None:  # a page can't make a signature
            _refuse_change_by_browser(call.action, head)
        return call, Caller(head, self._url, access)

    async def _reply_to(self, call: Call, caller: Caller, protocol: Dialect, request_id: str) -> Reply:
        action, asked = call
        try:
            _check_right(action, caller)
            if caller.access.is_guarded:
                await self._check_rights(action, caller.access, asked)
            return protocol.answer(action, await action.handler(self._service, caller, asked), request_id)
        except Exception as error:
            return _refused(protocol, error, request_id, action.name)

    async def _check_rights(self, action: Action, access: Access, asked: object) -> None:
        """Before anything is done. What a name alone does not tell the handlers ask themselves."""
        wanted = action.rights
        if wanted.group is not None:
            name = names.name_in_url(getattr(asked, "queue_url"))  # noqa: B009  # `OfQueue`, by the table
            await rights.check(access, wanted, self._service.gateway.directory, group=name)

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


def _scope_of(signed: Signed) -> Scope:
    """Raises SqsError for what no key was ever made for."""
    claim = signed.claim
    if len(claim.key_id) > ID_CHARACTERS_MAX or len(claim.region) > REGION_CHARACTERS_MAX:
        raise sigv4.unknown_key()
    if not (claim.key_id + claim.region).isascii():
        raise sigv4.unknown_key()
    return Scope(claim.key_id, claim.day, claim.region)


def _nobody(headers: Mapping[str, str]) -> SqsError:
    if "authorization" not in headers:
        return SqsError("MissingAuthenticationToken", "Request is missing Authentication Token.", 403)
    return SqsError("InvalidClientTokenId", "The user or the password is wrong.", 403)


def _check_right(action: Action, caller: Caller) -> None:
    access = caller.access
    if action.admin and not access.admin and not access.is_guarded:
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
