"""How the registry's endpoints are declared: as those of REST, in the form of the registry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from postroad.gateway.rest import endpoint as rest
from postroad.gateway.rest.endpoint import Call, Endpoint
from postroad.gateway.rest.problems import CONFLICT, NOT_FOUND, REFUSED
from postroad.gateway.schemas.serving import FORM
from postroad.gateway.security.rights import Rights

B = TypeVar("B")
Q = TypeVar("Q")


def endpoint(
    method: str, path: str, summary: str, rights: Rights, *, admin: bool = False
) -> Callable[[Callable[[Call[B, Q]], Awaitable[Any]]], Endpoint]:
    return rest.endpoint(
        method, path, summary, rights, admin=admin, problems=(NOT_FOUND, CONFLICT, REFUSED), form=FORM
    )
