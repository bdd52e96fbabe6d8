"""From an endpoint to an aiohttp handler: who asks, what is asked, the answer, or the problem with it."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from postroad.errors import PostroadError
from postroad.gateway import bodies
from postroad.gateway.gateway import Gateway
from postroad.gateway.json_depth import DEPTH_MAX, is_too_deep
from postroad.gateway.rest import fields, problems
from postroad.gateway.rest.endpoint import Call, Endpoint, EndpointAnswer, Nothing
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security import rights
from postroad.gateway.security.access import OPEN, Access

JSON: Final = "application/json"
# What browsers and `curl -d` send unasked: hardly ever meant as the value of a message.
FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
KEYS_TEXT: Final = "Send `Authorization: Bearer id:secret`, or Basic with id and secret as user and password."
USERS_TEXT: Final = "Send `Authorization: Basic` with the name and the password of a user."
_ACCEPTED: Final = ("*/*", "application/*", JSON)

Serve = Callable[[web.Request], Awaitable[web.Response]]

log = logging.getLogger(__name__)


def serve(gateway: Gateway, endpoint: Endpoint) -> Serve:
    read_body = _body_reader(endpoint)

    async def work(request: web.Request) -> web.Response:
        _check_accept(request)
        access = await authorize(gateway, request, endpoint.admin)
        path = _path(request, endpoint.parameters)
        if access.is_guarded:
            group, topic = path.get("subscription") or path.get("group", ""), path.get("topic", "")
            await rights.check(access, endpoint.rights, gateway.directory, group=group, topic=topic)
        query = read_query(request, endpoint.query)
        call = Call(gateway, request, path, query, await read_body(request), access)
        return _response(endpoint, await endpoint.handler(call))

    return rights.declared(endpoint.rights)(guarded(work, endpoint.name))


def guarded(work: Serve, name: str) -> Serve:
    """Whatever is raised becomes a problem, here and nowhere else."""

    async def handle(request: web.Request) -> web.Response:
        try:
            return await work(request)
        except Refused as refused:
            return problems.answer(refused.problem, refused.headers)
        except web.HTTPRequestEntityTooLarge:
            return problems.answer(problems.TOO_LARGE.says("The gateway's setting is http.body_bytes_max."))
        except PostroadError as error:
            problem = problems.of(error)
            if problem.status == problems.INTERNAL.status:
                log.exception("%s %s failed", request.method, request.path)
            return problems.answer(problem)
        except (web.HTTPException, ConnectionError, RequestPayloadError):
            raise  # the application knows them
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return problems.answer(problems.INTERNAL.says(""))

    handle.__name__ = name
    return handle


def elsewhere(allowed: Mapping[str, list[str]]) -> list[web.RouteDef]:
    """For what no endpoint takes: 405 on their paths, with what is allowed; 404 on all others below /v1."""

    def refuse_method(methods: list[str]) -> Serve:
        async def work(request: web.Request) -> web.Response:
            allow = ", ".join(methods)
            raise Refused(problems.METHOD, f"This resource supports {allow}.", {hdrs.ALLOW: allow})

        return guarded(work, "method_not_allowed")

    async def nowhere(request: web.Request) -> web.Response:
        raise Refused(problems.NOT_FOUND, "There is nothing at this path; see /docs.")

    public = rights.declared(rights.PUBLIC)
    routes = [web.route("*", path, public(refuse_method(methods))) for path, methods in allowed.items()]
    return [*routes, web.route("*", "/v1/{rest:.*}", public(guarded(nowhere, "not_found")))]


# --- who asks


async def authorize(gateway: Gateway, request: web.Request, admin: bool = False) -> Access:
    """What the caller may do. Raises Refused if what is needed is not shown, and for pages from elsewhere;
    PostroadError where nodes have to be asked and can't be."""
    refusal = gateway.visitors.refusal(request.headers)
    if refusal is not None:
        raise Refused(problems.FORBIDDEN, refusal)
    identities = gateway.identities
    if not identities.required:
        return OPEN
    access = await identities.by_header(request.headers.get(hdrs.AUTHORIZATION, ""), request.transport)
    if access is None:
        raise Refused(
            problems.UNAUTHENTICATED,
            USERS_TEXT if identities.are_users else KEYS_TEXT,
            {hdrs.WWW_AUTHENTICATE: 'Bearer realm="postroad", Basic realm="postroad"'},
        )
    if admin and not access.admin and not access.is_guarded:
        raise Refused(problems.FORBIDDEN, "This request needs an admin key.")
    return access


