"""An endpoint: declared once, by its handler's types. Routes and the OpenAPI document both come from it.

    @endpoint("POST", "/v1/topics", "Create a topic.", Rights(by_handler="Create"), status=201)
    async def create_topic(call: Call[NewTopic, Nothing]) -> TopicDetails: ...

`Call`'s types are those of the body and of the query; what the handler returns is the answer's. All of them
are msgspec structs: what they refuse is refused before the handler runs, and the document says what they
allow.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec
from aiohttp import web

from postroad.gateway.gateway import Gateway
from postroad.gateway.rest.problems import MEDIA_TYPE, Problem, ProblemKind
from postroad.gateway.security.access import OPEN, Access
from postroad.gateway.security.rights import Rights

B = TypeVar("B")
Q = TypeVar("Q")

_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No body, or no query."""


@dataclass(frozen=True)
class Call(Generic[B, Q]):
    """One request, read and checked. `access`: what the caller may do; `password`: the caller's own, where it
    was asked for beside the request (`in_person.py`)."""

    gateway: Gateway
    request: web.Request
    path: Mapping[str, str]
    query: Q
    body: B
    access: Access = OPEN
    password: str = field(default="", repr=False)

    @property
    def client_has_gone(self) -> bool:
        transport = self.request.transport
        return transport is None or transport.is_closing()


@dataclass(frozen=True)
class EndpointAnswer:
    """For what is more than a body with the endpoint's usual status."""

    body: Any
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Form(NamedTuple):
    """How bodies, answers and errors are written: the media types of bodies and answers, the first of which
    is the usual one, and the media type and the type of errors."""

    media: tuple[str, ...]
    problem_media: str
    problem: type[msgspec.Struct]


REST_FORM: Final = Form(("application/json",), MEDIA_TYPE, Problem)

Handler = Callable[[Call[Any, Any]], Awaitable[Any]]


@dataclass(frozen=True)
class Endpoint:
    """`rights`: what a user needs for it; `admin`: it needs an admin's key where keys of the settings are all
    that is asked for. `answers` are further statuses with a body of the same type; `raw_body`: bytes of any
    type are taken too, and the handler finds None as its body; `headers` are request headers that it looks
    at."""

    method: str
    path: str
    summary: str
    handler: Handler
    body: Any
    query: Any
    answer: Any
    status: int
    answers: Mapping[int, str]
    rights: Rights
    admin: bool
    raw_body: bool
    headers: type[msgspec.Struct] | None
    problems: tuple[ProblemKind, ...]
    form: Form = REST_FORM

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def description(self) -> str:
        return _unwrapped(self.handler.__doc__ or "")

    @property
    def parameters(self) -> list[str]:
        """The names in its path."""
        return _PARAMETER.findall(self.path)

    @property
    def body_required(self) -> bool:
        """A body whose fields all have defaults may be left out."""
        return self.body is not Nothing and not _all_optional(self.body)


def endpoint(
    method: str,
    path: str,
    summary: str,
    rights: Rights,
    *,
    status: int = 200,
    answers: Mapping[int, str] | None = None,
    admin: bool = False,
    raw_body: bool = False,
    headers: type[msgspec.Struct] | None = None,
    problems: tuple[ProblemKind, ...] = (),
    form: Form = REST_FORM,
) -> Callable[[Callable[[Call[B, Q]], Awaitable[Any]]], Endpoint]:
    def declare(handler: Callable[[Call[B, Q]], Awaitable[Any]]) -> Endpoint:
        hints = get_type_hints(handler, include_extras=True)
        body, query = get_args(hints["call"])
        return Endpoint(
            method, path, summary, handler, body, query, _answer_type(hints["return"]),
            status, answers or {}, rights, admin, raw_body, headers, problems, form,
        )  # fmt: skip

    return declare


def _answer_type(declared: Any) -> Any:
    """The type in the body: a handler that returns `T | EndpointAnswer` answers with a T."""
    if declared is type(None):
        return None
    kinds = [kind for kind in get_args(declared) if kind is not EndpointAnswer]
    return kinds[0] if EndpointAnswer in get_args(declared) else declared


def _all_optional(body: Any) -> bool:
    if not (isinstance(body, type) and issubclass(body, msgspec.Struct)):
        return False
    return all(not known.required for known in msgspec.structs.fields(body))


def _unwrapped(text: str) -> str:
    """A docstring's paragraphs, each as one line."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
