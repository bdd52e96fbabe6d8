"""The OpenAPI document, made from the endpoints themselves and the types they are declared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any, Final

import msgspec
from msgspec import Struct

from postroad.gateway.rest import fields, problems
from postroad.gateway.rest.endpoint import REST_FORM, Endpoint, Nothing
from postroad.gateway.rest.problems import KINDS, ProblemKind

VERSION: Final = "3.1.0"
OCTETS: Final = "application/octet-stream"
REF: Final = "#/components/schemas/{name}"
DESCRIPTION: Final = (
    "Topics, subscriptions and their messages over HTTP. Errors are problem details (RFC 9457): 400 if the "
    "request does not match this document, 422 if it matches and is refused all the same, 503 if it may be "
    "tried again."
)
SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"basic": []}]
SECURITY_SCHEMES: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An access key as id:secret."},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "A user with the password, or an access key: id and secret.",
    },
}

Object = dict[str, Any]


def document(endpoints: Sequence[Endpoint], *, secured: bool, users: bool = False) -> Object:
    """`secured`: access keys are needed; `users`: or users."""
    types = [kind for each in endpoints for kind in (each.body, each.answer) if kind not in (None, Nothing)]
    errors = dict.fromkeys(each.form.problem for each in endpoints)
    _, components = msgspec.json.schema_components([*types, *errors], ref_template=REF)
    paths: dict[str, Object] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, secured, users)
    return {
        "openapi": VERSION,
        "info": {"title": "Postroad", "version": version("postroad"), "description": DESCRIPTION},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": SECURITY_SCHEMES},
        "x-problems": [{"slug": kind.slug, "status": kind.status, "title": kind.title} for kind in KINDS],
    }


def _operation(endpoint: Endpoint, secured: bool, users: bool) -> Object:
    found: Object = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "description": _description(endpoint, secured, users),
        "tags": [_tag(endpoint)],
        "parameters": [*_parameters(endpoint)],
        "responses": _responses(endpoint, secured),
    }
    if endpoint.body is not Nothing:
        found["requestBody"] = {"required": endpoint.body_required, "content": _body(endpoint)}
    if secured:
        found["security"] = SECURITY
    return found


def _description(endpoint: Endpoint, secured: bool, users: bool) -> str:
    needs = ["Needs an admin key."] if secured and endpoint.admin else []
    if users:
        needs = [f"Needs these rights: {endpoint.rights.words}."]
    return "\n\n".join([*filter(None, [endpoint.description]), *needs])


def _parameters(endpoint: Endpoint) -> Iterable[Object]:
    for name in endpoint.parameters:
        rule = fields.PATH[name]
        yield _parameter(name, "path", {**rule.schema, "description": rule.description}, required=True)
    yield from _parameters_of(endpoint.query, "query")
    if endpoint.headers is not None:
        yield from _parameters_of(endpoint.headers, "header")


def _parameters_of(struct: type[Struct], location: str) -> Iterable[Object]:
    _, components = msgspec.json.schema_components([struct], ref_template=REF)
    told: Object = components[struct.__name__]
    for name, schema in told["properties"].items():
        yield _parameter(name, location, schema, required=name in told["required"])


def _parameter(name: str, location: str, schema: Object, *, required: bool) -> Object:
    """A parameter that may be left out can't be null: there is no way to write that."""
    description = schema.pop("description", "")
    kinds = [kind for kind in schema.pop("anyOf", []) if kind != {"type": "null"}]
    for kind in kinds[:1]:
        description = description or kind.pop("description", "")
        schema = {**kind, **schema}
        schema.pop("description", None)
    if schema.get("default", ...) is None:
        del schema["default"]
    return {"name": name, "in": location, "required": required, "description": description, "schema": schema}


def _body(endpoint: Endpoint) -> Object:
    content: Object = {media: {"schema": _schema(endpoint.body)} for media in endpoint.form.media}
    if endpoint.raw_body:
        content[OCTETS] = {"schema": {"type": "string", "format": "binary"}}
    return content


def _responses(endpoint: Endpoint, secured: bool) -> Object:
    found: Object = {}
    for status, text in {endpoint.status: "Done.", **endpoint.answers}.items():
        found[str(status)] = {"description": text}
        if endpoint.answer is not None:
            schema = {"schema": _schema(endpoint.answer)}
            found[str(status)]["content"] = dict.fromkeys(endpoint.form.media, schema)
    problem = {endpoint.form.problem_media: {"schema": _schema(endpoint.form.problem)}}
    for kind in sorted(_problems(endpoint, secured)):
        known = found.setdefault(str(kind.status), {"description": "", "content": problem})
        known["description"] = f"{known['description']} {kind.title}".strip()
    return found


def _problems(endpoint: Endpoint, secured: bool) -> set[ProblemKind]:
    """What may go wrong with any endpoint like this one, and with this one."""
    found = {problems.MALFORMED, problems.FORBIDDEN, problems.NOT_ACCEPTABLE}
    found |= {problems.INTERNAL, problems.UNAVAILABLE}
    if endpoint.body is not Nothing:
        found |= {problems.TOO_LARGE, problems.MEDIA}
    if secured:
        found.add(problems.UNAUTHENTICATED)
    return found | set(endpoint.problems)


def _tag(endpoint: Endpoint) -> str:
    return endpoint.path.split("/")[2] if endpoint.form is REST_FORM else "schema registry"


def _schema(kind: Any) -> Any:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REF)
    return schema