# --- what is asked


def _check_accept(request: web.Request) -> None:
    """Problems are told to everyone; answers only to those who take JSON."""
    wanted = request.headers.getall(hdrs.ACCEPT, [])
    ranges = [part.strip() for header in wanted for part in header.split(",") if part.strip()]
    if ranges and not any(_is_accepted(each) for each in ranges):
        raise Refused(problems.NOT_ACCEPTABLE, f"Answers are {JSON}: the Accept header must allow it.")


def _is_accepted(media_range: str) -> bool:
    kind, *parameters = [part.strip().lower() for part in media_range.split(";")]
    refused = any(re.fullmatch(r"q\s*=\s*0(\.0*)?", parameter) for parameter in parameters)
    return kind in _ACCEPTED and not refused


def _path(request: web.Request, names: list[str]) -> dict[str, str]:
    found = {name: request.match_info[name] for name in names}
    for name, value in found.items():
        rule = fields.PATH[name]
        if not rule.matches(value):
            raise Refused(problems.MALFORMED, f"{name}: {rule.right}")
    return found


def read_query(request: web.Request, query: Any) -> Any:
    """Raises Refused."""
    found = dict(request.query)
    twice = [name for name in found if len(request.query.getall(name)) > 1]
    if twice:
        raise Refused(problems.MALFORMED, f"Query parameter {twice[0]!r} is given twice.")
    try:
        read = msgspec.convert(found, query, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(problems.MALFORMED, f"query: {error}") from None
    for name in found:
        if getattr(read, name, found) is None:  # msgspec takes the word for the value
            raise Refused(problems.MALFORMED, f"query: {name}: null is not a value; leave it out instead")
    return read


def _body_reader(endpoint: Endpoint) -> Callable[[web.Request], Awaitable[Any]]:
    if endpoint.body is Nothing:
        return _no_body
    decoder = msgspec.json.Decoder(endpoint.body)

    async def read(request: web.Request) -> Any:
        if endpoint.raw_body and request.content_type != JSON:
            _check_is_no_form(request)
            return None
        body = await bodies.read(request)
        if not body and not endpoint.body_required:
            return decoder.decode(b"{}")
        _check_is_json(request)
        return decode(decoder, body)

    return read


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """Raises Refused, with where it does not fit."""
    if is_too_deep(body):
        raise Refused(problems.MALFORMED, f"The JSON nests deeper than {DEPTH_MAX} levels.")
    try:
        body.decode()  # msgspec passes over what it does not look into
        return decoder.decode(body)
    except UnicodeDecodeError:
        raise Refused(problems.MALFORMED, "The body is not UTF-8.") from None
    except (msgspec.DecodeError, RecursionError) as error:  # a ValidationError is one
        raise Refused(problems.MALFORMED, f"body: {error}") from None


async def _no_body(request: web.Request) -> Nothing:
    if request.can_read_body and await bodies.read(request):
        raise Refused(problems.MALFORMED, "This request takes no body.")
    return Nothing()


def _check_is_json(request: web.Request) -> None:
    if request.content_type != JSON or (request.charset or "utf-8").lower() != "utf-8":
        raise Refused(problems.MEDIA, f"Send {JSON}.")


def _check_is_no_form(request: web.Request) -> None:
    if request.content_type in FORMS:
        raise Refused(
            problems.MEDIA,
            f"Send {JSON}, or bytes with a type such as application/octet-stream.",
        )


# --- the answer


def _response(endpoint: Endpoint, result: Any) -> web.Response:
    answer = result if isinstance(result, EndpointAnswer) else EndpointAnswer(result)
    status = endpoint.status if answer.status is None else answer.status
    if answer.body is None:
        return web.Response(status=status, headers=dict(answer.headers))
    body = msgspec.json.encode(answer.body)
    return web.Response(status=status, body=body, content_type=JSON, headers=dict(answer.headers))
