"""Around the registry's endpoints: who asks, what is asked, and answers in the form that its clients read.

200  application/vnd.schemaregistry.v1+json
4xx  {"error_code": 40401, "message": "Subject 'orders-value' not found."}
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestPayloadError

from postroad.errors import InvalidSchema, PostroadError, SchemaError
from postroad.gateway import bodies
from postroad.gateway.gateway import Gateway
from postroad.gateway.json_depth import DEPTH_MAX, is_too_deep
from postroad.gateway.rest import problems, serving
from postroad.gateway.rest.endpoint import Call, Endpoint, EndpointAnswer, Form, Nothing
from postroad.gateway.rest.problems import Refused
from postroad.gateway.security import rights

REGISTRY_JSON: Final = "application/vnd.schemaregistry.v1+json"
JSON: Final = "application/json"
SENT: Final = (REGISTRY_JSON, "application/vnd.schemaregistry+json", JSON, "application/octet-stream")
INTERNAL: Final = 50001
FORBIDDEN: Final = 40301
SUBJECT_MAX: Final = 1000  # characters of its name


class RegistryProblem(msgspec.Struct):
    """What went wrong: the code begins with the HTTP status."""

    error_code: int
    message: str


FORM: Final = Form((REGISTRY_JSON, JSON), REGISTRY_JSON, RegistryProblem)

Serve = Callable[[web.Request], Awaitable[web.Response]]

log = logging.getLogger(__name__)


def topic_of(subject: str) -> str:
    """The topic whose messages have the subject's schemas, as clients name subjects after topics. Rights to a
    subject are rights to it."""
    for suffix in ("-value", "-key"):
        if subject.endswith(suffix) and subject != suffix:
            return subject.removesuffix(suffix)
    return subject


def serve(gateway: Gateway, endpoint: Endpoint) -> Serve:
    async def work(request: web.Request) -> web.Response:
        access = await serving.authorize(gateway, request, endpoint.admin)
        path = {name: request.match_info[name] for name in endpoint.parameters}
        if len(path.get("subject", "")) > SUBJECT_MAX:
            raise InvalidSchema(f"A subject's name has {SUBJECT_MAX} characters at most.")
        if access.is_guarded:
            topic = topic_of(path.get("subject", ""))
            await rights.check(access, endpoint.rights, gateway.directory, topic=topic)
        query = serving.read_query(request, endpoint.query)
        body = await _body(request, endpoint)
        result = await endpoint.handler(Call(gateway, request, path, query, body, access))
        return _answer(request, endpoint, result)

    return rights.declared(endpoint.rights)(guarded(work, endpoint.name))


def guarded(work: Serve, name: str) -> Serve:
    """Whatever is raised is answered here and nowhere else."""

    async def handle(request: web.Request) -> web.Response:
        try:
            return await work(request)
        except SchemaError as error:
            return problem(error.error_code, str(error))
        except Refused as refused:
            told = refused.problem
            code = FORBIDDEN if told.status == 403 else told.status
            return problem(code, told.detail or told.title, dict(refused.headers))
        except web.HTTPRequestEntityTooLarge:
            return problem(413, "The body is too large: the gateway's setting is http.body_bytes_max.")
        except PostroadError as error:
            return _of_nodes(request, error)
        except (web.HTTPException, ConnectionError, RequestPayloadError):
            raise  # the application knows them
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return problem(INTERNAL, problems.INTERNAL.title)

    handle.__name__ = name
    return handle


def elsewhere(roots: list[str], allowed: Mapping[str, list[str]]) -> list[web.RouteDef]:
    """What no endpoint takes below the registry's roots, said in its form: 405 on the paths of endpoints,
    with the methods that are allowed there, and 404 on all others."""

    def refuse_method(methods: list[str]) -> Serve:
        async def method_not_allowed(request: web.Request) -> web.Response:
            allow = ", ".join(methods)
            return problem(405, f"HTTP 405 Method Not Allowed: there is {allow}.", {hdrs.ALLOW: allow})

        return rights.declared(rights.PUBLIC)(method_not_allowed)

    @rights.declared(rights.PUBLIC)
    async def not_found(request: web.Request) -> web.Response:
        return problem(404, "HTTP 404 Not Found: the registry has nothing at this path.")

    found = [web.route("*", path, refuse_method(methods)) for path, methods in allowed.items()]
    return [
        *found,
        *(web.route("*", f"/{root}{rest}", not_found) for root in roots for rest in ("", "/{rest:.*}")),
    ]


def problem(code: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = msgspec.json.encode(RegistryProblem(code, message))
    status = int(str(code)[:3])
    return web.Response(status=status, body=body, content_type=REGISTRY_JSON, headers=headers)


def _of_nodes(request: web.Request, error: PostroadError) -> web.Response:
    kind = problems.kind_of(error)
    if kind is problems.INTERNAL:
        log.exception("%s %s failed", request.method, request.path)
        return problem(INTERNAL, kind.title)
    if kind is problems.UNAVAILABLE:
        return problem(50302, str(error), {hdrs.RETRY_AFTER: str(problems.RETRY_AFTER_S)})
    return problem(FORBIDDEN if kind is problems.FORBIDDEN else kind.status, str(error))


async def _body(request: web.Request, endpoint: Endpoint) -> Any:
    if endpoint.body is Nothing:
        return Nothing()
    if request.content_type not in SENT:
        raise Refused(problems.MEDIA, f"Send {REGISTRY_JSON} or {JSON}.")
    body = await bodies.read(request)
    if is_too_deep(body):
        raise InvalidSchema(f"The request's JSON nests deeper than {DEPTH_MAX} levels.")
    try:
        body.decode()  # msgspec passes over what it does not look into
        return msgspec.json.decode(body, type=endpoint.body)
    except UnicodeDecodeError:
        raise InvalidSchema("The body is not UTF-8.") from None
    except (msgspec.DecodeError, RecursionError) as error:  # a ValidationError is one
        raise InvalidSchema(f"The body can't be read: {error}") from None


def _answer(request: web.Request, endpoint: Endpoint, result: Any) -> web.Response:
    answer = result if isinstance(result, EndpointAnswer) else EndpointAnswer(result)
    accepted = request.headers.get(hdrs.ACCEPT, "")
    media = JSON if JSON in accepted and "schemaregistry" not in accepted else REGISTRY_JSON
    body = answer.body if isinstance(answer.body, msgspec.Raw) else msgspec.json.encode(answer.body)
    return web.Response(status=endpoint.status, body=bytes(body), content_type=media)
